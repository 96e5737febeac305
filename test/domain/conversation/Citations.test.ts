import { assert, describe, it } from "@effect/vitest"
import { withCitations, type CitedPassage } from "../../../src/domain/conversation/Citations.ts"

const sources = [
  { uri: "https://a.example/", title: "A" },
  { uri: "https://b.example/", title: "" }
]
const list = "\n\nSources:\n[1] A (https://a.example/)\n[2] https://b.example/"

describe("a text with its sources", () => {
  const cases: ReadonlyArray<
    readonly [rule: string, text: string, supports: ReadonlyArray<CitedPassage>, result: string]
  > = [
    ["no passage is marked where none is told", "One. Two.", [], "One. Two."],
    ["a mark stands where its passage ends", "One. Two.", [{ end: 4, sources: [0] }], "One.[1] Two."],
    [
      "marks come in the order of places",
      "One. Two.",
      [
        { end: 9, sources: [1] },
        { end: 4, sources: [0] }
      ],
      "One.[1] Two.[2]"
    ],
    [
      "places are counted in bytes",
      "É✓🙂x",
      [
        { end: 5, sources: [0] },
        { end: 9, sources: [1] }
      ],
      "É✓[1]🙂[2]x"
    ],
    [
      "no character is parted",
      "É✓",
      [
        { end: 3, sources: [0] },
        { end: 1, sources: [1] }
      ],
      "É[2]✓[1]"
    ],
    ["a place behind the end is the end", "One.", [{ end: 400, sources: [1, 0, 1] }], "One.[2][1]"],
    ["a source that is not listed has no mark", "One.", [{ end: 4, sources: [9] }], "One."]
  ]
  for (const [rule, text, supports, result] of cases) {
    it(rule, () => assert.strictEqual(withCitations(text, sources, supports), result + list))
  }

  it("without sources returns the text", () =>
    assert.strictEqual(withCitations("One.", [], [{ end: 1, sources: [0] }]), "One."))
})
