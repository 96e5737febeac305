import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { readFileSync } from "node:fs"
import {
  call,
  type Content,
  model,
  needsSource,
  type Part,
  payload,
  response,
  text,
  user
} from "../../../src/domain/content/Content.ts"
import { type Author, type Draft, sourceOf } from "../../../src/domain/conversation/Conversation.ts"
import { foreignNotes, missingResponse } from "../../../src/domain/conversation/Projection.ts"
import { decode, encode } from "../../../src/domain/text/Bytes.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { formatOfRecord, detectFormat, isGeminiDocument } from "../../../src/domain/transcripts/DetectFormat.ts"
import { geminiReader, readGeminiDocument } from "../../../src/domain/transcripts/GeminiReader.ts"
import { writeGemini, writeGeminiDocument } from "../../../src/domain/transcripts/GeminiWriter.ts"
import { isProblem, type Problem, problemText } from "../../../src/domain/transcripts/Problem.ts"
import {
  VisibleMessages,
  type Step,
  type Transcript,
  type Written
} from "../../../src/domain/transcripts/Transcript.ts"
import { draftsOf, openingDrafts, swappedTalks, talks } from "../../support/generate.ts"
import { runsOf } from "../../support/runs.ts"

// --- there and back ---------------------------------------------------------------------------------------------------

const ok = (value: Transcript | Problem): Transcript => {
  if (isProblem(value)) throw new Error(`line ${value.line}: ${problemText(value)}`)
  return value
}
/** Through bytes, as a file goes. */
const carried = (line: string): string => decode(encode(line)).text

const readLines = (lines: ReadonlyArray<string>): Transcript => {
  const reader = geminiReader()
  for (const [index, line] of lines.map(carried).entries()) {
    const problem = reader.line(JSON.parse(line), line, index + 1)
    if (problem !== undefined) return ok(problem)
  }
  return ok(Work.runSync(reader.end()))
}
const readText = (written: string): Transcript => {
  const whole = carried(written)
  return ok(Work.runSync(readGeminiDocument(JSON.parse(whole), whole)))
}

const transcriptOf = (steps: ReadonlyArray<Step>, about: Partial<Transcript> = {}): Transcript => ({
  format: "palimpsest",
  session: "0198f3a0-0000-7000-8000-000000000000",
  cwd: "/w",
  model: "gemini-2.5-pro",
  steps,
  skipped: {},
  ...about
})
const messages = (...drafts: ReadonlyArray<Draft>): ReadonlyArray<Step> =>
  drafts.map((draft) => ({ _tag: "Message", draft }))
const compaction = (insert: ReadonlyArray<Draft>, keptFrom?: number): Step => ({
  _tag: "Compaction",
  insert,
  keptFrom,
  trigger: "manual",
  tokensBefore: 1_234
})
const draft = (content: Content, about: Partial<Draft> = {}): Draft => ({ content, ...about })

const written = (transcript: Transcript): Written => Work.runSync(writeGemini(transcript))
const writtenDocument = (transcript: Transcript): Written => Work.runSync(writeGeminiDocument(transcript))
const [onlyLine, recordsIn] = [
  ({ lines }: Written): string => lines[0] ?? "",
  ({ lines }: Written): ReadonlyArray<Record<string, unknown>> => lines.map((line) => JSON.parse(line))
]

/** Parts one after the other: messages may be joined or split, not what they say, whose it is, or its order. */
const flat = (drafts: ReadonlyArray<Draft>): ReadonlyArray<string> =>
  drafts.flatMap((one) =>
    one.content.parts.map((part, index) =>
      [one.content.role, one.author ?? "-", JSON.stringify(part), payload(part, sourceOf(one, index)).text].join(" ")
    )
  )
const said = ({ steps }: Transcript) => flat(steps.flatMap((step) => (step._tag === "Message" ? [step.draft] : [])))
/** What the agent saw after each compaction, and at the end. */
const views = ({ steps }: Transcript): ReadonlyArray<ReadonlyArray<string>> => {
  const shown = new VisibleMessages()
  const seen: Array<ReadonlyArray<string>> = []
  for (const step of steps) {
    if (step._tag === "Message") shown.message(step.draft)
    else {
      shown.compact(step)
      seen.push(flat(shown.drafts))
    }
  }
  return [...seen, flat(shown.drafts)]
}

/** What is wrong with the way there and back in both forms, if anything. */
const lost = (transcript: Transcript): string | undefined => {
  const { lines } = written(transcript)
  for (const line of lines) {
    if (/[\n\r]/.test(line)) return `a line break in ${line}`
    if (![undefined, "gemini"].includes(formatOfRecord(JSON.parse(line)))) return `another format: ${line}`
  }
  const back = readLines(lines)
  const differ = (left: ReadonlyArray<string>, right: ReadonlyArray<string>) =>
    left.length === right.length && left.every((one, index) => one === right[index])
      ? undefined
      : `${left.join("\n")}\nbecame ${right.join("\n")}`
  const words = differ(said(transcript), said(back))
  if (words !== undefined) return `said: ${words}`
  const [before, after] = [views(transcript), views(back)]
  if (before.length !== after.length) return "another number of compactions"
  for (const [index, view] of before.entries()) {
    const wrong = differ(view, after[index] ?? [])
    if (wrong !== undefined) return `view ${index}: ${wrong}`
  }
  const document = writtenDocument(transcript)
  if (document.lines.length !== 1 || /[\n\r]/.test(onlyLine(document))) return "the document is not one line"
  const read = said(readText(onlyLine(document)))
  const wrong = differ(before.at(-1) ?? [], read)
  return wrong === undefined ? undefined : `document: ${wrong}`
}

// --- tables -------------------------------------------------------------------------------------------------------------

const at = Date.parse("2026-05-06T07:08:09.000Z")
const stamped = (content: Content, about: Partial<Draft> = {}) => draft(content, { at, ...about })
const timestamp = "2026-05-06T07:08:09.000Z"

/** The records of messages, without the metadata. */
const bodies = (...drafts: ReadonlyArray<Draft>) => recordsIn(written(transcriptOf(messages(...drafts)))).slice(1)

describe("the form Gemini CLI writes", () => {
  it("begins with metadata", () => {
    const [metadata] = recordsIn(written(transcriptOf(messages(stamped(user(text("a")))))))
    assert.deepStrictEqual(Object.keys(metadata ?? {}), [
      "sessionId",
      "projectHash",
      "startTime",
      "lastUpdated",
      "kind",
      "cwd"
    ])
    assert.match(String(metadata?.projectHash), /^[0-9a-f]{64}$/)
    assert.deepInclude(metadata, {
      sessionId: "0198f3a0-0000-7000-8000-000000000000",
      startTime: timestamp,
      lastUpdated: timestamp,
      kind: "main",
      cwd: "/w"
    })
  })

  it("is deterministic without a session, a folder, messages or times", () => {
    const bare = transcriptOf([], { session: undefined, cwd: undefined, model: undefined })
    const [metadata, ...rest] = recordsIn(written(bare))
    assert.match(String(metadata?.sessionId), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.deepStrictEqual(rest, [])
    assert.deepStrictEqual(written(bare), written(bare))
    assert.strictEqual(metadata?.startTime, "1970-01-01T00:00:00.000Z")
    assert.deepStrictEqual(readLines(written(bare).lines).steps, [])
    const other = transcriptOf(messages(draft(user(text("a")))), { session: undefined })
    assert.notStrictEqual(recordsIn(written(other))[0]?.sessionId, metadata?.sessionId)
  })

  it("session, folder and model round-trip", () => {
    for (const back of [
      readLines(written(transcriptOf(messages(draft(model(text("a")))))).lines),
      readText(onlyLine(writtenDocument(transcriptOf(messages(draft(model(text("a"))))))))
    ]) {
      assert.deepStrictEqual(
        [back.session, back.cwd, back.model],
        ["0198f3a0-0000-7000-8000-000000000000", "/w", "gemini-2.5-pro"]
      )
    }
  })

  it("a call and its result are one record, with results beside their calls", () => {
    const usage = { prompt: 100, answer: 7, thoughts: 3, cached: 40 }
    const answered = { output: "ok" }
    assert.deepStrictEqual(
      bodies(
        stamped(user(text("make it"))),
        stamped(
          model(
            { text: "**Plan** Run make.", thought: true },
            text("I run it."),
            call("shell", { c: "make" }, "c1"),
            call("ls", {}, "c2")
          ),
          { usage, model: "m1" }
        ),
        draft(user(response("shell", answered, "c1")), { at: at + 1_000 }),
        stamped(model(text("Done.")))
      ),
      [
        { id: "m1", timestamp, type: "user", content: [{ text: "make it" }] },
        {
          id: "m2",
          timestamp,
          type: "gemini",
          content: "I run it.",
          thoughts: [{ subject: "Plan", description: "Run make.", timestamp }],
          tokens: { input: 100, output: 7, cached: 40, thoughts: 3, tool: 0, total: 110 },
          model: "m1",
          toolCalls: [
            {
              id: "c1",
              name: "shell",
              args: { c: "make" },
              result: [{ functionResponse: { id: "c1", name: "shell", response: answered } }],
              status: "success",
              timestamp: "2026-05-06T07:08:10.000Z"
            },
            {
              id: "c2",
              name: "ls",
              args: {},
              result: [missingResponse({ id: "c2", name: "ls" })],
              palimpsest: { owed: true },
              status: "cancelled",
              timestamp: "2026-05-06T07:08:10.000Z"
            }
          ]
        },
        { id: "m3", timestamp, type: "gemini", content: "Done.", thoughts: [], tokens: null, model: "gemini-2.5-pro" }
      ]
    )
  })

  it("calls that share an id are answered in order", () => {
    const records = bodies(
      draft(model(call("t", { n: 1 }, "c"), call("t", { n: 2 }, "c"))),
      draft(user(response("t", { output: "x" }, "c"), response("t", { output: "y" }, "c")))
    )
    assert.strictEqual(records.length, 1)
    assert.notProperty(records[0], "palimpsest")
    assert.deepStrictEqual(
      JSON.parse(JSON.stringify(records[0]?.toolCalls)).map(({ result }: { readonly result: unknown }) => result),
      [[response("t", { output: "x" }, "c")], [response("t", { output: "y" }, "c")]]
    )
  })

  it("results in another order than their calls, and an exact call beside a signature, need no copy", () => {
    const [parallel] = bodies(
      draft(model(call("t", {}, "a"), call("t", {}, "b"))),
      draft(user(response("t", { output: "y" }, "b"), response("t", { output: "x" }, "a")))
    )
    assert.notProperty(parallel, "palimpsest")
    assert.deepStrictEqual(parallel?.content, [call("t", {}, "a"), call("t", {}, "b")])
    const big = '{"functionCall":{"name":"t","args":{"n":9007199254740993}},"thoughtSignature":"s"}'
    const [signed] = bodies(draft({ role: "model", parts: [JSON.parse(big)] }, { source: { 0: big } }))
    assert.nestedPropertyVal(signed, "content[0].thoughtSignature", "s")
  })

  it("only results that open the next message stand beside their calls", () => {
    const records = bodies(
      draft(model(call("t", {}, "a"))),
      draft(user(text("wait"), response("t", { output: "x" }, "a")))
    )
    assert.deepStrictEqual(
      records.map((record) => [record.type, "palimpsest" in record]),
      [
        ["gemini", false],
        ["user", false]
      ]
    )
    assert.notNestedProperty(records[0], "toolCalls[0].result")
  })

  it("a failed call has the status error", () => {
    const [record] = bodies(draft(model(call("t", {}, "c"))), draft(user(response("t", { error: "no" }, "c"))))
    assert.deepInclude(JSON.parse(JSON.stringify(record?.toolCalls))[0], { status: "error" })
  })

  it("text beside results follows as its own message", () => {
    const records = bodies(
      draft(model(call("t", {}, "c"))),
      draft(user(response("t", { output: "x" }, "c"), text("go on")))
    )
    assert.deepStrictEqual(
      records.map(({ content, type }) => [type, content]),
      [
        ["gemini", ""],
        ["user", [{ text: "go on" }]]
      ]
    )
  })

  it.each<readonly [string, ReadonlyArray<Part>]>([
    ["text after a call", [call("t", {}, "c"), text("then")]],
    ["a signature", [{ ...call("t", {}, "c"), thoughtSignature: "s" }]],
    ["a signed thought", [{ text: "hm", thought: true, thoughtSignature: "s" }, text("a")]],
    ["a thought at the end", [text("a"), { text: "hm", thought: true }]],
    ["a thought as the API spells it", [{ text: "**A**\n\nb\n", thought: true }, text("a")]],
    ["a part of an unknown kind", [{ later: 1 }, text("a")]],
    ["an empty text", [text("")]],
    ["two texts", [text("a"), text("b")]]
  ])("%s: the content holds the parts themselves, as after a checkpoint", (_, parts) => {
    const [record] = bodies(draft(model(...parts)))
    assert.notProperty(record, "palimpsest")
    const { lines, unheld } = written(transcriptOf(messages(draft(model(...parts)))))
    assert.deepStrictEqual(unheld, {})
    assert.strictEqual(lost(transcriptOf(messages(draft(model(...parts))))), undefined, lines.join("\n"))
  })

  it("ids are the agent's own unless two messages share them", () => {
    const origin = (...ids: ReadonlyArray<string>) => ({ origin: { line: 1, ids } })
    const records = bodies(
      draft(user(text("a")), origin("x", "y")),
      draft(user(text("b")), origin("x")),
      draft(user(text("c")), origin("m1")),
      draft(user(text("d"))),
      draft(user(text("e")), origin(""))
    )
    assert.deepStrictEqual(
      records.map(({ id }) => id),
      ["x", "m2", "m1", "m3", "m4"]
    )
  })

  it("skips ids that are taken, however many", () => {
    const taken = Array.from({ length: 20_000 }, (_, index) => `m${index + 1}`)
    const [record] = bodies(draft(user(text("a")), { origin: { line: 1, ids: ["", ...taken] } }))
    assert.strictEqual(record?.id, "m20001")
  })

  it("a message without a valid time has that of the one before", () => {
    const records = bodies(
      draft(user(text("a"))),
      stamped(user(text("b"))),
      draft(user(text("c"))),
      draft(user(text("d")), { at: 1e300 }),
      draft(user(text("e")), { at: at + 1 })
    )
    assert.deepStrictEqual(
      records.map(({ timestamp: time }) => time),
      [timestamp, timestamp, timestamp, timestamp, "2026-05-06T07:08:09.001Z"]
    )
  })

  it("usage, model, time and ids round-trip", () => {
    const usage = { prompt: 10, answer: 2, thoughts: 1, cached: 4, cacheWrite: 3 }
    const origin = { line: 7, ids: ["g"] }
    const one = draft(model(text("a")), { at, usage, model: "m9", origin })
    const [step] = readLines(written(transcriptOf(messages(one))).lines).steps
    assert.deepStrictEqual(step, { _tag: "Message", draft: { ...one, origin: { line: 2, ids: ["g"] } } })
  })
})

describe("authors", () => {
  const environment = draft(user(text("Today is a day.")), { author: "environment" })
  it("an environment message opens the session as session context", () => {
    const [record] = bodies(environment)
    assert.match(JSON.stringify(record?.content), /^\[\{"text":"<session_context>/)
    const own = draft(user(text("<session_context>\nx\n</session_context>")), { author: "environment" })
    assert.notProperty(bodies(own)[0], "palimpsest")
    assert.strictEqual(lost(transcriptOf(messages(environment))), undefined)
  })

  it("summaries and programs in the user's role begin with a note", () => {
    for (const author of ["summary", "program"] as const) {
      const [record] = bodies(draft(user(text("x")), { author }))
      assert.deepStrictEqual(record?.content, [{ text: foreignNotes[author] }, { text: "x" }])
      assert.notProperty(record, "palimpsest")
    }
  })

  it("text of the user that looks like another author's is marked, not repeated", () => {
    const [, record] = bodies(draft(user(text("a"))), draft(user(text("<session_context>x"))))
    assert.deepStrictEqual(record?.palimpsest, { author: null })
  })

  const authors: ReadonlyArray<Author | undefined> = [undefined, "summary", "program", "environment"]
  const words = [
    "plain",
    "",
    " \n",
    "/command",
    " ?",
    "<session_context>x",
    "<hook_context>x</hook_context>",
    "<state_snapshot>x</state_snapshot>",
    foreignNotes.summary,
    foreignNotes.program
  ]
  const cases = words.flatMap((said) => authors.map((author) => [said, author] as const))
  it.each(cases)("%j by %s keeps its author, first, in the middle and after a compaction", (said, author) => {
    const one = draft(user(text(said)), author === undefined ? {} : { author })
    const two = draft(user(text(said), text("more")), author === undefined ? {} : { author })
    const ack = draft(model(text(said)), author === undefined ? {} : { author })
    for (const steps of [
      messages(one),
      messages(two, one),
      messages(environment, one, ack, two),
      messages(draft(user(text("a"))), one, environment, two),
      [...messages(environment, two), compaction([one, ack], 1), ...messages(one)],
      [...messages(one, two), compaction([]), compaction([two, one]), ...messages(ack)],
      messages(draft(user(), author === undefined ? {} : { author }), ack)
    ]) {
      assert.strictEqual(lost(transcriptOf(steps)), undefined)
    }
  })
})

describe("compactions", () => {
  const [a, b, c] = ["a", "b", "c"].map((id) => draft(user(text(id)), { origin: { line: 1, ids: [id] } }))
  const summary = draft(user(text("<state_snapshot>s</state_snapshot>")), { author: "summary" })
  const all = [a, b, c].flatMap((one) => one ?? [])

  it("a compaction is a checkpoint of what the agent saw from then on", () => {
    const records = recordsIn(
      written(transcriptOf([...messages(...all), compaction([summary], 1), ...messages(...all.slice(0, 1))]))
    )
    const [, , , , checkpoint, last] = records
    const shown: unknown = JSON.parse(JSON.stringify(checkpoint)).$set.messages
    assert.isArray(shown)
    assert.deepStrictEqual(
      JSON.parse(JSON.stringify(shown)).map(({ id }: { readonly id: string }) => id),
      ["m1", "b", "c"]
    )
    // The very same message once more is another one.
    assert.deepStrictEqual([last?.id, last?.content], ["a", [{ text: "a" }]])
  })

  it("kept messages are marked as kept, and who requested it round-trips", () => {
    const back = readLines(written(transcriptOf([...messages(...all), compaction([summary], 1)])).lines)
    const last = back.steps.at(-1)
    assert.deepInclude(last, { _tag: "Compaction", keptFrom: 1, trigger: "manual", tokensBefore: 1_234 })
    assert.deepStrictEqual(last?._tag === "Compaction" ? flat(last.insert) : [], flat([summary]))
  })

  it("an environment message in the middle does not hide what was kept before it", () => {
    const environment = draft(user(text("e")), { author: "environment" })
    const steps = [...messages(...all.slice(0, 1), environment, ...all.slice(1)), compaction([], 0)]
    const last = readLines(written(transcriptOf(steps)).lines).steps.at(-1)
    assert.deepInclude(last, { _tag: "Compaction", keptFrom: 0, insert: [] })
  })

  it("a document holds what the agent saw last, and counts the messages left out", () => {
    const transcript = transcriptOf([...messages(...all), compaction([summary], 1), compaction([summary], 2)])
    const { unheld } = writtenDocument(transcript)
    assert.deepStrictEqual(unheld, { "message before a compaction": 3 })
    assert.deepStrictEqual(said(readText(onlyLine(writtenDocument(transcript)))), flat([summary, ...all.slice(2)]))
  })

  it("a compaction may separate a call from its result", () => {
    const called = draft(model(call("t", {}, "c")))
    const answer = draft(user(response("t", { output: "x" }, "c")))
    for (const steps of [
      [...messages(called), compaction([summary], 0), ...messages(answer)],
      [...messages(called, answer), compaction([summary], 1), ...messages(called, answer)]
    ]) {
      assert.strictEqual(lost(transcriptOf(steps)), undefined)
    }
  })
})

describe("content that Gemini CLI will not show is counted", () => {
  const big = '{"functionCall":{"name":"t","args":{"n":9007199254740993}}}'
  it.each<readonly [string, ReadonlyArray<Draft>, Readonly<Record<string, number>>]>([
    ["nothing", [draft(user(text("a"))), draft(model(text("b")))], {}],
    ["words like commands", [draft(user(text("/a"))), draft(user(text("?")))], { command: 2 }],
    [
      "empty messages",
      [draft(user()), draft(user(text(" "))), draft(model())],
      { "blank message": 2, "empty message": 1 }
    ],
    ["the environment", [draft(user(text("x")), { author: "environment" })], { "environment message": 1 }],
    ["words like context", [draft(user(text("a"))), draft(user(text("<hook_context>x")))], { context: 1 }],
    ["parts of unknown kinds", [draft(user({ later: 1 }))], { "part of an unknown kind": 1 }],
    ["numbers", [draft({ role: "model", parts: [JSON.parse(big)] }, { source: { 0: big } })], { "exact JSON": 1 }],
    ["bytes", [draft(model(text("caf\uDCE9"))), draft(user(text("\uD83D")))], { "text that is not Unicode": 2 }],
    ["keys", [draft({ ...user(text("a")), hint: 1 })], { "key beside role and parts": 1 }],
    [
      "tokens",
      [draft(model(text("a")), { usage: { prompt: 1, answer: 1, thoughts: 0, cached: 0, cacheWrite: 1 } })],
      { "tokens written to a cache": 1 }
    ]
  ])("%s", (_, drafts, unheld) => {
    const transcript = transcriptOf(messages(...drafts))
    assert.deepStrictEqual(written(transcript).unheld, unheld)
    assert.deepStrictEqual(writtenDocument(transcript).unheld, unheld)
    assert.strictEqual(lost(transcript), undefined)
  })

  it("once, even if a checkpoint repeats it", () => {
    const transcript = transcriptOf([...messages(draft(user(text("/a")))), compaction([], 0), compaction([], 0)])
    assert.deepStrictEqual(written(transcript).unheld, { command: 1 })
  })
})

// --- properties -------------------------------------------------------------------------------------------------------

/** A part from its JSON text, as a reader makes it. */
const from = (role: Content["role"], ...slices: ReadonlyArray<string>): Draft => {
  const parts = slices.map((slice): Part => JSON.parse(slice))
  const source = slices.flatMap((slice, index) => {
    const part = parts[index]
    return part !== undefined && needsSource(part, slice) ? [[String(index), slice] as const] : []
  })
  return draft({ role, parts }, source.length === 0 ? {} : { source: Object.fromEntries(source) })
}

const wordings = [
  "plain",
  "",
  "  \n",
  "/slash",
  "?",
  "<session_context>x</session_context>",
  "<hook_context>x</hook_context>",
  "<state_snapshot>s</state_snapshot>",
  foreignNotes.program,
  "caf\uDCE9 \uDC80",
  "\uDCC3\uDCA9 joins",
  "half \uD83D a pair",
  "both \uD83D and \uDCE9",
  "\u2028\r\n\u0000\u0007<!-- x -->\u200B"
]

const Piece = Schema.Struct({
  kind: Schema.Literals([
    "text",
    "text",
    "thought",
    "signed thought",
    "subject",
    "call",
    "call",
    "signed call",
    "response",
    "response",
    "failure",
    "media",
    "unknown",
    "exact call",
    "exact response",
    "spelled"
  ]),
  words: Schema.Natural,
  id: Schema.Literals(["none", "a", "a", "b", "c", "/x"])
})
const partOf = ({ id, kind, words }: typeof Piece.Type): string => {
  const said = wordings[words % wordings.length] ?? ""
  const own = id === "none" ? undefined : id
  const json = (part: Part) => JSON.stringify(part)
  switch (kind) {
    case "text":
      return json(text(said))
    case "thought":
      return json({ text: said, thought: true })
    case "signed thought":
      return json({ text: said, thought: true, thoughtSignature: "c2ln" })
    case "subject":
      return json({ text: `**${said.slice(0, 8)}** ${said}`, thought: true })
    case "call":
      return json(call("t", { said }, own))
    case "signed call":
      return json({ ...call("t", { said }, own), thoughtSignature: "c2ln" })
    case "response":
      return json(response("t", { output: said }, own))
    case "failure":
      return json(response("t", { error: said, code: [1, null] }, own))
    case "media":
      return json({ inlineData: { mimeType: "image/png", data: "AA==" } })
    case "unknown":
      return `{"later":{"2":0,"1":${JSON.stringify(said)}},"__proto__":{"x":1}}`
    case "exact call":
      return ` {"functionCall":{"args":{"n":9007199254740993,\r\n"z":1.0, "s":${JSON.stringify(said)}},"name":"t"${own === undefined ? "" : `,"id":"${own}"`}}}`.trimStart()
    case "exact response":
      return `{"functionResponse":{"name":"t"${own === undefined ? "" : `,"id":"${own}"`},"response":{"rows":[12345678901234567890,-0, 1e3],"note":"\\udc80"}}}`
    case "spelled":
      return '{"text":"\\udc80 \\ud83d \\u0061"}'
  }
}

const Message = Schema.Struct({
  role: Schema.Literals(["user", "user", "model", "model", "model"]),
  parts: Schema.Array(Piece).check(Schema.isMaxLength(4)),
  author: Schema.Literals(["none", "none", "none", "none", "none", "none", "summary", "program", "environment"]),
  at: Schema.Literals(["none", "same", "later", "never"]),
  origin: Schema.Literals(["none", "x", "y", "m1"])
})
const draftFrom = (message: typeof Message.Type, index: number): Draft => {
  const { at: time, author, origin, parts, role } = message
  return {
    ...from(role, ...parts.map(partOf)),
    ...(author === "none" ? {} : { author }),
    ...(time === "none" ? {} : { at: time === "never" ? -1e200 : time === "same" ? at : at + index }),
    ...(origin === "none" ? {} : { origin: { line: index, ids: [origin] } })
  }
}

const Beat = Schema.Struct({
  messages: Schema.Array(Message).check(Schema.isMaxLength(5)),
  compaction: Schema.Literals(["none", "none", "none", "nothing kept", "some kept", "all kept"]),
  insert: Schema.Array(Message).check(Schema.isMaxLength(2)),
  keep: Schema.Natural
})
const Talk = Schema.Array(Beat).check(Schema.isMaxLength(4))

const stepsOf = (talk: typeof Talk.Type): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  let count = 0
  for (const beat of talk) {
    for (const message of beat.messages) {
      steps.push({ _tag: "Message", draft: draftFrom(message, count) })
      count += 1
    }
    if (beat.compaction === "none") continue
    const insert = beat.insert.map((message, index) => draftFrom(message, count + index))
    const keptFrom = beat.compaction === "all kept" ? 0 : beat.keep % (count + 1)
    steps.push(compaction(insert, beat.compaction === "nothing kept" ? undefined : keptFrom))
  }
  return steps
}

/** The engine wants true or a failure that says why. */
const holds = (transcript: Transcript): boolean => {
  const violation = lost(transcript)
  if (violation !== undefined) assert.fail(violation)
  return true
}
const often = (seed: string, runs: number) => ({ arbitrary: { runs: runsOf(runs), seed, size: 24, maxShrinks: 400 } })

describe("round trip in both forms", () => {
  it.prop(
    "any parts, in any role, by anybody, with compactions",
    [Arbitrary.schema(Talk)],
    ([talk]) => holds(transcriptOf(stepsOf(talk))),
    often("gemini", 1_000)
  )
  it.prop(
    "realistic conversations",
    [talks],
    ([script]) => holds(transcriptOf(messages(...openingDrafts(script)))),
    often("gemini talks", 300)
  )
  it.prop(
    "calls and responses in the wrong role",
    [swappedTalks],
    ([script]) => holds(transcriptOf(messages(...draftsOf(script.beats, 1)))),
    often("gemini swapped", 200)
  )

  it("sessions of Gemini CLI are written back unchanged", () => {
    const file = new URL("../../fixtures/gemini/session-2026-02-03T10-15-5f0c2d1a.json", import.meta.url)
    const original = readText(readFileSync(file, "utf8"))
    assert.strictEqual(lost(original), undefined)
    const { lines, unheld } = writtenDocument(original)
    assert.deepStrictEqual(unheld, { "environment message": 1, "exact JSON": 1 })
    assert.isTrue(isGeminiDocument(lines.join("\n")))
    assert.strictEqual(detectFormat(lines.join("\n")), "gemini")
    const again = readText(onlyLine({ lines, unheld }))
    assert.deepStrictEqual(
      again.steps.map((step) => ({ ...step, draft: { ...(step._tag === "Message" ? step.draft : {}), origin: 0 } })),
      original.steps.map((step) => ({ ...step, draft: { ...(step._tag === "Message" ? step.draft : {}), origin: 0 } }))
    )
  })

  it("is deterministic", () => {
    const steps = [...messages(draft(user(text("a"))), draft(model(text("b")))), compaction([draft(user(text("s")))])]
    const one = transcriptOf(steps, { session: undefined })
    assert.deepStrictEqual(written(one), written(one))
    assert.deepStrictEqual(writtenDocument(one), writtenDocument(one))
  })

  it("long conversations are written in slices", () => {
    const many = Array.from({ length: 300 }, (_, index) => draft(user(text(`${index} ${"x".repeat(1_000)}`))))
    const work = writeGemini(transcriptOf(messages(...many)))
    let pauses = 0
    for (let step = work.next(); step.done !== true; step = work.next()) pauses += 1
    assert.isAtLeast(pauses, 300)
  })
})
