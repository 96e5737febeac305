import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Effect, Layer, Sink, Stdio } from "effect"
import { Command } from "effect/cli"
import { recall } from "../../src/cli/commands/recall.ts"
import { encode } from "../../src/domain/text/Bytes.ts"
import * as Live from "../../src/layers/assembly/Live.ts"
import { program } from "./program.ts"

/** Returns what `recall` prints, run in this process: for the many handles of one test, of which one goes through the program. */
export const recalledHere = Effect.fnUntraced(function* (file: string, handle: string) {
  const { folder } = yield* program
  const printed: Array<Uint8Array> = []
  const stdout = () =>
    Sink.forEach((piece: string | Uint8Array) =>
      Effect.sync(() => printed.push(typeof piece === "string" ? encode(piece) : piece))
    )
  yield* Command.runWith(recall, { version: "0" })([file, handle]).pipe(
    Effect.provide(Stdio.layerTest({ stdout, stdoutIsTerminal: Effect.succeed(false) })),
    Effect.provide(
      Layer.fresh(Live.layer).pipe(
        Layer.provideMerge(NodeServices.layer),
        Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromUnknown({ PALIMPSEST_HOME: `${folder}-home` })))
      )
    )
  )
  return Buffer.concat(printed)
})
