import { assert, describe, it } from "@effect/vitest"
import { call, type Content, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import {
  append,
  type Author,
  type Conversation,
  empty,
  type Entry,
  entryId
} from "../../../src/domain/conversation/Conversation.ts"
import { recordedTurns, RequestPrefixes } from "../../../src/domain/evaluation/Replay.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"

const says = (words: string) => model(text(words))
const ask = (words: string) => user(text(words))
const thought = { text: "hm", thought: true }

type Said = Content | readonly [Content, Author]

const isContent = (said: Said): said is Content => "role" in said

const entryOf = (said: Said, id: Entry["id"], handles: Entry["handles"] = []): Entry => {
  const [content, author] = isContent(said) ? [said, undefined] : said
  return { id, content, tokens: [], handles, ...(author === undefined ? {} : { author }) }
}

const conversation = (...said: ReadonlyArray<Said>): Conversation =>
  said.reduce((all, one) => append(all, entryOf(one, entryId(all.next))), empty)

/** `before | message > answer`, texts only; the author of what is no one's own in brackets. */
const shape = (talk: Conversation): ReadonlyArray<string> => {
  const words = (parts: ReadonlyArray<Part>) =>
    parts.map((part) => part.text ?? part.functionCall?.name ?? part.functionResponse?.name ?? "?").join("+")
  return recordedTurns(talk).map(({ answer, before, message }) => {
    const earlier = before.map(
      ({ author, content }) => words(content.parts) + (author === undefined ? "" : ` (${author})`)
    )
    return `${earlier.join(", ")} | ${words(message)} > ${words(answer.parts)}`
  })
}

const rules: ReadonlyArray<readonly [rule: string, talk: Conversation, expected: ReadonlyArray<string>]> = [
  [
    "a message and its answer are a turn",
    conversation(ask("a"), says("b"), ask("c"), says("d")),
    [" | a > b", " | c > d"]
  ],
  [
    "results of tools are a message",
    conversation(ask("a"), model(call("ls", {})), user(response("ls", {})), says("b")),
    [" | a > ls", " | ls > b"]
  ],
  ["consecutive answers are joined", conversation(ask("a"), says("b"), model(call("ls", {}))), [" | a > b+ls"]],
  ["the last of several messages is sent", conversation(ask("a"), ask("b"), says("c")), ["a | b > c"]],
  [
    "others than the user are never taken for the user",
    conversation([ask("env"), "environment"], ask("a"), [ask("note"), "program"], says("b")),
    ["env (environment), note (program) | a > b"]
  ],
  [
    "where only others spoke, nothing is sent but what is there",
    conversation([ask("s"), "summary"], says("b")),
    ["s (summary) |  > b"]
  ],
  [
    "a summary in the model's role is no answer",
    conversation([ask("s"), "summary"], [says("ok"), "summary"], ask("a"), says("b")),
    ["s (summary), ok (summary) | a > b"]
  ],
  ["an answer without a message is kept", conversation(says("hello"), ask("a"), says("b")), ["hello | a > b"]],
  [
    "an answer that says nothing is taken over with its message",
    conversation(ask("a"), model(thought), ask("b"), says("c")),
    ["a, hm | b > c"]
  ],
  ["thoughts of an answer stay with it", conversation(ask("a"), model(thought, text("b"))), [" | a > hm+b"]],
  ["an unanswered message is left out", conversation(ask("a"), says("b"), ask("c")), [" | a > b"]],
  ["an empty conversation has nothing to replay", conversation(), []]
]

const handle = Handle.make("h_aaaaaaaaaa")

describe("recorded", () => {
  for (const [rule, talk, expected] of rules) it(rule, () => assert.deepStrictEqual(shape(talk), expected))

  it("keeps time, author and exact JSON", () => {
    const draft = { content: ask("n"), at: 7, author: "program", source: { "0": '{ "text":"n"}' } } as const
    const talk = [{ ...draft, id: entryId(1), tokens: [1], handles: [handle] }].reduce(append, empty)
    const [turn] = recordedTurns(
      [ask("a"), says("b")].reduce((all, one) => append(all, entryOf(one, entryId(all.next))), talk)
    )
    assert.deepStrictEqual(turn?.before, [draft])
  })
})

describe("Requests", () => {
  const sizes = (...requests: ReadonlyArray<ReadonlyArray<Content>>) => {
    const measured = new RequestPrefixes()
    return requests.map((contents) => Work.runSync(measured.add(contents)))
  }
  const [a, b, c] = ["Fix the parser.", "It is fixed now.", "Thank you very much."]
  const [ta, tb, tc] = [estimateText(a), estimateText(b), estimateText(c)]

  it("a change ends the prefix, whatever follows", () =>
    assert.deepStrictEqual(sizes([ask(a), says(b)], [ask(c), says(b)]), [
      { tokens: ta + tb, prefix: 0 },
      { tokens: tc + tb, prefix: 0 }
    ]))

  it("counts the parts before the change in a changed message", () =>
    assert.deepStrictEqual(sizes([user(text(a), text(b))], [user(text(a), text(c))])[1], {
      tokens: ta + tc,
      prefix: ta
    }))

  it("a shorter request is all prefix", () =>
    assert.deepStrictEqual(sizes([ask(a), says(b)], [ask(a)])[1], { tokens: ta, prefix: ta }))
})
