import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { type Part, payload } from "../../../../src/domain/content/Content.ts"
import { type Draft, sourceOf } from "../../../../src/domain/conversation/Conversation.ts"
import { decode, encode } from "../../../../src/domain/text/Bytes.ts"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { detectFormat, isGeminiDocument } from "../../../../src/domain/transcripts/facts/DetectFormat.ts"
import { geminiReader, readGeminiDocument } from "../../../../src/domain/transcripts/gemini/GeminiReader.ts"
import { problemText } from "../../../../src/domain/transcripts/Problem.ts"
import type { Transcript } from "../../../../src/domain/transcripts/Transcript.ts"
import { bad, drafts, ok, reading, told } from "../../../support/reading.ts"
import { viewOf as view } from "../../../support/transcripts.ts"

const readLines = reading(geminiReader)
const readText = (text: string) => Work.runSync(readGeminiDocument(JSON.parse(text), text))

const metadata = {
  sessionId: "s",
  projectHash: "p",
  startTime: "2026-01-01T00:00:00Z",
  lastUpdated: "2026-01-01T00:00:00Z"
}
const timestamp = "2026-01-01T00:00:01.000Z"
const message = (type: string, id: string, content: unknown, rest: object = {}) => ({
  id,
  timestamp,
  type,
  content,
  ...rest
})
const user = (id: string, content: unknown) => message("user", id, content)
const gemini = (id: string, content: unknown, rest: object = {}) => message("gemini", id, content, rest)
const call = (id: string | undefined, result?: unknown, rest: object = {}) => ({
  id,
  name: "shell",
  args: { command: "make" },
  result,
  status: "success",
  timestamp,
  ...rest
})
const set = (...messages: ReadonlyArray<unknown>) => ({ $set: { messages } })

/** As records, one a line. */
const records = (...list: ReadonlyArray<unknown>) =>
  ok(readLines([metadata, ...list].map((record) => JSON.stringify(record))))
/** As one document. */
const document = (...messages: ReadonlyArray<unknown>) => ok(readText(JSON.stringify({ ...metadata, messages })))

const payloads = (transcript: Transcript) =>
  drafts(transcript).flatMap((draft) =>
    draft.content.parts.map((part, index) => payload(part, sourceOf(draft, index)).text)
  )

describe("messages, in both forms", () => {
  it("messages have time, line, ids, model and the provider's counts", () => {
    const tokens = { input: 100, output: 7, cached: 40, thoughts: 3, tool: 0, total: 110 }
    const answer = gemini("g", "hi", {
      model: "m1",
      tokens,
      toolCalls: [call("b"), call("c", "x", { timestamp: "2026-01-01T00:00:09Z" })]
    })
    const [said, made, answered] = drafts(records(user("u", "a"), answer))
    assert.deepStrictEqual(said?.origin, { line: 2, ids: ["u"] })
    assert.strictEqual(said?.at, Date.parse(timestamp))
    assert.deepStrictEqual([made?.model, made?.usage], ["m1", { prompt: 100, answer: 7, thoughts: 3, cached: 40 }])
    assert.deepStrictEqual([answered?.at, answered?.usage], [Date.parse("2026-01-01T00:00:09Z"), undefined])
    assert.deepStrictEqual(answered?.origin, { line: 3, ids: ["g_response"] })
    const pretty = ok(readText(JSON.stringify({ ...metadata, messages: [user("u", "a"), answer] }, undefined, 2)))
    assert.deepStrictEqual(
      drafts(pretty).map((draft) => draft.origin?.line),
      [7, 13, 13]
    )
  })

  it("reads a subagent's file, with its folder", () => {
    const lines = [{ ...metadata, kind: "subagent", directories: ["/w"] }, user("1", "a")].map((one) =>
      JSON.stringify(one)
    )
    const transcript = ok(readLines(lines))
    assert.deepStrictEqual([told(transcript), transcript.cwd], [["user: a"], "/w"])
    const main = ok(readText(JSON.stringify({ ...metadata, kind: "main", directories: ["/added"], messages: [] })))
    assert.strictEqual(main.cwd, undefined)
    assert.strictEqual(ok(readText(JSON.stringify({ ...metadata, cwd: "/v", messages: [] }))).cwd, "/v")
    for (const told of [
      "- **Workspace Directories:**\n  - /u\n  - /other\n- **Directory Structure:**",
      "I'm currently working in the following directories:\n  - /u",
      "I'm currently working in the directory: /u"
    ]) {
      const messages = [user("1", `<session_context>\n${told}\n</session_context>`), user("2", "a")]
      assert.strictEqual(ok(readText(JSON.stringify({ ...metadata, messages }))).cwd, "/u")
    }
  })
})

describe("exact parts (law 1)", () => {
  const args = '{"n":9007199254740993, "z":1.0,\n "__proto__":{"2":0,"1":0}}'
  const result = '[{"functionResponse":{"id":"c","name":"t","response":{"rows":[12345678901234567890, 1e3]}}}]'
  const toolCall = `{"id":"c","name":"t","args":${args},"result":${result},"status":"success"}`
  const other = `{"id":"d","name":"t","args":{},"result":{"big":9007199254740993},"status":"success"}`
  const part = '{"later":{"big":9007199254740993}}'
  const text = `{"id":"1","type":"gemini","content":[${part}],"toolCalls":[${toolCall},${other}]}`

  const expected = [
    part,
    `{"functionCall":{"id":"c","name":"t","args":${args}}}`,
    '{"functionCall":{"id":"d","name":"t","args":{}}}',
    result.slice(1, -1),
    '{"functionResponse":{"id":"d","name":"t","response":{"content":{"big":9007199254740993}}}}'
  ]
  it("keep numbers beyond 2^53, order of keys and spelling", () => {
    assert.deepStrictEqual(payloads(ok(readLines([text]))), expected)
    assert.deepStrictEqual(payloads(ok(readText(`{"messages":[ ${text} ]}`))), expected)
    assert.deepStrictEqual(payloads(ok(readLines([`{"$set":{"messages":[${text}]}}`]))), expected)
  })

  it("keep bytes that are not UTF-8, and escaped surrogates", () => {
    const raw = decode(
      Uint8Array.from([...encode('{"id":"1","type":"user","content":["caf'), 0xe9, ...encode('", "\\udc80 \\ud83d"]}')])
    ).text
    assert.deepStrictEqual(payloads(ok(readLines([raw]))), ["caf\uDCE9", '{"text":"\\udc80 \\ud83d"}'])
  })
})

describe("records", () => {
  it("in a document, messages that share an id are all read", () => {
    assert.deepStrictEqual(told(document(user("1", "a"), user("1", "b"))), ["user: a", "user: b"])
  })

  it("metadata comes from the first record and from $set", () => {
    const lines = [metadata, { $set: { sessionId: "later", summary: "x", lastUpdated: "y" } }, { $set: {} }]
    assert.strictEqual(ok(readLines(lines.map((one) => JSON.stringify(one)))).session, "later")
  })

  it("a file without metadata is read", () => {
    const transcript = ok(readLines([JSON.stringify(user("1", "a"))]))
    assert.deepStrictEqual([told(transcript), transcript.session], [["user: a"], undefined])
    assert.deepStrictEqual(ok(readLines([])).steps, [])
  })
})

it("checkpoints nested and unclosed comments are scanned in linear time", () => {
  const nested = "<!<!-- x -->-- y -->a"
  const endless = "<!--".repeat(200_000)
  assert.deepStrictEqual(told(records(gemini("1", "a"), set(gemini("1", nested)))), [`model: ${nested}`])
  assert.include(told(records(gemini("1", "a"), set(gemini("1", endless)))), "compaction (auto, ?), kept from nothing")
})

it("resumed sessions Gemini CLI 0.61, resumed twice: three calls, no compaction, every result with its call", () => {
  const transcript = ok(
    readLines(readFileSync("test/fixtures/gemini/resumed-twice.jsonl", "utf8").trimEnd().split("\n"))
  )
  // Without times, arguments and responses.
  const short = told(transcript).map((line) => line.replace(/_\d{13}/g, "").replace(/ \{.*?\}(?=\)| \||$)/g, ""))
  assert.deepStrictEqual(short, [
    "environment: <session_context>\nToday is Sunday.\n</session_context>",
    "user: do TWO things",
    "model: Looking at both. | list_directory(list_directory__list_directory_0) | read_file(read_file__read_file_1)",
    "user: list_directory[list_directory__list_directory_0] | read_file[read_file__read_file_1]",
    "model: Done: 1",
    "user: now ONE thing",
    "model: ~thinking about it | read_file(read_file__read_file_0)",
    "user: read_file[read_file__read_file_0]",
    "model: Done: 2",
    "user: and a last question",
    "model: Answer 3"
  ])
  // What only the first record of an answer said: resuming writes it again without.
  const models = drafts(transcript).filter(({ content }) => content.role === "model")
  assert.deepStrictEqual(
    models.map(({ model, usage }) => [model, usage?.prompt]),
    models.map(() => ["gemini-2.5-pro", 100])
  )
  assert.deepStrictEqual(
    drafts(transcript).map(({ at = 0 }) => at),
    drafts(transcript)
      .map(({ at = 0 }) => at)
      .sort((a, b) => a - b)
  )
  assert.deepStrictEqual(transcript.skipped, { "repeated result": 6 })
})

describe("problems", () => {
  it("only kinds that this program does not know are new to it", () => {
    const read = document(user("a", "/chat save x"), user("b", " "), message("info", "c", "x"), user("d", "Go on."))
    assert.deepStrictEqual([read.skipped, read.unknown], [{ command: 1, "blank message": 1, info: 1 }, undefined])
    assert.deepStrictEqual(document(message("verdict", "a", "x")).unknown?.kinds, ["message: verdict"])
  })

  it.each<readonly [string, unknown, RegExp]>([
    ["a list", [], /"messages", a list/],
    ["null", null, /"messages", a list/],
    ["no messages", metadata, /"messages", a list/],
    ["messages that are no list", { ...metadata, messages: { 0: user("1", "a") } }, /"messages", a list/],
    ["an invalid message", { messages: [user("1", "a"), []] }, /^messages\[1\]: expected a message/],
    ["invalid content", { messages: [user("1", "a"), user("2", 5)] }, /^messages\[1\]\.content: expected a text/],
    ["an invalid part", { messages: [gemini("2", [{ text: null }])] }, /^messages\[0\]\.content\[0\]: expected/]
  ])("an invalid document is reported in one line: %s", (_, value, expected) => {
    const problem = bad(readText(JSON.stringify(value)))
    assert.match(problemText(problem), expected)
    assert.notInclude(problemText(problem), "\n")
  })

  it("metadata of wrong types is ignored", () => {
    const wrong = { sessionId: 5, projectHash: null, startTime: [], kind: {}, directories: "x", summary: 1 }
    const transcript = ok(
      readText(JSON.stringify({ ...wrong, messages: [{ type: "user", content: "a", timestamp: {} }] }))
    )
    assert.deepStrictEqual(
      [told(transcript), transcript.session, drafts(transcript)[0]?.at],
      [["user: a"], undefined, undefined]
    )
  })
})

describe("golden: two sessions, computed independently by gemini-session.py", () => {
  const fixture = (name: string) => readFileSync(new URL(`../../../fixtures/gemini/${name}`, import.meta.url), "utf8")
  const golden = JSON.parse(readFileSync(new URL("../../../golden/gemini-session.json", import.meta.url), "utf8"))
  const documentText = fixture("session-2026-02-03T10-15-5f0c2d1a.json")
  const recordsText = fixture("session-2026-08-21T08-00-c0ffee00.jsonl")

  /** Without spaces between values, digits and order as they stand. */
  const compact = (text: string) =>
    text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, (_, quoted: string | undefined) => quoted ?? "")
  const inner = (text: string, key: string) => text.slice(text.indexOf(`"${key}":`) + key.length + 3, -2)

  const tellPart = (draft: Draft, part: Part, index: number): ReadonlyArray<unknown> => {
    const exact = payload(part, sourceOf(draft, index))
    if (part.thought === true) return ["thought", part.text]
    if (part.text !== undefined) return ["text", exact.text]
    if (part.functionCall !== undefined) {
      return ["call", part.functionCall.id, part.functionCall.name, inner(compact(exact.text), "args")]
    }
    if (part.functionResponse !== undefined) {
      return ["result", part.functionResponse.id, JSON.stringify(part.functionResponse.response)]
    }
    return ["other", compact(exact.text)]
  }
  const tell = (draft: Draft) => ({
    who: draft.author ?? draft.content.role,
    at: new Date(draft.at ?? 0).toISOString(),
    usage: draft.usage ?? null,
    parts: draft.content.parts.map((part, index) => tellPart(draft, part, index))
  })
  const parts = (one: { readonly parts: unknown; readonly who: unknown }) => ({ who: one.who, parts: one.parts })

  it("the document", () => {
    assert.isTrue(isGeminiDocument(documentText))
    assert.strictEqual(detectFormat(documentText), "gemini")
    const transcript = ok(readText(documentText))
    assert.deepStrictEqual([drafts(transcript).map(tell)], golden.document.stretches)
    assert.deepStrictEqual(transcript.skipped, golden.document.skipped)
    assert.deepStrictEqual([transcript.session, transcript.model], [golden.document.session, golden.document.model])
  })

  it("the records", () => {
    assert.isFalse(isGeminiDocument(recordsText))
    assert.strictEqual(detectFormat(recordsText), "gemini")
    const transcript = ok(readLines(recordsText.trimEnd().split("\n")))
    const [first, last] = golden.records.stretches
    const cut = transcript.steps.findIndex((step) => step._tag === "Compaction")
    const before = transcript.steps.slice(0, cut).flatMap((step) => (step._tag === "Message" ? [step.draft] : []))
    assert.deepStrictEqual(before.map(tell), first)
    const now = view(transcript).filter((draft) => draft.author !== "environment")
    assert.deepStrictEqual(now.map(tell).map(parts), last.map(parts))
    assert.deepStrictEqual(transcript.skipped, golden.records.skipped)
    assert.deepStrictEqual([transcript.session, transcript.model], [golden.records.session, golden.records.model])
    const compaction = transcript.steps[cut]
    assert.deepInclude(compaction, { keptFrom: 4, trigger: "auto" })
  })
})

it("reads long lists in slices", () => {
  const messages = Array.from({ length: 300 }, (_, index) => user(String(index), "x".repeat(1_000)))
  const text = JSON.stringify({ ...metadata, messages })
  const work = readGeminiDocument(JSON.parse(text), text)
  let pauses = 0
  for (let step = work.next(); step.done !== true; step = work.next()) pauses += 1
  assert.isAtLeast(pauses, 300)
})

it.each([{ id: "x", sessionId: "s" }, { sessionId: "s" }])(
  "a document describes its session, whatever else it names: %j",
  (about) => {
    const { cwd, session } = ok(readText(JSON.stringify({ ...about, cwd: "/w", messages: [] })))
    assert.deepStrictEqual([session, cwd], ["s", "/w"])
  }
)
