/** The slash command `/tasks`: shows and stops the commands that run in the background. */

import { Clock, Effect, Option } from "effect"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import type { BackgroundCommand } from "../../../services/tools/builtin/BackgroundCommands.ts"
import { detailLines } from "../../output/ToolCallText.ts"
import { type ChatSession, say, type SlashCommand } from "./ChatSession.ts"
import { writeRows } from "./tools.ts"

/** How long something has been running: `12 s`, `5 min`, `3 h`. */
const durationText = (millis: number): string => {
  const seconds = Math.max(0, Math.floor(millis / 1_000))
  if (seconds < 60) return `${seconds} s`
  return seconds < 3_600 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3_600)} h`
}

/** Describes the state of a task: whether it runs, and its last line of output. */
const stateOf = Effect.fnUntraced(function* ({ ended, output, startedAt }: BackgroundCommand) {
  const end = yield* ended
  const running = `running for ${durationText((yield* Clock.currentTimeMillis) - startedAt)}`
  const last = printableLine((yield* output).split("\n").findLast((line) => line.trim() !== "") ?? "")
  return `${end ?? running}${last === "" ? "" : ` · ${last}`}`
})

const showOutput = Effect.fnUntraced(function* (session: ChatSession, task: BackgroundCommand) {
  const text = yield* task.output
  if (text.trim() === "") return yield* say(session, `${task.id} has printed nothing yet.`)
  yield* session.terminal.write(`${detailLines(text).join("\n")}\n`)
})

const stop = Effect.fnUntraced(function* (session: ChatSession, task: BackgroundCommand) {
  if ((yield* task.ended) !== undefined) return yield* say(session, `${task.id} has ended already.`)
  yield* session.terminal.during("stopping", () => task.stop)
  yield* say(session, `Stopped ${task.id}: ${printableLine(task.command)}`)
})

/** Lets the user choose a task, and what to do with it. Fails where no list can be shown. */
const choose = Effect.fnUntraced(function* (session: ChatSession, tasks: ReadonlyArray<BackgroundCommand>) {
  const { terminal } = session
  const choices = yield* Effect.forEach(tasks, (task) =>
    Effect.map(stateOf(task), (about) => ({ value: task, label: printableLine(task.command), about }))
  )
  const chosen = yield* terminal.choose("Commands in the background", choices)
  if (Option.isNone(chosen)) return
  const what = yield* terminal.choose(printableLine(chosen.value.command), [
    { value: showOutput, label: "Show its output" },
    { value: stop, label: "Stop it" }
  ])
  if (Option.isSome(what)) yield* what.value(session, chosen.value)
})

/** The command `/tasks [id] [stop]`. */
export const tasks: SlashCommand = {
  name: "tasks",
  usage: "[id [stop]]",
  help: "List the commands in the background, show the output of one, or stop it",
  run: Effect.fnUntraced(function* (session, argument) {
    const all = yield* session.agent.commands
    const [id = "", verb] = argument.split(/\s+/)
    if (id !== "") {
      const task = all.find((one) => String(one.id) === id)
      if (task === undefined) return yield* say(session, `There is no command ${printableLine(id)}; /tasks lists them.`)
      return yield* verb === "stop" ? stop(session, task) : showOutput(session, task)
    }
    const rows = Effect.forEach(all, (task) =>
      Effect.map(stateOf(task), (state) => [String(task.id), `${printableLine(task.command)} · ${state}`] as const)
    )
    const list = Effect.flatMap(rows, (shown) => writeRows(session, shown, "No command was started in the background."))
    yield* all.length === 0 ? list : Effect.catchTag(choose(session, all), "Closed", () => list)
  })
}
