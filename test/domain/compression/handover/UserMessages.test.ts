import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import type { Span } from "../../../../src/domain/compression/evidence/UserRequests.ts"
import { cost } from "../../../../src/domain/compression/handover/Budget.ts"
import { shownMessages } from "../../../../src/domain/compression/handover/UserMessages.ts"
import { userWordsIn } from "../../../../src/domain/compression/Snapshot.ts"
import { Handle } from "../../../../src/domain/content/Handle.ts"
import { entryId } from "../../../../src/domain/conversation/Conversation.ts"
import { runsOf } from "../../../support/runs.ts"

const spanOf = (text: string, index: number): Span => ({
  entry: entryId(index * 2 + 1),
  part: 0,
  start: 0,
  end: text.length,
  text,
  handle: index % 2 === 0 ? Handle.make("h_aaaaaaaaaa") : undefined,
  at: index % 3 === 0 ? undefined : index * 60_000
})

describe("an answer to a question", () => {
  const asked = (text: string, index: number): Span => ({
    ...spanOf(text, index),
    question: "Which rig: a/b? This is one app"
  })
  it("is shown with its question, and is not the latest request", () => {
    const spans = [spanOf("Set up the linters.", 0), spanOf("Be quick.", 1), asked("No rig", 2)]
    const shown = (budget: number) =>
      shownMessages(spans, spans[0])
        .show(budget)
        .map(({ text }) => text.split(":")[0])
    assert.deepStrictEqual(shown(1_000), [
      "original request",
      "latest request",
      "answer to the question Which rig a b? (e5)"
    ])
  })
})

const Piece = Schema.Literals([
  "Fix the parser in src/Parse.ts.\n",
  "never touch src/legacy",
  "😀",
  "e\u0301",
  "\r\n",
  "必須",
  " ",
  "</user_words>",
  '<user_words entry="e1">',
  "</state_snapshot>",
  "[palimpsest: written by the runtime, not by the user] ",
  "&lt;",
  "- … 12 more characters: h_aaaaaaaaaa …\n",
  "latest request:\n",
  "0123456789".repeat(30),
  "Read the file and tell me what it does. ".repeat(20)
])
const Message = Arbitrary.filter(
  Arbitrary.map(Arbitrary.array(Arbitrary.schema(Piece), { minLength: 1, maxLength: 12 }), (pieces) =>
    pieces.join("").trim()
  ),
  (text) => text !== ""
)
const Messages = Arbitrary.array(Message, { minLength: 1, maxLength: 40 })
const Budget = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 400, maximum: 8_000 })))
const runs = (seed: string) => ({ arbitrary: { runs: runsOf(300), seed, size: 20, maxShrinks: 100 } })

describe("the user's messages within a budget", () => {
  it.prop(
    "every shown span is an exact piece of its message, in order, the first and the last among them",
    [Messages, Budget],
    ([texts, budget]) => {
      const spans = texts.map(spanOf)
      const items = shownMessages(spans, spans[0]).show(budget)
      const words = items.flatMap((item) => userWordsIn(item.text))
      for (const { entry, text } of words) {
        const whole = spans.find((span) => span.entry === entry)?.text ?? ""
        assert.include(whole, text)
        assert.isTrue(text.isWellFormed(), JSON.stringify(text))
      }
      const shown = [...new Set(words.map(({ entry }) => entry))]
      const expected = spans.map((span): string => span.entry)
      assert.deepStrictEqual(
        shown,
        expected.filter((entry) => shown.includes(entry))
      )
      assert.include(shown, spans[0]?.entry)
      assert.include(shown, spans.at(-1)?.entry)
    },
    runs("messages, exact")
  )

  it.prop(
    "they fit the budget",
    [Messages, Budget],
    ([texts, budget]) => {
      const items = shownMessages(texts.map(spanOf)).show(budget)
      const total = items.reduce((sum, item) => sum + cost(item), 0)
      assert.isAtMost(total, budget)
    },
    runs("messages, budget")
  )

  it.prop(
    "with room for all, all are whole",
    [Messages],
    ([texts]) => {
      const items = shownMessages(texts.map(spanOf)).show(1_000_000)
      assert.deepStrictEqual(
        items.flatMap((item) => userWordsIn(item.text)).map(({ text }) => text),
        texts
      )
    },
    runs("messages, whole")
  )

  it("says how many messages it leaves out, and which", () => {
    const spans = Array.from({ length: 2_000 }, (_, n) => spanOf(`Go on with step ${n} of the plan.`, n))
    const items = shownMessages(spans, spans[0]).show(1_000)
    const words = items.flatMap((item) => userWordsIn(item.text))
    const [note] = items.filter((item) => item.text.includes("are not shown here"))
    assert.match(note?.text ?? "", new RegExp(`^- ${2_000 - words.length} messages of the user \\(e3 to e\\d+\\)`))
    assert.strictEqual(words[0]?.text, spans[0]?.text)
    assert.strictEqual(words.at(-1)?.text, spans.at(-1)?.text)
  })

  it("the original request is shown, whatever stands before it", () => {
    const spans = [
      spanOf("hi", 0),
      ...Array.from({ length: 200 }, (_, n) => spanOf(`Do step ${n} of the plan now.`, n + 1))
    ]
    const items = shownMessages(spans, spans[1]).show(400)
    const words = items.flatMap((item) => userWordsIn(item.text))
    assert.strictEqual(items.filter((item) => item.text.startsWith("original request:\n")).length, 1)
    assert.strictEqual(words[0]?.text, "Do step 0 of the plan now.")
    assert.include(items[1]?.text, `- ${201 - words.length} messages of the user (e1 to `)
  })

  it("with less room the ends of all are shorter, then old messages are left out", () => {
    const words = "look at the old mill road ".repeat(7)
    const spans = Array.from({ length: 12 }, (_, n) => ({ ...spanOf(`Step ${n}: ${words}`, n), at: undefined }))
    const shortest = (budget: number) => {
      const items = shownMessages(spans).show(budget)
      return Math.min(...items.map(({ text }) => userWordsIn(text).reduce((sum, each) => sum + each.text.length, 0)))
    }
    // In the end one item is the note, which has no words.
    assert.deepStrictEqual([700, 480, 360].map(shortest), [190, 59, 0])
  })

  it("a long message shows its beginning, its end, and where the rest is", () => {
    const text = `First, read the plan. ${"Then go on. ".repeat(2_000)}Report at the end.`
    const items = shownMessages([spanOf(text, 0)]).show(500)
    const [head, tail] = items.flatMap((item) => userWordsIn(item.text))
    assert.isTrue(text.startsWith(head?.text ?? "x"))
    assert.isTrue(text.endsWith(tail?.text ?? "x"))
    const left = text.length - (head?.text.length ?? 0) - (tail?.text.length ?? 0)
    assert.include(items[0]?.text, `- … ${left} more characters: h_aaaaaaaaaa …`)
  })

  it("the one message is the original and the latest", () => {
    const span = spanOf("Fix it.", 0)
    assert.isTrue(shownMessages([span], span).show(500)[0]?.text.startsWith("original request:\n"))
    assert.deepStrictEqual(shownMessages([]).show(500), [])
  })
})
