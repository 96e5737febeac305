import { Effect, Layer, Path } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { stderr, stdin, stdout } from "node:process"
import { ChatTerminal } from "../../services/terminal/ChatTerminal.ts"
import * as InputHistory from "./InputHistory.ts"
import * as PlainTerminal from "./PlainTerminal.ts"
import type { Streams } from "./StreamTerminal.ts"

/**
 * The terminal of this process, or of the given streams: with an editor and a status line where the terminal can move its cursor,
 * in plain lines with `isPlain` and on simple terminals, and a message a line on a pipe.
 *
 * Messages typed on a terminal are stored in the file `history`, one JSON string per line (mode 0600). The terminal's state is
 * restored when the layer ends.
 */
export const layer = (
  history: string,
  isPlain = false,
  streams: Streams & { readonly input: { readonly isTTY?: boolean | undefined } } = {
    input: stdin,
    output: stdout,
    error: stderr
  }
) =>
  Layer.effect(
    ChatTerminal,
    Effect.gen(function* () {
      const { canColor, canPrompt } = yield* TerminalCapabilities.TerminalCapabilities
      if (canPrompt && !isPlain) {
        const { make } = yield* Effect.promise(() => import("./TerminalUi.ts"))
        const path = yield* Path.Path
        const images = path.join(path.dirname(history), "pasted")
        return yield* make(streams, yield* InputHistory.open(history), canColor, images)
      }
      const isTerminal = streams.input.isTTY === true && streams.output.isTTY === true
      return yield* isTerminal
        ? PlainTerminal.lines(streams, yield* InputHistory.open(history))
        : PlainTerminal.pipe(streams)
    })
  )
