import { assert, it } from "@effect/vitest"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import type { VisibleBlock } from "../../../src/domain/wire/AnswerForm.ts"
import { woven } from "../../../src/domain/wire/HiddenExchange.ts"

/** What is left of the client's message once the blocks of the hidden rounds are taken from its beginning. */

const said = (text: string): VisibleBlock => ({ kind: "text", text })
const thought: VisibleBlock = { kind: "thought", text: "" }
const other: VisibleBlock = { kind: "other", text: "" }
const text = (words: string) => ({ type: "text", text: words })
const thinking = (type = "thinking") => ({ type, signature: "s" })
const image = { type: "image", source: {} }
const use = { type: "tool_use", id: "c1" }
const calls = [{ id: "c1" }]

it.each<
  readonly [rule: string, visible: ReadonlyArray<VisibleBlock>, message: object, left: object | "all" | "nothing"]
>([
  ["a text", [said("A. ")], { content: "A. 12." }, { content: "12." }],
  [
    "all of a text beside calls",
    [said("A.")],
    { content: "A.", tool_calls: calls },
    { content: null, tool_calls: calls }
  ],
  ["the whole message", [said("A.")], { content: "A." }, "nothing"],
  ["the text of two rounds in one", [said("A. "), said("B. ")], { content: "A. B. C." }, { content: "C." }],
  ["no text but spaces", [said(" ")], { content: " C." }, "all"],
  ["other words", [said("A.")], { content: "B." }, "all"],
  [
    "a thought and a text",
    [thought, said("A.")],
    { content: [thinking(), text("A."), text("C.")] },
    { content: [text("C.")] }
  ],
  ["two thoughts", [thought, thought], { content: [thinking(), thinking(), use] }, { content: [use] }],
  ["a hidden thought", [thought], { content: [thinking("redacted_thinking"), text("C.")] }, { content: [text("C.")] }],
  ["one thought of two", [thought], { content: [thinking(), thinking(), use] }, { content: [thinking(), use] }],
  [
    "no thought, where none was hidden",
    [said("A.")],
    { content: [text("A."), thinking(), use] },
    { content: [thinking(), use] }
  ],
  ["another block", [other, said("A.")], { content: [image, text("A."), use] }, { content: [use] }],
  ["no block beyond the hidden ones", [said("A.")], { content: [image, text("A.")] }, "all"],
  ["a text that was cut", [said("A. ")], { content: [text("A"), use] }, "all"]
])("%s leaves it", (_, visible, message, left) => {
  const raw = JSON.stringify({ role: "assistant", ...message })
  const hidden = JSON.stringify({ role: "assistant", content: [text("A."), { ...use, id: "r1" }] })
  const found = woven(
    wire["tool_calls" in message ? "chat" : "anthropic"],
    { rounds: [{ sent: [hidden, "result"], visible }] },
    [raw, "next"]
  )
  const [first, ...rest] = found?.sent ?? []
  const isSame = left === "all"
  // Where the words are not found again, only the hidden call goes before the client's message.
  const isFound = !isSame || visible.every((block) => block.text.trim() === "")
  assert.strictEqual(first, isFound ? hidden : hidden.replace('{"type":"text","text":"A."},', ""))
  const expected = left === "nothing" ? [] : [isSame ? raw : JSON.stringify({ role: "assistant", ...left })]
  assert.deepStrictEqual([rest, found?.consumed], [["result", ...expected], 1])
})

it("a call beside none of the client's is not put back", () => {
  const beside = { calls: ["{}"], results: [JSON.stringify({ content: [{}] })] }
  const next = JSON.stringify({ role: "user", content: [{ type: "tool_result" }] })
  const answers = [
    ["anthropic", { role: "assistant", content: [] }],
    ["chat", { role: "assistant", content: "A.", tool_calls: [] }]
  ] as const
  for (const [dialect, message] of answers) {
    const raw = JSON.stringify(message)
    assert.deepStrictEqual(woven(wire[dialect], { rounds: [], beside }, [raw, next]), { sent: [raw], consumed: 1 })
  }
})
