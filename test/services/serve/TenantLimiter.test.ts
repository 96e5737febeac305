import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { TooMany } from "../../../src/services/serve/ServeErrors.ts"
import { SharedUsage, type UsageOfAll, TenantLimiter } from "../../../src/services/serve/TenantLimiter.ts"
import { assert, it, layer } from "../../support/vitest.ts"

const limits = { turns: 2, streams: 1, requests: 3, tokens: 100 }
const fresh = TenantLimiter.layer({ tenants: { acme: { limits }, zeta: { limits } } })
const refused = <A>(work: Effect.Effect<A, TooMany>) =>
  Effect.map(Effect.flip(work), ({ message, retryAfter }) => `${message} (${retryAfter})`)

it.effect("turns and streams are counted apart, for each tenant, and given back once", fresh, function* () {
  const { take } = yield* TenantLimiter
  const full = "the limit of 2 turns that run at a time is reached; let one end first (5)"
  const first = yield* take("acme", "turns")
  const second = yield* take("acme", "turns")
  assert.strictEqual(yield* refused(take("acme", "turns")), full)
  yield* Effect.asVoid(take("acme", "streams"))
  yield* Effect.asVoid(take("zeta", "turns"))
  // A turn that was promised is taken above the limit, and counts.
  const promised = yield* take("acme", "turns", { isAccepted: true })
  yield* first
  yield* first
  assert.strictEqual(yield* refused(take("acme", "turns")), full)
  yield* promised
  yield* Effect.asVoid(take("acme", "turns"))
  assert.strictEqual(yield* refused(take("acme", "turns")), full)
  yield* second
})

it.effect(
  "what requests may cost is held back until they end, from those alone that begin meanwhile",
  fresh,
  function* () {
    const { reserve, tokens } = yield* TenantLimiter
    // One request may cost more than is left: nobody knows before.
    const settled = yield* reserve("acme", 150)
    const full = "requests that run may use the rest of the limit of 100 tokens a day; let one end first (5)"
    for (let n = 0; n < 30; n += 1) assert.strictEqual(yield* refused(reserve("acme", 1)), full)
    yield* Effect.asVoid(reserve("zeta", 1))
    yield* tokens("acme", 40)
    yield* settled
    yield* settled
    const [one, other] = [yield* reserve("acme", 30), yield* reserve("acme", 30)]
    assert.strictEqual(yield* refused(reserve("acme", 1)), full)
    yield* one
    yield* Effect.asVoid(reserve("acme", 1))
    yield* other
    yield* tokens("acme", 60)
    assert.match(yield* refused(reserve("acme", 1)), /^the limit of 100 tokens a day is reached/)
  }
)

it.effect("what a client says that a request may cost is given back to the last token", fresh, function* () {
  const { reserve } = yield* TenantLimiter
  const full = "requests that run may use the rest of the limit of 100 tokens a day; let one end first (5)"
  for (const amount of [1e308, Infinity, -1e9]) {
    const [one, other] = [yield* reserve("acme", 10), yield* reserve("acme", amount)]
    yield* other
    yield* one
    const [last, least] = [yield* reserve("acme", 99), yield* reserve("acme", -1e9)]
    yield* Effect.flatMap(reserve("acme", 1), (settled) => settled)
    const rest = yield* reserve("acme", 0.5)
    assert.strictEqual(yield* refused(reserve("acme", 1)), full)
    for (const settled of [last, least, rest]) yield* settled
  }
})

it.effect("what has one name counts once, as long as somebody holds it", fresh, function* () {
  const { take } = yield* TenantLimiter
  const [one, other] = [yield* take("acme", "streams", { name: "s" }), yield* take("acme", "streams", { name: "s" })]
  const full = "the limit of 1 event streams that are open at a time is reached; let one end first (5)"
  assert.strictEqual(yield* refused(take("acme", "streams", { name: "t" })), full)
  yield* one
  yield* one
  assert.strictEqual(yield* refused(take("acme", "streams", { name: "t" })), full)
  yield* other
  yield* Effect.asVoid(take("acme", "streams", { name: "t" }))
})

layer(fresh)((it) => {
  it.effect("requests are counted by the minute, and tokens by the day", function* () {
    const limiter = yield* TenantLimiter
    for (let n = 0; n < 3; n += 1) yield* limiter.request("acme")
    yield* TestClock.adjust("20 seconds")
    assert.match(yield* refused(limiter.request("acme")), /^the limit of 3 requests a minute is reached.* \(40\)$/)
    yield* limiter.request("zeta")
    yield* TestClock.adjust("40 seconds")
    yield* limiter.request("acme")
    yield* limiter.tokens("acme", 99)
    yield* limiter.checkTokens("acme")
    yield* limiter.tokens("acme", 1)
    yield* TestClock.adjust("1 hour")
    assert.match(yield* refused(limiter.checkTokens("acme")), /^the limit of 100 tokens a day is reached.* \(82800\)$/)
    yield* limiter.checkTokens("zeta")
    yield* TestClock.adjust("23 hours")
    yield* limiter.checkTokens("acme")
  })
})

it.effect("what all servers use counts, and where that is unknown, what this one uses", function* () {
  const log: Array<string> = []
  let all: { readonly used: number; readonly ageMillis: number } | undefined = { used: 4, ageMillis: 20_000 }
  let isFree = true
  const shared: UsageOfAll = {
    add: (_, kind, amount) => Effect.sync(() => (log.push(`${kind} ${amount}`), all)),
    take: (_, what, name, limit, amount) =>
      Effect.sync(() => (log.push(["take", what, name, limit, amount ?? ""].join(" ").trim()), isFree)),
    give: (_, what, name) => Effect.sync(() => void log.push(`give ${what} ${name}`))
  }
  const { checkTokens, request, reserve, take, tokens } = yield* TenantLimiter.pipe(
    Effect.provide(fresh),
    Effect.provideService(SharedUsage, shared)
  )
  // The fourth request of all, of three a minute that began 20 seconds ago.
  const wait = "the limit of 3 requests a minute is reached; try again in 40 seconds (40)"
  yield* TestClock.adjust("1 minute")
  assert.strictEqual(yield* refused(request("acme")), wait)
  // It is known now, and not asked again.
  assert.strictEqual(yield* refused(request("acme")), wait)
  all = { used: 100, ageMillis: 0 }
  yield* tokens("acme", 7)
  yield* Effect.flip(checkTokens("acme"))
  all = undefined
  yield* request("zeta")
  const first = yield* take("acme", "turns", { name: "one" })
  const second = yield* take("acme", "turns", { name: "one", isAccepted: true })
  yield* first
  yield* second
  isFree = false
  yield* refused(take("acme", "turns", { name: "other" }))
  yield* refused(reserve("zeta", 30))
  isFree = true
  // What was refused is not held here.
  yield* yield* reserve("zeta", 200)
  // Where tokens are not limited, nothing is held back, and no other server is asked.
  yield* yield* reserve("free", 200)
  yield* Effect.asVoid(take("acme", "turns", { name: "other" }))
  assert.deepStrictEqual(log, [
    "requests 1",
    "tokens 7",
    "tokens 0",
    "requests 1",
    "take turns one 2",
    "take turns one",
    "give turns one",
    "take turns other 2",
    "tokens 0",
    "take reserved request 1 100 30",
    "tokens 0",
    "take reserved request 2 100 100",
    "give reserved request 2",
    "take turns other 2"
  ])
})
