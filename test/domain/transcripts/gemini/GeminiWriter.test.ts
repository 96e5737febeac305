import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { call, type Content, model, type Part, response, text, user } from "../../../../src/domain/content/Content.ts"
import type { Draft } from "../../../../src/domain/conversation/Conversation.ts"
import { foreignNotes, missingResponse } from "../../../../src/domain/conversation/Projection.ts"
import type { Step, Transcript } from "../../../../src/domain/transcripts/Transcript.ts"
import {
  cut,
  draftsIn,
  readText,
  summary as summaryOf,
  told,
  transcriptOf as plain,
  writtenText
} from "../../../support/transcripts.ts"

/** What Gemini CLI's own records are like. That they come back is tested in `writers.test.ts`. */

const transcriptOf = (steps: ReadonlyArray<Step>, about: Partial<Transcript> = {}): Transcript =>
  plain(steps, { session: "0198f3a0-0000-7000-8000-000000000000", model: "gemini-2.5-pro", ...about })
const messages = (...drafts: ReadonlyArray<Draft>): ReadonlyArray<Step> =>
  drafts.map((draft) => ({ _tag: "Message", draft }))
const draft = (content: Content, about: Partial<Draft> = {}): Draft => ({ content, ...about })
const written = (transcript: Transcript) => writtenText("gemini", transcript)
const writtenDocument = (transcript: Transcript) => writtenText("gemini document", transcript)
const recordsIn = ({ lines }: { readonly lines: ReadonlyArray<string> }): ReadonlyArray<Record<string, unknown>> =>
  lines.map((line) => JSON.parse(line))
const onlyLine = ({ lines }: { readonly lines: ReadonlyArray<string> }): string => lines[0] ?? ""

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
    assert.match(String(metadata?.sessionId), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.deepStrictEqual(rest, [])
    assert.deepStrictEqual(written(bare), written(bare))
    assert.strictEqual(metadata?.startTime, "1970-01-01T00:00:00.000Z")
    assert.deepStrictEqual(readText(written(bare).text).steps, [])
    const other = transcriptOf(messages(draft(user(text("a")))), { session: undefined })
    assert.notStrictEqual(recordsIn(written(other))[0]?.sessionId, metadata?.sessionId)
  })

  it("session, folder and model round-trip", () => {
    for (const back of [
      readText(written(transcriptOf(messages(draft(model(text("a")))))).text),
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
    assert.deepStrictEqual(written(transcriptOf(messages(draft(model(...parts))))).unheld, {})
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
    const [step] = readText(written(transcriptOf(messages(one))).text).steps
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
})

describe("compactions", () => {
  const [a, b, c] = ["a", "b", "c"].map((id) => draft(user(text(id)), { origin: { line: 1, ids: [id] } }))
  const summary = summaryOf("<state_snapshot>s</state_snapshot>")
  const all = [a, b, c].flatMap((one) => one ?? [])

  it("a compaction is a checkpoint of what the agent saw from then on", () => {
    const records = recordsIn(
      written(transcriptOf([...messages(...all), cut([summary], 1), ...messages(...all.slice(0, 1))]))
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
    const back = readText(written(transcriptOf([...messages(...all), cut([summary], 1, "manual", 1_234)])).text)
    const last = back.steps.at(-1)
    assert.deepInclude(last, { _tag: "Compaction", keptFrom: 1, trigger: "manual", tokensBefore: 1_234 })
    assert.deepStrictEqual(last?._tag === "Compaction" ? told(last.insert) : [], told([summary]))
  })

  it("an environment message in the middle does not hide what was kept before it", () => {
    const environment = draft(user(text("e")), { author: "environment" })
    const steps = [...messages(...all.slice(0, 1), environment, ...all.slice(1)), cut([], 0)]
    const last = readText(written(transcriptOf(steps)).text).steps.at(-1)
    assert.deepInclude(last, { _tag: "Compaction", keptFrom: 0, insert: [] })
  })

  it("a document holds what the agent saw last, and counts the messages left out", () => {
    const transcript = transcriptOf([...messages(...all), cut([summary], 1), cut([summary], 2)])
    const { unheld } = writtenDocument(transcript)
    assert.deepStrictEqual(unheld, { "message before a compaction": 3 })
    assert.deepStrictEqual(told(draftsIn(readText(writtenDocument(transcript).text))), told([summary, ...all.slice(2)]))
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
  })

  it("once, even if a checkpoint repeats it", () => {
    const transcript = transcriptOf([...messages(draft(user(text("/a")))), cut([], 0), cut([], 0)])
    assert.deepStrictEqual(written(transcript).unheld, { command: 1 })
  })
})

it("a document of Gemini CLI is written back unchanged", () => {
  const file = new URL("../../../fixtures/gemini/session-2026-02-03T10-15-5f0c2d1a.json", import.meta.url)
  const original = readText(readFileSync(file, "utf8"))
  const { text: again, unheld } = writtenDocument(original)
  assert.deepStrictEqual(unheld, { "environment message": 1, "exact JSON": 1 })
  const known = (transcript: Transcript) => draftsIn(transcript).map(({ origin: _, ...rest }) => rest)
  assert.deepStrictEqual(known(readText(again)), known(original))
})
