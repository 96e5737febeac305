import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Content, type Part, payload } from "../../../src/domain/Content.ts"
import { runtimeMark } from "../../../src/domain/Projection.ts"
import { runSync } from "../../../src/domain/Work.ts"
import { readContents } from "../../../src/domain/transcripts/Contents.ts"
import { isProblem, type Problem, type Transcript } from "../../../src/domain/transcripts/Transcript.ts"

const read = (text: string): Transcript | Problem => runSync(readContents(JSON.parse(text), text))
const ok = (value: Transcript | Problem): Transcript => {
  if (isProblem(value)) throw new Error(value.message)
  return value
}
const drafts = (text: string) => ok(read(text)).steps.flatMap((step) => (step._tag === "Message" ? step.draft : []))
const user = (text: string): Content => ({ role: "user", parts: [{ text }] })
const model = (text: string): Content => ({ role: "model", parts: [{ text }] })

describe("shapes", () => {
  const list = [user("a"), model("b")]
  it.each<readonly [string, unknown, Readonly<Record<string, number>>]>([
    ["an array", list, {}],
    ["a checkpoint", { history: list, authType: "x" }, { authType: 1 }],
    ["a request", { contents: list, systemInstruction: {}, tools: [] }, { systemInstruction: 1, tools: 1 }]
  ])("%s", (_, document, skipped) => {
    const transcript = ok(read(JSON.stringify(document)))
    assert.deepStrictEqual(
      transcript.steps.map((step) => (step._tag === "Message" ? step.draft.content : undefined)),
      [user("a"), model("b")]
    )
    assert.deepStrictEqual(transcript.skipped, skipped)
  })

  it("missing parts are none", () => {
    assert.deepStrictEqual(drafts('[{"role":"user"}]')[0]?.content, { role: "user", parts: [] })
  })

  it("keys that nobody knows are kept", () => {
    const content: Content = { role: "model", parts: [{ text: "x", thoughtSignature: "s", later: { a: 1 } }], id: "1" }
    assert.deepStrictEqual(drafts(JSON.stringify([content]))[0]?.content, content)
  })

  it.each<readonly [string, unknown, ReadonlyArray<string>]>([
    ["no list", { history: 5 }, ["expected a list of Content"]],
    ["a wrong role", [user("a"), { role: "assistant", parts: [] }], ["[1].role", '"user" or "model"', "assistant"]],
    ["no content", { history: ["hi"] }, ["history[0]", "expected a Content"]],
    ["parts that are a text", { contents: [{ role: "user", parts: "x" }] }, ["contents[0].parts", "array"]],
    ["a text that is a number", [{ role: "user", parts: [{ text: 1 }] }], ["[0].parts[0].text", "string"]],
    ["a call without name", [{ role: "model", parts: [{ functionCall: {} }] }], ["[0].parts[0].functionCall.name"]]
  ])("%s is a problem that says where and what was expected", (_, document, says) => {
    const problem = read(JSON.stringify(document))
    assert.isTrue(isProblem(problem))
    if (!isProblem(problem)) return
    for (const part of says) assert.include(problem.message, part)
    assert.notInclude(problem.message, "\n")
    assert.isBelow(problem.message.length, 200)
  })
})

describe("authors", () => {
  const authors = (...contents: ReadonlyArray<unknown>) => drafts(JSON.stringify(contents)).map((draft) => draft.author)
  it.each([
    ["<session_context>\nToday is"],
    ["This is the Gemini CLI. We are setting up the context for our chat.\nX"]
  ])("the first user message that begins with %s is the environment", (said) => {
    assert.deepStrictEqual(authors(user(said), model("ok"), user(said)), ["environment", undefined, undefined])
    assert.deepStrictEqual(authors(user("hello"), user(said)), [undefined, undefined])
  })

  it.each([
    ["a snapshot at the beginning", user("<state_snapshot>x</state_snapshot>"), "summary"],
    ["a snapshot behind our mark", user(`${runtimeMark}\n<state_snapshot>x</state_snapshot>`), "summary"],
    ["our mark without a snapshot", user(`${runtimeMark} note`), undefined],
    ["a snapshot that is quoted", user("what is <state_snapshot>?"), undefined],
    ["a snapshot of the model", model("<state_snapshot>x</state_snapshot>"), undefined]
  ])("%s", (_, content, author) => {
    assert.deepStrictEqual(authors(content), [author])
  })
})

describe("lossless", () => {
  it.each([
    ["numbers beyond 2^53", '{"functionCall":{"name":"f","args":{"n":12345678901234567890}}}'],
    ["number-like keys", '{"functionCall":{"name":"f","args":{"2":1,"1":2}}}'],
    ["__proto__", '{"__proto__":{"a":1},"functionCall":{"args":{"__proto__":1.0},"name":"f"}}'],
    ["spelling and spaces", '{ "functionResponse" : {"name":"f", "response":{"a":"\\u0041"} } }'],
    ["a media part", '{"inlineData":{"mimeType":"image/png","data":"A\\/A="}}']
  ])("a part with %s comes back exactly, wherever the list is", (_, part) => {
    for (const text of [
      `[{"role":"model","parts":[{"text":"x"},${part}]}]`,
      `{"history":[{"role":"model","parts":[{"text":"x"},${part}]}]}`,
      `{\n  "tools": [1.0],\n  "contents": [\n    {"parts": [{"text":"x"}, ${part}], "role": "model"}\n  ]\n}`
    ]) {
      const draft = drafts(text)[0]
      const found = draft?.content.parts[1]
      assert.isDefined(found)
      if (found !== undefined) assert.strictEqual(payload(found, draft?.source?.["1"]).text, part)
      assert.isUndefined(draft?.source?.["0"])
    }
  })

  it("origins name the line", () => {
    const text = JSON.stringify([user("a"), user("a"), model("b")], null, 2)
    const lines = text.split("\n").flatMap((line, index) => (line === "  {" ? index + 1 : []))
    assert.deepStrictEqual(
      drafts(text).map((draft) => draft.origin?.line),
      lines
    )
  })

  it.prop(
    "generated documents come back exactly, whatever stands between the parts",
    {
      parts: Schema.Array(
        Schema.Union([
          Schema.Struct({ text: Schema.String }),
          Schema.Struct({
            functionCall: Schema.Struct({
              name: Schema.String,
              args: Schema.Record(Schema.String, Schema.Union([Schema.Finite, Schema.String]))
            })
          })
        ])
      ),
      space: Schema.Literals(["", " ", "\n  "])
    },
    ({ parts, space }) => {
      const texts = parts.map((part) => JSON.stringify(part))
      const draft = drafts(`[${space}{"role":"user","parts":[${texts.join(`,${space}`)}${space}]}]`)[0]
      const found = (draft?.content.parts ?? []).map((part: Part, index) =>
        payload(part, draft?.source?.[String(index)])
      )
      assert.deepStrictEqual(
        found.map(({ form, text }) => (form === "text" ? JSON.stringify({ text }) : text)),
        texts
      )
    },
    { arbitrary: { runs: 300 } }
  )
})
