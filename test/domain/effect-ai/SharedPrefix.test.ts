import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Prompt from "effect/ai/Prompt"
import { sameMessage, sharedPrefix } from "../../../src/domain/effect-ai/SharedPrefix.ts"
import { thousand } from "../../support/generate.ts"
import { AnyMessage, answers, messageOf, result, results, says } from "../../support/prompts.ts"
import { runsOf } from "../../support/runs.ts"

const file = (data: Prompt.FilePart["data"]) =>
  Prompt.userMessage({ content: [Prompt.filePart({ mediaType: "image/png", data })] })

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

  const different: ReadonlyArray<readonly [string, Prompt.Message, Prompt.Message]> = [
    ["a text", says("a"), says("b")],
    ["a role", says("a"), answers("a")],
    ["options", says("a"), { ...says("a"), options: { x: { y: 1 } } }],
    ["a key more", results(result("1", { a: 1 })), results(result("1", { a: 1, b: undefined }))],
    ["another key", results(result("1", { a: undefined })), results(result("1", { b: undefined }))],
    ["the length of a list", results(result("1", [1])), results(result("1", [1, 1]))],
    ["a list and a record", results(result("1", [])), results(result("1", {}))],
    ["bytes", file(new Uint8Array([1, 2])), file(new Uint8Array([1, 3]))],
    ["an address", file(new URL("https://a.example")), file(new URL("https://b.example"))],
    ["what nobody can compare", results(result("1", new Date(0))), results(result("1", new Date(1)))],
    ["one result more", results(result("1", "")), results(result("1", ""), result("2", ""))]
  ]
  for (const [name, one, other] of different) {
    it(`differ by ${name}`, () => {
      assert.isFalse(sameMessage(one, other))
      assert.isFalse(sameMessage(other, one))
    })
  }
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
