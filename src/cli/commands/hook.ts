import { Effect, Stdio, Stream } from "effect"
import { Command } from "effect/cli"
import { answerHook } from "../../services/transcripts/CompactionHook.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

/** The command `palimpsest hook`, which an agent runs around a compaction. */
export const hook = Command.make(
  "hook",
  {},
  Effect.fn("cli.hook")(function* () {
    const stdio = yield* Stdio.Stdio
    if (yield* stdio.stdinIsTerminal) {
      return yield* badInput('an agent runs this command; "palimpsest install claude" sets it up')
    }
    const input = yield* Effect.mapError(Stream.mkString(Stream.decodeText(stdio.stdin)), ({ message }) =>
      failed(message)
    )
    const text = yield* Effect.mapError(answerHook(input), ({ message }) => failed(message))
    if (text !== "") yield* Output.text(text)
  })
)
