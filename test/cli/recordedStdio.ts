import { Effect, Sink, Stdio } from "effect"
import { decode } from "../../src/domain/text/Bytes.ts"

/** Standard streams for a command that runs in this process, and all that it wrote to them. */
export const recordedStdio = (isTerminal = false) => {
  const texts = { out: "", err: "" }
  const into = (name: keyof typeof texts) => () =>
    Sink.forEach((piece: string | Uint8Array) =>
      Effect.sync(() => {
        texts[name] += typeof piece === "string" ? piece : decode(piece).text
      })
    )
  const layer = Stdio.layerTest({
    stdout: into("out"),
    stderr: into("err"),
    stdoutIsTerminal: Effect.succeed(isTerminal)
  })
  return { texts, layer }
}
