import { Effect } from "effect"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import {
  type Match,
  searchedTexts,
  sessionMatcher,
  speakerOfMatch,
  wordsQuery
} from "../../../../src/domain/transcripts/facts/SessionSearch.ts"
import * as Patterns from "../../../../src/services/platform/Patterns.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const marked = (match: Match | undefined): string | undefined =>
  match === undefined
    ? undefined
    : match.marks.reduceRight(
        (text, [start, end]) => `${text.slice(0, start)}[${text.slice(start, end)}]${text.slice(end)}`,
        match.text
      )
const found = (query: string, ...texts: ReadonlyArray<string>) =>
  marked(runSync(sessionMatcher(wordsQuery(query))(texts)))

describe("a search for words", () => {
  const long = `${"a ".repeat(200)}tides ${"z ".repeat(200)}`
  it.each<readonly [rule: string, found: string | undefined, expected: string | undefined]>([
    ["begins words, in any case", found("TIDE", "High tides."), "High [tide]s."],
    ["begins none in their middle", found("ide", "High tides."), undefined],
    ["but anywhere in scripts without blanks", found("\u6f6e", "\u9ad8\u6f6e"), "\u9ad8[\u6f6e]"],
    ["wants all words, over all texts", found("tides moon", "High tides.", "The moon."), "High [tides]."],
    ["finds nothing without one of them", found("tides moon", "High tides."), undefined],
    ["shows the line with most of them", found("tides moon", "tides\nmoon and tides\nmoon"), "[moon] and [tides]"],
    ["takes a phrase in quotes as one word", found('"high tides"', "tides high\nhigh  tides"), "[high  tides]"],
    ["shows a line without the blanks around it", found("x", "  x y \n z"), "[x] y"],
    ["of nothing finds nothing", found("", "x"), undefined],
    [
      "shows of a long line what is around the match",
      found("tides", long),
      `…${long.slice(347, 400)}[tides]${long.slice(405, 507)}…`
    ]
  ])("%s", (_, actual, expected) => assert.strictEqual(actual, expected))

  const ide = "# Context from my IDE setup:\n\n## Open tabs:\n- a.ts\n\n## My request for Codex:\nMake it strict."
  it.each([
    ["strict", ide, "user"],
    ["tabs", ide, "program"],
    ["1482", "<command-name>/review</command-name>\n<command-args>1482 the SQL</command-args>", "user"],
    ["Go", "<system-reminder>\nx\n</system-reminder>\nGo on.", "user"],
    ["x", "<system-reminder>\nx\n</system-reminder>\nGo on.", "program"]
  ])("says who said %s in a message of the user", (word, text, speaker) => {
    const record = { type: "user", message: { role: "user", content: text } }
    const match = runSync(sessionMatcher(wordsQuery(word))(searchedTexts(record)))
    assert.strictEqual(match && speakerOfMatch(record, match), speaker)
  })

  it("knows the beginnings of words that an index has, unless words have no blanks", () => {
    const tokensOf = (text: string) => {
      const query = wordsQuery(text)
      return query._tag === "Words" ? query.tokens : []
    }
    assert.deepStrictEqual(tokensOf('src/Parse.ts "High tides" HIGH'), ["src", "parse", "ts", "high", "tides"])
    assert.deepStrictEqual(tokensOf("tides \u6f6e"), [])
  })
})

it.effect.each<readonly [pattern: string, texts: ReadonlyArray<string>, expected: string | undefined]>([
  ["t\\w+s", ["low\nHigh tides.\nand tins"], "High [tides]."],
  ["^moon", ["the moon", "sun\nmoon"], "[moon]"],
  ["end$", ["the end\nof it"], "the [end]"],
  ["stars", ["the moon"], undefined]
])("a search for a pattern %j", ([source, texts, expected]) =>
  Effect.map(Patterns.compile(source, { ignoresCase: false }), (pattern) =>
    assert.strictEqual(marked(runSync(sessionMatcher({ _tag: "Pattern", pattern })(texts))), expected)
  )
)
