import { Effect, Stdio, Stream } from "effect"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { eventText, parseTask, type ProcessEvent } from "../../services/agent/ProcessAgentProtocol.ts"
import * as Runtime from "../../services/runtime/Runtime.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import * as RuntimeText from "../output/RuntimeText.ts"

const readTask = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  const text = yield* Stream.mkString(Stream.decodeText(stdin)).pipe(
    Effect.mapError(() => badInput("standard input cannot be read"))
  )
  return parseTask(text) ?? (yield* badInput("--process is how an agent starts another; use agents run without it"))
})

/** Runs the agent that the parent of this process describes on stdin (`ProcessAgentProtocol`), and reports to it on stdout. */
export const runProcess = Effect.gen(function* () {
  const { definition, model, prompt } = yield* readTask
  const stdio = yield* Stdio.Stdio
  const report = (event: ProcessEvent) => Effect.provideService(Output.text(eventText(event)), Stdio.Stdio, stdio)
  const { progress: _progress, ...handlers } = yield* RuntimeText.handlers
  const { host } = yield* RuntimeText.orExit(Runtime.make({ model, isAgentProcess: true, handlers }))
  const runner = host.agents.inPlace(definition)
  if (runner === undefined) return yield* failed(`the agent ${definition.name} cannot be started here`)
  const { duration, note, reason, text, turns } = yield* Effect.gen(function* () {
    const { result } = yield* runner.start({
      prompt,
      // Without a parent that reads, the work has no purpose: it ends.
      activity: (activity) => Effect.orDie(report({ _tag: "Working", activity })),
      waiting: (work) => work
    })
    return yield* result
  }).pipe(Effect.mapError(({ message }) => failed(printableLine(message))))
  yield* report({ _tag: "Ended", text, reason, turns, duration, note })
})
