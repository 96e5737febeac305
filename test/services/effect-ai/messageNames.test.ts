import { assert, describe, it } from "@effect/vitest"
import { messageText, sharedMessages } from "../../../src/services/effect-ai/PromptNames.ts"
import { answers, result, results, says } from "../../support/prompts.ts"

const bytes = (...values: ReadonlyArray<number>) => new Uint8Array(values)

it("two messages have one text if they hold the same, however alike they are", () => {
  const values: ReadonlyArray<unknown> = [
    [null, false, 0, 1, 10, 10n, "", "1", "10n", "a", "null", [], [1], [1, 1], [[1]], {}, { a: 1 }, { b: 1 }],
    [{ a: { b: 1 } }, { a: 1, b: 2 }, bytes(), bytes(97, 98), bytes(97, 99), "bytes(YWI=)"],
    [new URL("https://a.example"), new URL("https://b.example"), "https://a.example/", new Date(0)]
  ].flat()
  const messages = [
    values.map((value) => results(result("1", value))),
    [says(""), answers(""), says("a"), { ...says("a"), options: { x: { y: 1 } } }, says("ab")],
    [results(result("2", "")), results(result("1", "", true)), results(result("1", ""), result("2", ""))]
  ].flat()
  assert.strictEqual(new Set(messages.map(messageText)).size, messages.length)
  // Values that JSON leaves out are none, and the order of a message's own fields is nobody's.
  const { content, ...others } = results(result("1", { a: 1 }))
  assert.strictEqual(messageText(results(result("1", { a: 1, b: undefined }))), messageText({ content, ...others }))
})

describe("two prompts", () => {
  const [a, b, c] = [says("a"), answers("b"), says("c")]
  it.each([
    [[], [], 0],
    [[], [a], 0],
    [[a, b, c], [a, b], 2],
    [[a, b], [a, b, c], 2],
    [[a, says("x"), c], [a, b, c], 1],
    [[a, b, c], [a, answers("b"), c, a], 3],
    [[a, b, c], [says("a"), says("b"), says("c")], 1],
    [[b], [a], 0]
  ] as const)("share the messages before the first different one: %#", (one, other, shared) =>
    assert.strictEqual(sharedMessages(one, other), shared)
  )
})
