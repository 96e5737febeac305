import { Effect, Layer, type Scope } from "effect"
import { Worker } from "node:worker_threads"
import { LineMatcher, type MatchedLine, type Matcher } from "../../services/platform/LineMatcher.ts"

/** The program of the thread. It is a text and not a file, because the built program is one bundle. */
const program = `
const { parentPort, workerData } = require("node:worker_threads")
const pattern = new RegExp(workerData.source, workerData.flags)
parentPort.on("message", ({ id, text, most }) => {
  const lines = []
  let number = 0
  for (let from = 0; from < text.length && lines.length < most;) {
    const end = text.indexOf("\\n", from)
    const to = end < 0 ? text.length : end
    const line = text.slice(from, to > from && text[to - 1] === "\\r" ? to - 1 : to)
    number += 1
    if (pattern.test(line)) lines.push({ number, text: line.slice(0, 4096) })
    from = to + 1
  }
  parentPort.postMessage({ id, lines })
})
`

interface Reply {
  readonly id: number
  readonly lines: ReadonlyArray<MatchedLine>
}

/** Runs each matcher in a thread of its own. A pattern that does not end is stopped with its thread; other work is not affected. */
export const layer: Layer.Layer<LineMatcher> = Layer.succeed(LineMatcher, {
  make: Effect.fn("LineMatcher.make")(function* (source, flags): Effect.fn.Return<Matcher, never, Scope.Scope> {
    const waiting = new Map<number, (answer: Effect.Effect<ReadonlyArray<MatchedLine>>) => void>()
    let lastId = 0
    const worker = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const started = new Worker(program, { eval: true, workerData: { source, flags }, env: {} })
        started.on("message", ({ id, lines }: Reply) => waiting.get(id)?.(Effect.succeed(lines)))
        started.on("error", (cause) => {
          for (const resume of waiting.values()) resume(Effect.die(cause))
        })
        return started
      }),
      (started) => Effect.promise(() => started.terminate())
    )
    return {
      lines: (text, maxMatches) =>
        Effect.callback<ReadonlyArray<MatchedLine>>((resume) => {
          const id = (lastId += 1)
          const done = Effect.sync(() => waiting.delete(id))
          waiting.set(id, (answer) => resume(Effect.ensuring(answer, done)))
          worker.postMessage({ id, text, most: maxMatches }, [])
          return done
        })
    }
  })
})
