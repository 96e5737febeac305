import { Effect, Layer, Metric } from "effect"
import { requestTarget } from "../../../src/domain/gateway/RequestTarget.ts"
import { routeOf } from "../../../src/domain/gateway/Route.ts"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import { addedCounts, latestCounts } from "../../../src/domain/wire/AnswerUsage.ts"
import { usageOf } from "../../../src/domain/wire/AnswerUsage.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import { accountAnswer, type Used } from "../../../src/layers/gateway/AnswerAccount.ts"
import type { ProxiedRequest } from "../../../src/layers/gateway/ProxiedRequest.ts"
import { Gateway } from "../../../src/services/gateway/Gateway.ts"
import { tokensCounted } from "../../../src/services/gateway/GatewayMetrics.ts"
import { RequestTokens } from "../../../src/services/gateway/MessageCounts.ts"
import { TenantLimiter } from "../../../src/services/serve/TenantLimiter.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What an answer is charged with: every kind of tokens, in each provider's own words, once. */

const counts: Readonly<Record<Dialect, object>> = {
  anthropic: {
    input_tokens: 100,
    cache_read_input_tokens: 20,
    cache_creation_input_tokens: 3,
    cache_creation: { ephemeral_1h_input_tokens: 2 },
    output_tokens: 45
  },
  gemini: { promptTokenCount: 123, cachedContentTokenCount: 20, candidatesTokenCount: 40, thoughtsTokenCount: 5 },
  chat: {
    prompt_tokens: 123,
    prompt_tokens_details: { cached_tokens: 20 },
    completion_tokens: 45,
    completion_tokens_details: { reasoning_tokens: 5 }
  },
  responses: {
    input_tokens: 123,
    input_tokens_details: { cached_tokens: 20 },
    output_tokens: 45,
    output_tokens_details: { reasoning_tokens: 5 }
  }
}

const estimated = new RequestTokens([{ count: { parts: [], tokens: 110 }, frame: 0, parts: () => [] }])

/** What is charged and learned for an answer. */
const charged = (dialect: Dialect, used: Partial<Used>, path = codecs[dialect].path(false)) =>
  Effect.gen(function* () {
    const target = requestTarget(path)
    const route = target === undefined ? undefined : routeOf("POST", target)
    const tokens: Array<readonly [account: string, amount: number]> = []
    const learned: Array<unknown> = []
    const services = Layer.merge(
      Layer.mock(Gateway, {
        prices: { table: {}, at: "" } as unknown as Gateway["Service"]["prices"],
        learn: (...all) => Effect.sync(() => void learned.push(all)),
        following: () => "",
        showsRecalls: false
      }),
      Layer.mock(TenantLimiter, {
        limits: () => assert.fail("not asked"),
        tokens: (account, amount) => Effect.sync(() => void tokens.push([account, amount]))
      })
    )
    const passing = { account: "acme", tenant: undefined, route, bodyBytes: 400 } as unknown as ProxiedRequest
    yield* accountAnswer(passing, { counts: undefined, tokens: 7, model: "m", estimated: undefined, ...used }).pipe(
      Effect.provide(services)
    )
    return { tokens, learned }
  })

describe.each(dialects)("an answer in the dialect %s", (dialect) => {
  it.effect("is charged with all that its provider counted, thoughts and caches too", function* () {
    const { learned, tokens } = yield* charged(dialect, { counts: counts[dialect], estimated })
    assert.deepStrictEqual(tokens, [["acme", 168]])
    assert.deepStrictEqual(learned, [["m", estimated, 123]])
    const usage = usageOf(wire[dialect].answers.usage, counts[dialect])
    assert.deepInclude(
      usage,
      dialect === "anthropic"
        ? { prompt: 123, answer: 45, thoughts: 0, cached: 20, cacheWrite: 3, cacheWriteHour: 2 }
        : { prompt: 123, answer: 40, thoughts: 5, cached: 20 }
    )
  })

  it.effect("is charged with the estimate where nothing is counted, or nothing that can be true", function* () {
    for (const none of [
      undefined,
      null,
      {},
      [],
      "x",
      { input_tokens: -1 },
      { prompt_tokens: 1e12, input_tokens: 1e12, promptTokenCount: 1e12 }
    ]) {
      assert.deepStrictEqual(yield* charged(dialect, { counts: none, estimated }), {
        tokens: [["acme", 117]],
        learned: []
      })
      assert.deepStrictEqual((yield* charged(dialect, { counts: none })).tokens, [["acme", 107]])
    }
  })
})

it.effect("an answer is counted by kind, each token once", function* () {
  const kinds = ["input", "cached", "written", "output"]
  const counted = Effect.forEach(kinds, (kind) =>
    Effect.map(Metric.value(Metric.withAttributes(tokensCounted, { kind })), ({ count }) => Number(count))
  )
  const before = yield* counted
  yield* charged("anthropic", { counts: counts.anthropic })
  const after = yield* counted
  assert.deepStrictEqual(
    after.map((count, at) => count - (before[at] ?? 0)),
    [100, 20, 3, 45]
  )
})

it.effect("a count of tokens, and what is no chat, is not charged", function* () {
  for (const path of ["/v1/messages/count_tokens", "/v1/files"]) {
    assert.deepStrictEqual((yield* charged("anthropic", { counts: counts.anthropic }, path)).tokens, [])
  }
})

it("counts of several answers are added, and within one the latest hold", () => {
  const one = { a: 1, kind: "x", more: { b: 2 } }
  const other = { a: 10, c: 5, kind: "y", more: { b: 20, d: null } }
  assert.deepStrictEqual(addedCounts(one, other), { a: 11, c: 5, kind: "y", more: { b: 22, d: undefined } })
  assert.deepStrictEqual(addedCounts(undefined, other), other)
  assert.deepStrictEqual(addedCounts(one, undefined), one)
  assert.deepStrictEqual(latestCounts({ a: 1, b: 2 }, { a: 3, b: null }), { a: 3, b: 2 })
  assert.deepStrictEqual(latestCounts(one, undefined), one)
})
