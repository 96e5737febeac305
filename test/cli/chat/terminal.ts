import * as NodeServices from "@effect/platform-node/NodeServices"
import { Duration, Effect, Layer } from "effect"
import * as NodeTerminal from "../../../src/layers/terminal/NodeTerminal.ts"
import { ChatTerminal, type Completer } from "../../../src/services/terminal/ChatTerminal.ts"

/**
 * A chat with an echo, to be run on a terminal: `terminal.ts <history file>`. It answers with the message as JSON, waits for
 * Ctrl+C where that begins with `wait`, and shows a message that was cancelled again when it ends in `again`.
 */

const complete: Completer = (line) =>
  Effect.succeed({ candidates: ["/sessions", "/session-name"].filter((name) => name.startsWith(line)), replaced: line })

const program = Effect.gen(function* () {
  const terminal = yield* ChatTerminal
  const answer = (message: string) => terminal.write(`echo ${JSON.stringify(message)}\n`)
  let prefill: string | undefined
  for (;;) {
    const message = yield* terminal.ask({ prompt: "> ", prefill, complete })
    prefill = undefined
    const isDone = yield* terminal.during("thinking", (interrupted) =>
      message.startsWith("wait")
        ? Effect.as(
            Effect.raceFirst(Effect.andThen(terminal.write("working\n"), Effect.sleep(Duration.hours(1))), interrupted),
            false
          )
        : Effect.as(answer(message), true)
    )
    if (!isDone) yield* terminal.note("cancelled")
    if (!isDone && message.endsWith("again")) prefill = message
  }
}).pipe(
  Effect.catchTag("Closed", () => ChatTerminal.use((terminal) => terminal.write("closed\n"))),
  Effect.provide(Layer.provide(NodeTerminal.layer(process.argv[2] ?? ""), NodeServices.layer))
)

Effect.runPromise(program).then(
  () => process.stdout.write("end\n"),
  () => process.exit(1)
)
