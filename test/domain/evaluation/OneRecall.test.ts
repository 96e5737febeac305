import { assert, it } from "@effect/vitest"
import { DroppedText } from "../../../src/domain/evaluation/OneRecall.ts"
import { replacementOf } from "../../support/compactions.ts"

const message = ["first line", "second line", "third line", "fourth line", "fifth line"].join("\n")

/** A result shows a matching line with one line before and one after it. */
it.each<readonly [word: string, text: string, isFound: boolean]>([
  ["third", "third line", true],
  ["second", "third line", true],
  ["fourth", "third line", true],
  ["first", "third line", false],
  ["fifth", "third line", false],
  ["third", "third line\nfourth line", true],
  ["fourth", "third line\nfourth line", true],
  ["second", "third line\nfourth line", false],
  ["fifth", "third line\nfourth line", false],
  ["third", "second line\nthird line\nfourth line", true],
  ["second", "second line\nthird line\nfourth line", false],
  ["fourth", "second line\nthird line\nfourth line", false]
])("a recall of the pattern %s shows %j: %s", (word, text, isFound) => {
  const dropped = new DroppedText([])
  dropped.add(message)
  const { context } = replacementOf(word)
  assert.strictEqual(dropped.isFound(text, undefined, context, text.split("\n").length), isFound)
})
