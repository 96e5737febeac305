import { assert, it } from "@effect/vitest"
import { closedPart, textsBetween } from "../../../src/domain/text/TextsBetween.ts"

it.each<readonly [what: string, text: string, texts: ReadonlyArray<string>]>([
  ["each pair of a tag", "<a>1</a> and <a>\n 2 \n</a>", ["1", "2"]],
  ["no other tag", "<ab>1</ab> <b><a>2</a></b>", ["2"]],
  ["nothing that is not closed", "<a>1</a><a>2", ["1"]],
  ["what stands in an open tag of its own", "<a><a>1</a>", ["<a>1"]],
  ["nothing after many blanks, in linear time", `<a>${" ".repeat(200_000)}x`, []],
  ["nothing after many open tags, in linear time", "<a>".repeat(200_000), []]
])("the texts between tags are %s", (_, text, texts) => assert.deepStrictEqual(textsBetween(text, "a"), texts))

it("the closed part of a text ends with its last closing tag", () => {
  assert.strictEqual(closedPart("<a>1</a> <a>2</A> <a>3", /<\/a>/gi), "<a>1</a> <a>2</A>")
  assert.strictEqual(closedPart("<a>", /<\/a>/gi), "")
})
