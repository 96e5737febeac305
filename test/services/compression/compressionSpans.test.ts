import { Context, Effect, Layer, Tracer } from "effect"
import { defaultPolicy } from "../../../src/domain/compression/strategies/Policy.ts"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import { Summarizer } from "../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../src/services/conversation/KnownConversation.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { SpanConversation } from "../../../src/services/model/ModelSpans.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { recordedSpans } from "../../support/spans.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const services = Compression.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(HookSystem.layer, Summarizer.layerExtractive, TokenCounter.layerEstimate, MemoryTempStore.layer)
  )
)

const secret = "the secret plan"
const drafts = Array.from({ length: 12 }, (_, n) => [
  { content: user(text(`${n} ${secret} `.repeat(60))) },
  { content: model(text(`${n} done`)) }
]).flat()

describe("the span of a compression", () => {
  it.effect.each([
    [undefined, true, "COMPRESSED"],
    ["s1", true, "COMPRESSED"],
    ["s1", false, "NOOP"]
  ] as const)("of the conversation %s, forced %s, says %s, and no words", ([conversation, forced, outcome]) =>
    Effect.gen(function* () {
      const { spans, tracer } = recordedSpans()
      const request = yield* requestFor(drafts, { ...defaultPolicy, limit: TokenCount.make(1_000_000) })
      yield* Compression.use((compression) => compression.compress({ ...request, forced })).pipe(
        Effect.provideService(SpanConversation, conversation),
        Effect.provide(Layer.succeed(Tracer.Tracer, tracer))
      )
      const span = spans.find(({ name }) => name === "Compression.compress")
      const { after, before, tokens, ...attributes } = Object.fromEntries(span?.attributes ?? [])
      assert.deepStrictEqual(attributes, {
        forced,
        outcome,
        "gen_ai.operation.name": "compress",
        strategy: "palimpsest",
        ...(conversation === undefined ? {} : { "gen_ai.conversation.id": conversation })
      })
      assert.strictEqual(before, tokens)
      if (forced) assert.isBelow(Number(after), Number(before))
      assert.notInclude(JSON.stringify(spans.map(({ attributes }) => [...attributes])), secret)
    }).pipe(Effect.provide(services))
  )
})

describe("a summarizer of one's own", () => {
  class Words extends Context.Service<Words, string>()("test/Words") {}
  it.effect("uses the services that its layer was given", function* () {
    const layer = Layer.provide(
      Summarizer.layer(() => Effect.map(Words, (words) => words)),
      Layer.succeed(Words, "all is well")
    )
    const request = {
      entries: [],
      kept: [],
      budget: 100,
      focus: undefined,
      cwd: undefined,
      pins: { original: undefined, latest: undefined },
      userWords: () => false,
      verify: false,
      by: "model",
      fallback: false,
      model: undefined,
      family: undefined
    } as const
    const summary = yield* Summarizer.use(({ summarize }) => summarize(request)).pipe(Effect.provide(layer))
    assert.strictEqual(summary.text, "all is well")
  })
})
