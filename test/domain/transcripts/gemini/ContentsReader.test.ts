import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Content, needsSource, type Part, payload } from "../../../../src/domain/content/Content.ts"
import type { Draft } from "../../../../src/domain/conversation/Conversation.ts"
import { foreignNote, foreignNotes } from "../../../../src/domain/conversation/Projection.ts"
import { decode, encode } from "../../../../src/domain/text/Bytes.ts"
import { isJson } from "../../../../src/domain/text/JsonObject.ts"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import { type Piece, piecesOf, samePieces } from "../../../../src/domain/transcripts/ExactParts.ts"
import { readContents } from "../../../../src/domain/transcripts/gemini/ContentsReader.ts"
import { isProblem, type Problem, problemText } from "../../../../src/domain/transcripts/Problem.ts"
import { exactPieces, marksOf, recordLine, splitAuthorNote } from "../../../../src/domain/transcripts/RecordMarks.ts"
import type { Transcript } from "../../../../src/domain/transcripts/Transcript.ts"
import { runsOf } from "../../../support/runs.ts"

const read = (text: string): Transcript | Problem => runSync(readContents(JSON.parse(text), text))
const ok = (value: Transcript | Problem): Transcript => {
  if (isProblem(value)) throw new Error(problemText(value))
  return value
}
const drafts = (text: string) => ok(read(text)).steps.flatMap((step) => (step._tag === "Message" ? step.draft : []))
const user = (text: string): Content => ({ role: "user", parts: [{ text }] })
const model = (text: string): Content => ({ role: "model", parts: [{ text }] })

describe("shapes", () => {
  it("unknown keys are kept", () => {
    const content: Content = { role: "model", parts: [{ text: "x", thoughtSignature: "s", later: { a: 1 } }], id: "1" }
    assert.deepStrictEqual(drafts(JSON.stringify([content]))[0]?.content, content)
  })

  it("a checkpoint of Gemini CLI has its messages beside what the screen showed", () => {
    const checkpoint = { history: [{ type: "user", text: "hi" }], clientHistory: [user("hi"), model("yo")] }
    assert.deepStrictEqual(
      drafts(JSON.stringify(checkpoint)).map(({ content }) => content),
      checkpoint.clientHistory
    )
  })

  it.each<readonly [string, unknown, ReadonlyArray<string>]>([
    ["no list", { history: 5 }, ["expected a list of Content"]],
    ["a wrong role", [user("a"), { role: "assistant", parts: [] }], ["[1].role", '"user" or "model"', "assistant"]],
    ["no parts", [{ role: "user", content: "hi" }], ["[0].parts", "array"]],
    ["no content", { history: ["hi"] }, ["history[0]", "expected a Content"]],
    ["parts that are a text", { contents: [{ role: "user", parts: "x" }] }, ["contents[0].parts", "array"]],
    ["a text that is a number", [{ role: "user", parts: [{ text: 1 }] }], ["[0].parts[0].text", "string"]],
    ["a call without name", [{ role: "model", parts: [{ functionCall: {} }] }], ["[0].parts[0].functionCall.name"]]
  ])("%s is a problem that says where and what was expected", (_, document, says) => {
    const problem = read(JSON.stringify(document))
    assert.isTrue(isProblem(problem))
    if (!isProblem(problem)) return
    for (const part of says) assert.include(problemText(problem), part)
    assert.notInclude(problemText(problem), "\n")
    assert.isBelow(problemText(problem).length, 200)
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
    "generated documents round-trip exactly, with any text between the parts",
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
    { arbitrary: { runs: runsOf(300) } }
  )
})

describe("exact parts beside a record", () => {
  const record = { type: "x", text: "native" }
  /** What comes back of pieces that a record carries, through the bytes of a file. */
  const back = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Piece> => {
    const line = decode(encode(recordLine(record, { parts: pieces }))).text
    assert.notMatch(line, /[\r\n]/)
    const value: unknown = JSON.parse(line)
    const read = isJson(value) ? exactPieces(value, line, "parts") : undefined
    return Array.isArray(read) ? read : []
  }
  const read = (slice: string): Piece => {
    const part: Part = JSON.parse(slice)
    return { part, source: needsSource(part, slice) ? slice : undefined }
  }
  const bytes = (piece: Piece) => [...encode(payload(piece.part, piece.source).text)]

  it.each([
    ["a text", '{"text":"a"}'],
    ["line breaks between its tokens", '{\r\n "functionCall": {\n"name":"f"}\n}'],
    ["line breaks and numbers beyond 2^53", '{\n"functionCall":{"name":"f","args":{"n":12345678901234567890}}}'],
    ["line breaks and a surrogate spelled out", '{\n"text":"\\udc80","later":1}'],
    ["a surrogate spelled out", '{"text":"\\udc80"}'],
    ["a spelled backslash before what looks like one", '{"functionCall":{"name":"f","args":{"a":"\\\\udc80"}}}'],
    ["bytes that are no UTF-8", '{"text":"caf\uDCE9"}'],
    ["bytes in the arguments of a call", '{"functionCall":{"name":"f","args":{"a":"\uDCE9"}}}'],
    ["__proto__", '{"__proto__":{"x":1},"text":"a"}'],
    ["keys in an order of their own", '{"2":1,"1":2,"functionCall":{"name":"f"}}'],
    ["nothing", "{}"]
  ])("%s", (_, slice) => {
    const piece = read(slice)
    const [found] = back([piece])
    assert.isTrue(samePieces([piece], found === undefined ? [] : [found]))
    assert.deepStrictEqual(found === undefined ? undefined : bytes(found), bytes(piece))
  })

  it.each([
    ["half a pair", "a \uD83D b"],
    ["bytes that join", "\uDCC3\uDCA9"],
    ["all of it", "\uD83D\uDE00 \uDCFF \uD83D \uDCC3\uDCA9 \\udc80 \u2028\u0000"]
  ])("a text made here of %s", (_, text) => {
    for (const part of [{ text }, { functionCall: { name: "f", args: { text } } }]) {
      const piece = { part, source: undefined }
      assert.isTrue(samePieces([piece], back([piece])))
    }
  })

  it("an empty list stays empty, and a record without exact parts has none", () => {
    assert.deepStrictEqual(back([]), [])
    assert.isUndefined(exactPieces(record, JSON.stringify(record), "parts"))
    assert.isUndefined(exactPieces({ palimpsest: { other: [] } }, '{"palimpsest":{"other":[]}}', "parts"))
    assert.isUndefined(exactPieces({ palimpsest: [5] }, '{"palimpsest":[5]}', "parts"))
  })

  it("allows several lists and marks", () => {
    const line = recordLine(
      record,
      { first: [read('{"text":"a"}')], second: [read('{"text":"b"}')] },
      { author: null, "a\n": "\uD83D" }
    )
    assert.deepStrictEqual(JSON.parse(line).palimpsest, {
      author: null,
      "a\n": "\uD83D",
      first: [{ text: "a" }],
      second: [{ text: "b" }]
    })
    assert.notMatch(line, /\n/)
  })

  it.each<readonly [string, unknown, string]>([
    ["no list", 5, "palimpsest.parts: expected"],
    ["a number in it", [{ text: "a" }, 5], "palimpsest.parts[1]: expected"],
    ["an invalid part", [{ text: 1 }], "palimpsest.parts[0]: expected"],
    ["a text that is no JSON", ["{"], "palimpsest.parts[0]: expected"],
    ["a text of something else", ['"x"'], "palimpsest.parts[0]: expected"]
  ])("%s is said", (_, parts, says) => {
    const value = { palimpsest: { parts } }
    const problem = exactPieces(value, JSON.stringify(value), "parts")
    assert.isTrue(isProblem(problem) && problemText(problem).startsWith(says))
  })

  it("ignores marks on values that are not objects", () => {
    assert.deepStrictEqual([{}, { palimpsest: [1] }, { palimpsest: "x" }, { palimpsest: { a: 1 } }].map(marksOf), [
      {},
      {},
      {},
      { a: 1 }
    ])
  })
})

describe("parts round-trip", () => {
  const piece = (part: Part, source?: string): Piece => ({ part, source })
  it.each<readonly [string, ReadonlyArray<Piece>, ReadonlyArray<Piece>, boolean]>([
    ["none", [], [], true],
    ["one and none", [piece({ text: "a" })], [], false],
    ["equal ones", [piece({ text: "a" })], [piece({ text: "a" })], true],
    ["another text", [piece({ text: "a" })], [piece({ text: "b" })], false],
    ["a thought and a text", [piece({ text: "a", thought: true })], [piece({ text: "a" })], false],
    ["another order of keys", [piece({ text: "a", b: 1 })], [piece({ b: 1, text: "a" })], false],
    ["the same text spelled otherwise", [piece({ later: "a" })], [piece({ later: "a" }, '{"later":"\\u0061"}')], false],
    ["a source with the same content", [piece({ text: "a" })], [piece({ text: "a" }, '{ "text":"a"}')], true],
    [
      "bytes and a surrogate spelled out",
      [piece({ text: "\uDC80" })],
      [piece({ text: "\uDC80" }, '{"text":"\\udc80"}')],
      false
    ]
  ])("%s", (_, left, right, same) => {
    assert.strictEqual(samePieces(left, right), same)
    assert.strictEqual(samePieces(right, left), same)
  })
})

describe("a note at the beginning names the author", () => {
  const draft = (role: Content["role"], author: Draft["author"], ...parts: ReadonlyArray<Part>): Draft => ({
    content: { role, parts },
    ...(author === undefined ? {} : { author })
  })
  const noted = (one: Draft) => {
    const note = foreignNote(one)
    return [...(note === undefined ? [] : [{ part: { text: note }, source: undefined }]), ...piecesOf(one)]
  }
  it.each<readonly [string, Draft, string | undefined]>([
    ["a summary", draft("user", "summary", { text: "a" }), foreignNotes.summary],
    ["a program", draft("user", "program", { text: "a" }, { text: "b" }), foreignNotes.program],
    ["a summary of nothing", draft("user", "summary"), foreignNotes.summary],
    ["the user", draft("user", undefined, { text: "a" }), undefined],
    ["the environment", draft("user", "environment", { text: "a" }), undefined],
    ["a summary of the model's", draft("model", "summary", { text: "a" }), undefined]
  ])("%s", (_, one, note) => {
    const pieces = noted(one)
    assert.strictEqual(pieces.length, one.content.parts.length + (note === undefined ? 0 : 1))
    const read = splitAuthorNote(pieces)
    assert.strictEqual(read.author, note === undefined ? undefined : one.author)
    assert.isTrue(samePieces(read.pieces, piecesOf(one)))
    if (note !== undefined) assert.strictEqual(pieces[0]?.part.text, note)
    assert.notInclude(note ?? "", "model")
  })

  it.each<readonly [string, Part]>([
    ["a thought", { text: foreignNotes.summary, thought: true }],
    ["a text with a signature", { text: foreignNotes.summary, thoughtSignature: "s" }],
    ["a text that continues", { text: `${foreignNotes.summary} ` }],
    ["a call", { functionCall: { name: foreignNotes.summary } }]
  ])("%s is no note", (_, part) => {
    const pieces = [{ part, source: undefined }]
    assert.deepStrictEqual(splitAuthorNote(pieces), { author: undefined, pieces })
  })

  it("sources stay with their parts", () => {
    const source = '{"text":"\\udc80"}'
    const one: Draft = { ...draft("user", "summary", { text: "a" }, { text: "\uDC80" }), source: { "1": source } }
    assert.deepStrictEqual(
      splitAuthorNote(noted(one)).pieces.map((piece) => piece.source),
      [undefined, source]
    )
  })
})
