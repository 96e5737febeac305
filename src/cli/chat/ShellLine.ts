/** A line that begins with `!`: a command of the user, which no model sees unless the user passes its output on. */

import { Effect, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { visibleBlock } from "../../domain/text/InvisibleCharacters.ts"
import type { ChatTerminal } from "../../services/terminal/ChatTerminal.ts"
import * as Output from "../output/Output.ts"
import { yesNoInquiry } from "./Questions.ts"

/** Output beyond this is left out, from its beginning. */
const maxOutputChars = 100_000
/** Lines of the output that are shown at first. Ctrl+O shows the rest. */
const shownLines = 10
/** Of the output of a command that runs, the last characters. */
const maxLiveChars = 4_000

const linesOf = (output: string): ReadonlyArray<string> =>
  visibleBlock(output)
    .trimEnd()
    .split("\n")
    .filter((line, index, all) => line !== "" || all.length > 1 || index > 0)

/** Runs a command in the user's shell, and passes on its output so far. Returns the output and the exit code. */
const run = (command: string, onOutput: (output: string) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const handle = yield* ChildProcess.make("sh", ["-c", command], { stdin: "ignore" })
    const output = yield* Stream.runFoldEffect(
      Stream.decodeText(handle.all),
      () => "",
      (all, piece) => {
        const output = (all + piece).slice(-maxOutputChars)
        return Effect.as(onOutput(output), output)
      }
    )
    return { output, code: Number(yield* handle.exitCode) }
  }).pipe(Effect.scoped)

/**
 * Runs a command and shows its output. Returns the text for the editor if the user wants the output in the next message,
 * undefined otherwise.
 */
export const runLine = Effect.fn("ShellLine.runLine")(function* (terminal: ChatTerminal["Service"], command: string) {
  const style = terminal.canColor ? Output.coloured : Output.plain
  const key = `! ${command}`
  const showOutput = (output: string) => {
    const lines = linesOf(output.slice(-maxLiveChars))
    return terminal.card({ key, isRunning: true, head: command, body: lines.slice(-1), more: lines })
  }
  const ended = yield* terminal.during("running", (interrupted) =>
    Effect.andThen(
      showOutput(""),
      Effect.raceFirst(Effect.result(run(command, showOutput)), Effect.as(interrupted, undefined))
    )
  )
  if (ended === undefined) return void (yield* terminal.note("Cancelled."))
  if (ended._tag === "Failure") return void (yield* terminal.note(Output.sentence(ended.failure.message)))
  const { code, output } = ended.success
  const lines = linesOf(output)
  const head = code === 0 ? style.dim(`✓ ${command}`) : style.warn(`✗ ${command} · exit code ${code}`)
  yield* terminal.card({
    key,
    isRunning: false,
    head,
    body: lines.slice(-shownLines),
    more: lines.length > shownLines ? lines : []
  })
  const answers = { yes: "yes", no: "no", hint: "also Esc" }
  const isWanted = yield* terminal
    .inquire(yesNoInquiry("Put this into your next message?\n", answers, { prompt: "add? ", escape: "n", style }))
    .pipe(Effect.catchTag("Closed", () => Effect.succeed(false)))
  return isWanted ? [`$ ${command}`, ...lines, ...(code === 0 ? [] : [`exit code ${code}`])].join("\n") : undefined
})
