import { assert, it } from "@effect/vitest"
import { accountOf, limitsOfKeys } from "../../../src/domain/gateway/GatewayAccess.ts"
import { dueFrom, gatewayPolicy, requestLimit, triggerOf } from "../../../src/domain/gateway/GatewayLimits.ts"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import { dialects } from "../../../src/domain/wire/Dialect.ts"

it.each([
  ["at the threshold", {}, 750],
  ["when it has grown by a tenth since a compression that left much", { tokensAfterLast: 820 }, 903],
  ["at the threshold after a compression that left little", { tokensAfterLast: 100 }, 750],
  ["before it might not fit, whatever the last compression left", { tokensAfterLast: 1_000 }, 950],
  ["not before the conversation has grown after a compression that found nothing to do", { retryAt: 880 }, 880],
  ["at the threshold after a failed compression that was long ago", { retryAt: 500 }, 750]
])("a conversation is compressed %s", (_rule, { retryAt, tokensAfterLast }: Before, tokens) => {
  assert.strictEqual(dueFrom(1_000, triggerOf({ threshold: 0.75 }, 1_000), tokensAfterLast, retryAt), tokens)
})

interface Before {
  readonly tokensAfterLast?: number
  readonly retryAt?: number
}

it.each([
  ["claude-sonnet-4-5", {}, 1_000, 199_000],
  ["claude-sonnet-4-5", {}, undefined, 200_000 - 16_384],
  ["claude-sonnet-4-5", {}, 150_000, 100_000],
  ["claude-sonnet-4-5", { window: 50_000 }, 1_000, 49_000],
  ["claude-sonnet-4-5", { window: 50_000, windows: { "claude-sonnet-4-5": 20_001 } }, 1_000, 19_001],
  ["claude-sonnet-4-5", { window: 20_001 }, 150_000, 10_000],
  ["gemini-2.5-pro", { windows: { other: 7 } }, 1_000, 1_048_576],
  ["constructor", {}, 1_000, 32_768]
])("a request to %s with %j and an answer of %j tokens has %i", (model, windows, answer, expected) => {
  assert.strictEqual(requestLimit({ threshold: 0.75, ...windows }, model, answer), expected)
})

it.each([
  [1_000, 400],
  [10_000, 1_000],
  [200_000, 8_000]
])("of a limit of %i tokens, a snapshot has %i", (limit, snapshotBudget) => {
  const policy: object = gatewayPolicy(limit, 0.6 * limit, 10.2)
  assert.deepInclude(policy, {
    limit,
    threshold: 0.6,
    overhead: 11,
    toolBudget: limit,
    snapshotBudget
  })
})

it.each([
  [401, "authentication_error", "UNAUTHENTICATED", "invalid_request_error"],
  [429, "rate_limit_error", "RESOURCE_EXHAUSTED", "rate_limit_exceeded"],
  [503, "api_error", "UNAVAILABLE", "server_error"]
])("a failure with the status %i has the form of its dialect", (code, anthropic, gemini, openAi) => {
  const message = "m"
  const other = { error: { message, type: openAi, param: null, code: null } }
  const bodies = dialects.map((dialect) => wire[dialect].answers.failure(code, message))
  assert.deepStrictEqual(bodies, [
    { type: "error", error: { type: anthropic, message } },
    { error: { code, message, status: gemini } },
    other,
    other
  ])
})

it.each([
  [{}, "a", { account: "a", tenant: undefined }],
  [{ keys: ["sha256:a"] }, "a", { account: "a", tenant: undefined }],
  [{ keys: ["sha256:a"] }, "b", undefined],
  [{ tenants: { one: { keys: ["sha256:a", "sha256:b"] }, two: { keys: ["sha256:b"] } } }, "b", "one"],
  [{ tenants: { one: { keys: ["sha256:a"] } } }, "b", undefined],
  [{ keys: ["sha256:b"], tenants: { one: { keys: [] } } }, "b", { account: "b", tenant: undefined }]
])("with the settings %j the key %s has the account %j", (settings, key, account) => {
  const expected = typeof account === "string" ? { account, tenant: account } : account
  assert.deepStrictEqual(accountOf(settings, key), expected)
})

it("budgets are those of each key and of each tenant, and unlimited where there are none", () => {
  const all = Infinity
  assert.deepStrictEqual(limitsOfKeys({}), { limits: { requests: all, tokens: all }, tenants: {} })
  const tenants = { one: { keys: [], budgets: { tokens: 7 } }, two: { keys: [] } }
  assert.deepStrictEqual(limitsOfKeys({ budgets: { requests: 5, tokens: 6 }, tenants }), {
    limits: { requests: 5, tokens: 6 },
    tenants: { one: { limits: { tokens: 7 } }, two: {} }
  })
})
