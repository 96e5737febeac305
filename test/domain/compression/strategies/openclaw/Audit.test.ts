import { assert, describe, it } from "@effect/vitest"
import { audit, completed } from "../../../../../src/domain/compression/strategies/openclaw/Audit.ts"

it("a completed summary says nothing is there where nothing was added alone", () => {
  const summary = "## Exact identifiers\nNone.\n\n## Pending user asks\nNone."
  assert.strictEqual(
    completed(summary, { headings: [], identifiers: ["a-1"], ask: false }, ""),
    "## Exact identifiers\n- a-1\n\n## Pending user asks\nNone."
  )
})

describe("whether a summary is about what the user asked last", () => {
  const headings = ["Decisions", "Open TODOs", "Constraints/Rules", "Pending user asks", "Exact identifiers"]
  it.each([
    ["one of two words", "Fix the parser and lexer", "The lexer.", true],
    ["one of three words", "Fix parser, lexer and printer", "The lexer.", false],
    ["two of three words, in capitals", "Fix parser, lexer and printer", "LEXER, PARSER", true],
    ["only common words", "What would you want with this", "Nothing.", true],
    [
      "only the common words of a longer request",
      "What should that parser do before lexer",
      "What should that do before.",
      false
    ],
    [
      "the thirteenth word",
      "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn",
      "mmmm nnnn",
      false
    ],
    ["the twelfth word", "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll", "kkkk llll", true]
  ])("%s", (_, ask, words, isAbout) => {
    const summary = `${headings.map((heading) => `## ${heading}\nNone.`).join("\n")}\n${words}`
    assert.strictEqual(audit(summary, { ask, identifiers: [] })?.ask ?? false, !isAbout)
  })
})
