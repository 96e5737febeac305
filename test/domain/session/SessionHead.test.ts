import { assert, describe, it } from "@effect/vitest"
import { call, response, text } from "../../../src/domain/content/Content.ts"
import type { Author } from "../../../src/domain/conversation/Conversation.ts"
import type { SessionEvent } from "../../../src/domain/session/Session.ts"
import { headOf, titleOf } from "../../../src/domain/session/SessionHead.ts"
import { appended, entry, started } from "../../../src/layers/testing/SessionHistories.ts"

const by = (author: Author, sequence: number, words: string): SessionEvent => ({
  _tag: "Appended",
  entry: { ...entry(sequence, [text(words)]), author }
})

it.each([
  ["  as it is  ", "as it is"],
  ["two\r\nlines\u2028and\tone", "two lines and one"],
  ["\u001b[31mred\u001b[0m\u0007\u0000", "red\\u{7}\\u{0}"],
  ["right \u202eto left", "right \\u{202e}to left"],
  ["\ud800", "\\u{d800}"],
  [" \n ", ""]
])("a title is one line that is safe for a terminal: %j", (given, title) => {
  assert.strictEqual(titleOf(given), title)
})

describe("the first lines of a log", () => {
  const first = { ...started("s"), model: "m", cwd: "/w" }

  it("give the time, folder and model of the start", () => {
    assert.deepStrictEqual(headOf([first]), {
      firstPrompt: undefined,
      model: "m",
      cwd: "/w",
      parent: undefined,
      startedAt: first.at
    })
    assert.deepStrictEqual(headOf([]), {
      firstPrompt: undefined,
      model: undefined,
      cwd: undefined,
      parent: undefined,
      startedAt: undefined
    })
  })

  it.each<readonly [string, SessionEvent]>([
    ["an environment message", by("environment", 1, "where we are")],
    ["a program", by("program", 1, "a reminder")],
    ["a summary", by("summary", 1, "what was")],
    ["the model", appended(2, text("answer"))],
    ["a tool", appended(1, response("shell", { output: "out" }))],
    ["nobody", appended(1, text(" \n"))],
    ["a call", appended(2, call("shell", {}))]
  ])("show a person's first words, not those of %s", (_, before) => {
    assert.strictEqual(headOf([first, before, appended(3, text("my\nwords"))]).firstPrompt, "my words")
    assert.isUndefined(headOf([first, before]).firstPrompt)
  })

  it("show the first words that were answered", () => {
    const answered: SessionEvent = { _tag: "Answered", message: entry(1, [text("q")]), answer: entry(2, [text("a")]) }
    assert.strictEqual(headOf([first, answered]).firstPrompt, "q")
  })
})
