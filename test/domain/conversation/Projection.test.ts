import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  call,
  type Content,
  isCall,
  isResponse,
  model,
  type Part,
  response,
  text,
  user
} from "../../../src/domain/content/Content.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import { projectMessages, sentJson } from "../../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { entryOf } from "../../support/entries.ts"
import { runsOf } from "../../support/runs.ts"

const entry = (sequence: number, content: Content, source?: Record<string, string>) =>
  entryOf(sequence, content, { tokens: content.parts.map(() => 1), ...(source === undefined ? {} : { source }) })
const of = (...contents: ReadonlyArray<Content>) =>
  contents.map((content, index) => entry(index + 1, content)).reduce(Conversation.append, Conversation.empty)
const sent = (...contents: ReadonlyArray<Content>) => projectMessages(of(...contents)).map(({ content }) => content)

const ask = (id: string) => call("read", { path: "a" }, id)
const give = (id: string) => response("read", { output: "x" }, id)
const missing = (id: string): Part =>
  response("read", { error: "no result: the call was interrupted before it answered" }, id)
const orphan: Part = {
  text: `${runtimeMark} A result of read stood here; its call is not part of this context. Recall it with h_aaaaaaaaaa.`
}

describe("projection", () => {
  it("returns a valid conversation unchanged, with the same part objects", () => {
    const contents = [user(text("q")), model(text("a"), ask("1")), user(give("1")), model(text("done"))]
    assert.deepStrictEqual(sent(...contents), contents)
    assert.strictEqual(sent(...contents)[1]?.parts[1], contents[1]?.parts[1])
  })

  it("has the tokens of what is shown, and none of the environment", () => {
    const said = { ...entry(1, user(text("It is Sunday."))), author: "environment" as const, tokens: [50] }
    const read = { ...entry(3, user(give("1"), text("beside"))), tokens: [30, 7] }
    const whole = [said, entry(2, model(ask("1"))), read].reduce(Conversation.append, Conversation.empty)
    const short = {
      entry: read.id,
      part: 0,
      replacement: response("read", { output: "y" }, "1"),
      tokens: TokenCount.make(2)
    }
    const tokensOf = (conversation: Conversation.Conversation) =>
      projectMessages(conversation).map(({ tokens }) => tokens)
    assert.deepStrictEqual(tokensOf(whole), [0, 1, 37])
    assert.deepStrictEqual(tokensOf(Conversation.masked(whole, [short])), [0, 1, 9])
  })

  it("writes a shortened part anew, and the others as they were read", () => {
    const source = { 0: '{"text":"long" }', 1: '{"text":"beside" }' }
    const whole = Conversation.append(Conversation.empty, entry(1, user(text("long"), text("beside")), source))
    const short = { entry: Conversation.entryId(1), part: 0, replacement: text("short"), tokens: TokenCount.make(1) }
    assert.strictEqual(
      sentJson(projectMessages(Conversation.masked(whole, [short]))),
      '[{"role":"user","parts":[{"text":"short"},{"text":"beside" }]}]'
    )
  })

  it("omits empty messages and empty parts", () => {
    assert.deepStrictEqual(
      sent(user(text("q")), model(), user(), user(text("")), model(text(""), {}, text("a")), user({})),
      [user(text("q")), model(text("a"))]
    )
  })

  it("keeps an empty text that has a signature", () => {
    const signed = model({ text: "", thoughtSignature: "s" })
    assert.deepStrictEqual(sent(user(text("q")), signed), [user(text("q")), signed])
  })

  it("gives an unanswered call a response that says so, before the user's next words", () => {
    assert.deepStrictEqual(sent(user(text("q")), model(ask("1")), user(text("never mind"))), [
      user(text("q")),
      model(ask("1")),
      user(missing("1"), text("never mind"))
    ])
  })

  it("turns a response without its call into a marked note with its handle", () => {
    assert.deepStrictEqual(sent(user(give("1")), model(text("a"))), [user(orphan), model(text("a"))])
  })

  it("turns a late response into a note, and marks its call as unanswered", () => {
    assert.deepStrictEqual(sent(model(ask("1")), user(text("wait")), model(text("ok")), user(give("1"))), [
      model(ask("1")),
      user(missing("1"), text("wait")),
      model(text("ok")),
      user(orphan)
    ])
  })

  it("accepts a response in the next message of the same run", () => {
    const contents = [model(ask("1")), user(text("by the way")), user(give("1"))]
    assert.deepStrictEqual(sent(...contents), contents)
  })

  it("an empty message does not separate a call from its response", () => {
    assert.deepStrictEqual(sent(model(ask("1")), model(), user(), user(give("1"))), [model(ask("1")), user(give("1"))])
  })

  it("sends shortened parts, which keep their pairing", () => {
    const conversation = Conversation.compressed(of(model(ask("1")), user(give("1"))), {
      insert: [],
      shorten: [
        {
          entry: Conversation.entryId(2),
          part: 0,
          replacement: response("read", { output: "…" }, "1"),
          tokens: TokenCount.make(1)
        }
      ]
    })
    assert.deepStrictEqual(projectMessages(conversation)[1]?.content, user(response("read", { output: "…" }, "1")))
  })
})

const PartKind = Schema.Literals([
  "text",
  "empty",
  "nothing",
  "thought",
  "call 1",
  "call 2",
  "give 1",
  "give 2",
  "give 9"
])
const partOf = (kind: typeof PartKind.Type): Part =>
  kind === "text"
    ? text("t")
    : kind === "empty"
      ? text("")
      : kind === "nothing"
        ? {}
        : kind === "thought"
          ? { text: "hm", thought: true }
          : kind.startsWith("call")
            ? ask(kind.slice(-1))
            : give(kind.slice(-1))
/** Calls are the model's, responses the user's. */
const Message = Schema.Struct({ model: Schema.Boolean, parts: Schema.Array(PartKind) })

/** Messages of one role in a row count as one for the protocol. */
const runs = (contents: ReadonlyArray<Content>): Array<Content> =>
  contents.reduce<Array<Content>>((all, content) => {
    const last = all.at(-1)
    return last?.role === content.role
      ? [...all.slice(0, -1), { role: last.role, parts: [...last.parts, ...content.parts] }]
      : [...all, content]
  }, [])

describe("sends a valid conversation for any log", () => {
  it.prop(
    "every response answers a call of the run before, every call before the last run is answered, nothing is empty",
    [Schema.Array(Message)],
    ([messages]) => {
      const contents = messages.map(({ model: isModel, parts }): Content => ({
        role: isModel ? "model" : "user",
        parts: parts.filter((kind) => (isModel ? !kind.startsWith("give") : !kind.startsWith("call"))).map(partOf)
      }))
      const projected = sent(...contents)
      for (const content of projected) assert.isAbove(content.parts.length, 0)
      const merged = runs(projected)
      const idsIn = (content: Content | undefined, role: Content["role"]) =>
        (content?.role === role ? content.parts : []).flatMap((part) =>
          isCall(part) ? (part.functionCall.id ?? []) : isResponse(part) ? (part.functionResponse.id ?? []) : []
        )
      merged.forEach((content, index) => {
        const answered = idsIn(merged[index + 1], "user").toSorted()
        const asked = idsIn(content, "model").toSorted()
        if (content.role === "model" && index < merged.length - 1) assert.deepStrictEqual(answered, asked)
        if (content.role === "user" && index === 0) assert.deepStrictEqual(idsIn(content, "user"), [])
      })
    },
    { arbitrary: { runs: runsOf(2_000), seed: "projection", size: 10 } }
  )
})

describe("sentJson", () => {
  it("writes parts as they were read", () => {
    const exact = '{"functionCall": {"name":"n", "args":{"n":12345678901234567890}}}'
    const parsed: Part = { functionCall: { name: "n", args: { n: 12345678901234567000 } } }
    const conversation = [
      entry(1, user(text("q"))),
      entry(2, { role: "model", parts: [text("a"), parsed], extra: true }, { "1": exact })
    ].reduce(Conversation.append, Conversation.empty)
    const json = sentJson(projectMessages(conversation))
    assert.strictEqual(
      json,
      `[{"role":"user","parts":[{"text":"q"}]},{"role":"model","extra":true,"parts":[{"text":"a"},${exact}]}]`
    )
    assert.deepStrictEqual(JSON.parse(json)[1].parts[0], { text: "a" })
  })

  it("keeps exact texts with their parts when parts are omitted or inserted", () => {
    const exact = '{ "functionResponse": {"id":"2","name":"read","response":{"output":"x"}} }'
    const conversation = [
      entry(1, model(ask("1"), ask("2"))),
      entry(2, user(text(""), give("2")), { "1": exact }),
      entry(3, model(text("a")))
    ].reduce(Conversation.append, Conversation.empty)
    assert.include(sentJson(projectMessages(conversation)), `${exact},${JSON.stringify(missing("1"))}]`)
  })
})
