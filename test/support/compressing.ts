import { Effect, Layer } from "effect"
import type { SummaryCall } from "../../src/domain/compression/Compression.ts"
import { call, type Content, model, response, text, user } from "../../src/domain/content/Content.ts"
import * as MemoryTempStore from "../../src/layers/testing/MemoryTempStore.ts"
import { type AskRequest, Summarizer, SummarizerError } from "../../src/services/compression/summary/Summarizer.ts"
import { HookSystem } from "../../src/services/hooks/HookSystem.ts"
import { TokenCounter } from "../../src/services/tokens/TokenCounter.ts"

/** Compressions with a scripted summarizer. */

/** The services of a compression with this summarizer. */
export const servicesWith = (summarizer: Layer.Layer<Summarizer>) =>
  Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer, HookSystem.layer, summarizer)

/** Turns in which a file of so many lines is read. */
export const turns = (count: number, lines: number, from = 0): ReadonlyArray<Content> =>
  Array.from({ length: count }, (_, index) => {
    const n = from + index
    return [
      user(text(`question ${n} about the billing module`)),
      model(call("read_file", { path: `src/file${n}.ts` }, `c${n}`)),
      user(response("read_file", { output: `content of file ${n}\n`.repeat(lines) }, `c${n}`)),
      model(text(`answer ${n}`))
    ]
  }).flat()

/** The provider asks for a pause. */
export const limited = new SummarizerError({ reason: "RateLimitError", message: "slow down", cause: "429", calls: [] })

/** What a scripted model answers. */
export type Answer = string | SummarizerError | Effect.Effect<string>

/** A call of a summarizing model that ended well. */
export const written = (answer: string, purpose: SummaryCall["purpose"], name = "scripted"): SummaryCall => ({
  purpose,
  model: name,
  messages: 1,
  answer,
  finishReason: "STOP",
  usage: null
})

/** A summarizing model with these answers, and what it was asked. */
export const scripted = (answer: (request: AskRequest, index: number) => Answer) => {
  const asked: Array<AskRequest> = []
  const summarizer = Layer.succeed(Summarizer, {
    summarize: () => Effect.die("unexpected call"),
    ask: (request: AskRequest) =>
      Effect.suspend((): Effect.Effect<SummaryCall, SummarizerError> => {
        asked.push(request)
        const given = answer(request, asked.length - 1)
        if (given instanceof SummarizerError) return Effect.fail(given)
        const said = typeof given === "string" ? Effect.succeed(given) : given
        return Effect.map(said, (words) => written(words, request.purpose))
      })
  })
  return { asked, summarizer }
}
