import { assert, describe, it } from "@effect/vitest"
import { call, type Content, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { curatedIndexes, isValidModel, type ValidityRule } from "../../../src/domain/conversation/Curation.ts"
import { curate } from "../../support/curate.ts"

const said = (value: string): Content => user(text(value))
const answered = (value: string): Content => model(text(value))
const empty: Content = model(text(""))
const both: ReadonlyArray<ValidityRule> = ["older", "newer"]

describe("curation", () => {
  it.each(both)("keeps every user message, including empty ones and bare responses (%s)", (rule) => {
    const contents = [said("a"), user(response("read", { output: "x" }, "1")), user(), said(""), user({})]
    assert.deepStrictEqual(curate(contents, rule), contents)
  })

  it.each(both)("drops a run with an invalid message (%s)", (rule) => {
    const contents = [said("q"), answered("good"), empty, answered("good too"), said("next"), answered("kept")]
    assert.deepStrictEqual(curatedIndexes(contents, rule), [0, 4, 5])
  })

  it.each(both)("keeps a run of valid messages (%s)", (rule) => {
    const contents = [said("q"), answered("one"), model(call("read", {}, "1")), answered("two")]
    assert.deepStrictEqual(curatedIndexes(contents, rule), [0, 1, 2, 3])
  })

  it.each(both)("a user message ends a run, even an empty one (%s)", (rule) => {
    assert.deepStrictEqual(
      curatedIndexes([answered("kept"), user(), empty, user(), answered("kept")], rule),
      [0, 1, 3, 4]
    )
  })

  it.each(both)("keeps the user message before a dropped run (%s)", (rule) => {
    assert.deepStrictEqual(curate([said("first"), empty], rule), [said("first")])
  })

  it.each(both)("a dropped run at either end removes nothing else (%s)", (rule) => {
    assert.deepStrictEqual(curatedIndexes([empty, said("a"), said("b"), answered("c"), empty], rule), [1, 2])
  })

  it.each(both)("keeps an empty history empty (%s)", (rule) => {
    assert.deepStrictEqual(curate([], rule), [])
  })

  it("returns the same message objects", () => {
    const contents = [said("a"), answered("b")]
    assert.isTrue(curate(contents).every((content, index) => content === contents[index]))
  })
})

const cases: ReadonlyArray<readonly [name: string, parts: ReadonlyArray<Part>, older: boolean, newer: boolean]> = [
  ["no parts", [], false, true],
  ["text", [{ text: "x" }], true, true],
  ["a part without keys", [{}], false, false],
  ["a part without keys beside a good one", [{ text: "x" }, {}], false, false],
  ["empty text", [{ text: "" }], false, false],
  ["empty text beside a good part", [{ text: "x" }, { text: "" }], false, false],
  ["empty text with thought: false", [{ text: "", thought: false }], false, false],
  ["empty text with callIndex", [{ text: "", callIndex: 0 }], false, false],
  ["an empty thought", [{ text: "", thought: true }], true, true],
  ["a thought", [{ text: "hm", thought: true }], true, true],
  ["white space", [{ text: " " }], true, true],
  ["empty text with a signature", [{ text: "", thoughtSignature: "s" }], false, true],
  ["empty text with a call", [{ text: "", functionCall: { name: "read" } }], false, true],
  ["a call", [{ functionCall: { name: "read" } }], true, true],
  ["media", [{ inlineData: { mimeType: "image/png", data: "" } }], true, true]
]

describe("validity", () => {
  it.each(cases)("March 2026: %s", (_, parts, older) => {
    assert.strictEqual(isValidModel({ role: "model", parts }, "older"), older)
  })
  it.each(cases)("later: %s", (_, parts, __, newer) => {
    assert.strictEqual(isValidModel({ role: "model", parts }, "newer"), newer)
  })
})
