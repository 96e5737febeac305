import { assert, describe, it } from "@effect/vitest"
import { columnsOf, plain } from "../../../src/cli/output/Output.ts"
import { treeText } from "../../../src/cli/output/TreeText.ts"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import { type Author, entryId } from "../../../src/domain/conversation/Conversation.ts"
import type { SessionEvent } from "../../../src/domain/session/Session.ts"
import { sessionTree } from "../../../src/domain/session/SessionTree.ts"
import { entry, sessionOf, started } from "../../../src/layers/testing/SessionHistories.ts"

const now = 1_763_000_000_000
const said = (n: number, words: string, author?: Author): SessionEvent => ({
  _tag: "Appended",
  entry: {
    ...entry(n, []),
    content: n % 2 === 1 ? user(text(words)) : model(text(words)),
    at: now - (20 - n) * 60_000,
    ...(author === undefined ? {} : { author })
  }
})
const back = (from: number): SessionEvent => ({ _tag: "Branched", at: now, from: entryId(from) })
const label = (id: number, words: string): SessionEvent => ({
  _tag: "Labelled",
  at: now,
  entry: entryId(id),
  label: words
})
const drawn = (events: ReadonlyArray<SessionEvent>, columns = 80, all = false) =>
  treeText(sessionTree(sessionOf([started("s"), ...events])), { columns, now, style: plain, all })

const events = [
  said(1, "Fix the parser."),
  said(2, "Done."),
  said(3, "Now the docs."),
  said(4, "Written."),
  back(2),
  said(5, "Now the tests."),
  said(6, "Tested."),
  said(7, "And the benchmark."),
  back(6),
  said(9, "And the changelog."),
  said(10, "Changed."),
  label(6, "tests\u001b[31m done")
]

describe("the drawing of a tree", () => {
  it("indents branches only, and marks labels and the current end", () => {
    assert.strictEqual(
      drawn(events),
      [
        "e1  user: Fix the parser.  19 min ago",
        "e2  model: Done.  18 min ago",
        "├ e3  user: Now the docs.  17 min ago",
        "│ e4  model: Written.  16 min ago",
        "└ e5  user: Now the tests.  15 min ago",
        "  e6  model: Tested.  [tests done]  14 min ago",
        "  ├ e7  user: And the benchmark.  13 min ago",
        "  └ e9  user: And the changelog.  11 min ago",
        "    e10  model: Changed.  10 min ago  ← here"
      ].join("\n")
    )
  })

  it("leaves out messages that neither begin nor end a branch, unless all are requested", () => {
    const linear = [said(1, "One."), said(2, "Two."), said(3, "Three."), said(4, "Four.")]
    assert.deepStrictEqual(
      drawn(linear)
        .split("\n")
        .map((line) => line.slice(0, 2)),
      ["e1", "e3", "e4"]
    )
    assert.lengthOf(drawn(linear, 80, true).split("\n"), 4)
  })

  it("gives a branch its mark where its first messages are left out", () => {
    const hidden = [
      said(1, "One."),
      back(1),
      said(2, "Two."),
      said(3, "Three."),
      back(1),
      said(4, "Four."),
      said(5, "Five.")
    ]
    assert.deepStrictEqual(
      drawn(hidden)
        .split("\n")
        .map((line) => line.split("  ")[0]),
      ["e1", "├ e3", "└ e5"]
    )
  })

  it("fits its columns", () => {
    for (const line of drawn([...events, said(11, "long ".repeat(100))], 60).split("\n")) {
      assert.isAtMost(columnsOf(line), 60, line)
    }
  })
})
