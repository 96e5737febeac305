import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { messageText } from "../../../src/domain/conversation/MessageName.ts"
import { sameMessage, sharedPrefix } from "../../../src/domain/effect-ai/SharedPrefix.ts"
import { thousand } from "../../support/generate.ts"
import { AnyMessage, answers, messageOf, result, results, says } from "../../support/prompts.ts"
import { runsOf } from "../../support/runs.ts"

describe("two messages", () => {
  it.effect.prop(
    "are equal when made of the same parts",
    [AnyMessage, AnyMessage],
    ([one, other]) =>
      Effect.sync(() => {
        assert.isTrue(sameMessage(messageOf(one), messageOf(one)))
        const isSame = JSON.stringify(one) === JSON.stringify(other)
        if (!isSame && one.role !== other.role) assert.isFalse(sameMessage(messageOf(one), messageOf(other)))
      }),
    { arbitrary: { ...thousand("same"), runs: runsOf(1_000, 60) } }
  )

  const bytes = (...values: ReadonlyArray<number>) => new Uint8Array(values)
  const values: ReadonlyArray<unknown> = [
    [undefined, null, false, 0, 1, "", "1", "a", [], [1], [1, 1], [[1]], {}],
    [{ a: undefined }, { b: undefined }, { a: 1 }, { a: 1, b: undefined }, { a: { b: 1 } }],
    [bytes(), bytes(1), bytes(1, 2), bytes(1, 3), new URL("https://a.example"), new URL("https://b.example")],
    // Nobody can compare these.
    [new Date(0), new Date(0)]
  ].flat()
  const messages = [
    values.map((value) => results(result("1", value))),
    [says(""), answers(""), says("a"), { ...says("a"), options: { x: { y: 1 } } }, says("ab")],
    [results(result("2", "")), results(result("1", "", true)), results(result("1", ""), result("2", ""))]
  ].flat()
  it("differ by what they hold, however alike it is", () => {
    for (const [at, one] of messages.entries()) {
      for (const [other, message] of messages.entries()) {
        assert.strictEqual(
          sameMessage(one, message),
          at === other,
          `${JSON.stringify(one)} and ${JSON.stringify(message)}`
        )
      }
    }
  })
})

it("messages with the same name are equal, whatever they hold", () => {
  const bytes = new Uint8Array([97, 98])
  const values = [
    [null, false, 0, 1, 10, 10n, "", "1", "10n", "a", "null", [], [1], [1, 1], {}, { a: 1 }, { b: 1 }, { a: { b: 1 } }],
    [bytes, "bytes(YWI=)", new URL("https://a.example"), "https://a.example/", new Date(0)]
  ].flat()
  const names = values.map((value) => messageText(results(result("1", value))))
  assert.strictEqual(new Set(names).size, values.length)
  // Values that JSON leaves out are none, and the order of a message's own fields is nobody's.
  const [{ content, ...others }] = [results(result("1", { a: 1 }))]
  assert.strictEqual(messageText(results(result("1", { a: 1, b: undefined }))), messageText({ content, ...others }))
})

describe("two prompts", () => {
  it("share a prefix up to the first different message", () => {
    const [a, b, c] = [says("a"), answers("b"), says("c")]
    assert.deepStrictEqual(sharedPrefix([], []), { shared: 0, identical: 0 })
    assert.deepStrictEqual(sharedPrefix([a, b, c], [a, b]), { shared: 2, identical: 2 })
    assert.deepStrictEqual(sharedPrefix([a, says("x"), c], [a, b, c]), { shared: 1, identical: 1 })
    assert.deepStrictEqual(sharedPrefix([a, b, c], [a, answers("b"), c, a]), { shared: 3, identical: 1 })
    assert.deepStrictEqual(sharedPrefix([b], [a]), { shared: 0, identical: 0 })
  })
})
