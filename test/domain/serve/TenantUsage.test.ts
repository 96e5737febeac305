import { assert, describe, it } from "@effect/vitest"
import { defaultLimits, isTenantName, limitsOf } from "../../../src/domain/serve/ServeSettings.ts"
import { limitReached, unused, used } from "../../../src/domain/serve/TenantUsage.ts"

const limits = { ...defaultLimits, requests: 2, tokens: 100 }

describe("the use of a tenant", () => {
  it("is limited in a minute for requests, in a day for tokens", () => {
    const two = used(used(unused, "requests", 1, 1_000), "requests", 1, 2_000)
    assert.isUndefined(limitReached(used(unused, "requests", 1, 1_000), "requests", limits, 2_000))
    assert.deepStrictEqual(limitReached(two, "requests", limits, 31_000), {
      limit: "requests",
      maximum: 2,
      retryAfter: 30
    })
    assert.isUndefined(limitReached(two, "requests", limits, 61_000))
    const spent = used(unused, "tokens", 150, 1_000)
    assert.strictEqual(limitReached(spent, "tokens", limits, 3_601_000)?.retryAfter, 82_800)
    assert.isUndefined(limitReached(spent, "tokens", limits, 86_401_000))
  })

  it("does not last forever when the clock goes back", () => {
    assert.isUndefined(limitReached(used(unused, "requests", 5, 1_000_000), "requests", limits, 10))
  })

  it("has the tenant's limits, else those of all, else the defaults", () => {
    const settings = { limits: { sessions: 5, turns: 3 }, tenants: { acme: { limits: { sessions: 7 } } } }
    assert.deepStrictEqual(limitsOf(settings, "acme"), { ...defaultLimits, sessions: 7, turns: 3 })
    assert.deepStrictEqual(limitsOf(settings, "constructor"), { ...defaultLimits, sessions: 5, turns: 3 })
  })

  it("belongs to a name that can be a folder", () => {
    for (const name of ["acme", "a", "a-b", "0"]) assert.isTrue(isTenantName(name), name)
    for (const name of ["", "..", "a/b", "A", "-a", "a-", "a b", "a".repeat(33), "é"])
      assert.isFalse(isTenantName(name), name)
  })
})
