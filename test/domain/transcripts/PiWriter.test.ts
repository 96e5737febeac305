import { assert, describe, it } from "@effect/vitest"
import type { Part } from "../../../src/domain/content/Content.ts"
import type { Draft } from "../../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { claudeReader } from "../../../src/domain/transcripts/ClaudeReader.ts"
import { writeClaude } from "../../../src/domain/transcripts/ClaudeWriter.ts"
import { isJson, type Json } from "../../../src/domain/transcripts/JsonRecord.ts"
import { piReader } from "../../../src/domain/transcripts/PiReader.ts"
import { writePi } from "../../../src/domain/transcripts/PiWriter.ts"
import type { Step, Transcript } from "../../../src/domain/transcripts/Transcript.ts"
import { runsOf } from "../../support/runs.ts"
import { sessionNames, sessionText } from "../../support/sessions.ts"
import { counted, draftsIn, linesOf, readLines, told, transcripts, viewOf } from "../../support/transcripts.ts"

const transcript = (steps: ReadonlyArray<Step>, rest: Partial<Transcript> = {}): Transcript => ({
  format: "palimpsest",
  session: "4d5611e5-241a-462a-8d15-5122611a9569",
  cwd: "/w",
  model: undefined,
  steps,
  skipped: {},
  ...rest
})
const message = (draft: Draft): Step => ({ _tag: "Message", draft })
const user = (...parts: ReadonlyArray<Part>): Draft => ({ content: { role: "user", parts } })
const model = (...parts: ReadonlyArray<Part>): Draft => ({ content: { role: "model", parts }, model: "claude-x" })
const says = (text: string): Step => message(user({ text }))
const call = (id?: string, name = "read"): Part => ({
  functionCall: { ...(id === undefined ? {} : { id }), name, args: { a: 1 } }
})
const result = (response: unknown, id?: string): Part => ({
  functionResponse: { ...(id === undefined ? {} : { id }), name: "read", response }
})
const summary = (text: string): Draft => ({ content: { role: "user", parts: [{ text }] }, author: "summary" })
const compaction = (
  insert: ReadonlyArray<Draft>,
  keptFrom?: number,
  rest: { trigger?: "manual" | "auto"; tokensBefore?: number } = {}
): Step => ({
  _tag: "Compaction",
  insert,
  keptFrom,
  trigger: rest.trigger ?? "auto",
  tokensBefore: rest.tokensBefore
})

const jsonOf = (line: string): Json => {
  const value: unknown = JSON.parse(line)
  return isJson(value) ? value : {}
}
const written = (steps: ReadonlyArray<Step>, rest: Partial<Transcript> = {}) =>
  runSync(writePi(transcript(steps, rest)))
const records = (steps: ReadonlyArray<Step>, rest: Partial<Transcript> = {}): ReadonlyArray<Json> =>
  written(steps, rest).lines.map(jsonOf)
const messagesIn = (all: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  all.flatMap((record) => (isJson(record.message) ? [record.message] : []))
const read = (steps: ReadonlyArray<Step>): Transcript => readLines(piReader(), linesOf(writePi, transcript(steps)))
const exact = (all: ReadonlyArray<Json>): number =>
  all.filter((record) => isJson(record.palimpsest) && "parts" in record.palimpsest).length
/** `session user assistant compaction`: what there is, in order. */
const kinds = (all: ReadonlyArray<Json>): string =>
  all.map((record) => (isJson(record.message) ? record.message.role : record.type)).join(" ")

/** What Pi itself would show its model of a file: texts of entries, or what they are. */
const shownByPi = (lines: ReadonlyArray<string>): ReadonlyArray<unknown> => {
  const entries = lines.slice(1).map(jsonOf)
  const at = entries.findLastIndex((entry) => entry.type === "compaction")
  const cut = entries[at]
  const first = cut === undefined ? 0 : entries.findIndex((entry) => entry.id === cut.firstKeptEntryId)
  const emitted = [...entries.slice(first < 0 ? at : first, Math.max(at, 0)), ...entries.slice(at + 1)]
  return [
    ...(cut === undefined ? [] : [cut.summary]),
    ...(cut === undefined ? entries : emitted).flatMap((entry) => {
      const content = isJson(entry.message) ? entry.message.content : entry.content
      return Array.isArray(content) ? [content.map((block) => block.text ?? block.type).join("|")] : []
    })
  ]
}

describe("entries", () => {
  it("form a path behind a header of version 3, as Pi writes them", () => {
    const all = records([
      message({ ...user({ text: "go" }), at: 1_000 }),
      message({
        ...model({ text: "hm", thought: true, thoughtSignature: "sig" }, { text: "Look." }, call("t1")),
        usage: { prompt: 60, cached: 20, cacheWrite: 30, answer: 7, thoughts: 0 },
        at: 2_000
      }),
      message(user(result({ output: "out" }, "t1")))
    ])
    assert.deepStrictEqual(all[0], {
      type: "session",
      version: 3,
      id: "4d5611e5-241a-462a-8d15-5122611a9569",
      timestamp: "1970-01-01T00:00:01.000Z",
      cwd: "/w"
    })
    assert.strictEqual(kinds(all), "session user model_change assistant toolResult")
    const ids = all.slice(1).map((record) => record.id)
    assert.strictEqual(new Set(ids).size, 4)
    for (const id of ids) assert.match(String(id), /^[0-9a-f]{8}$/)
    assert.deepStrictEqual(
      all.slice(1).map((record) => record.parentId),
      [null, ...ids.slice(0, -1)]
    )
    assert.deepStrictEqual(
      [all[2]?.provider, all[2]?.modelId, all[2]?.timestamp],
      ["anthropic", "claude-x", "1970-01-01T00:00:02.000Z"]
    )
    assert.deepStrictEqual(messagesIn(all), [
      { role: "user", content: [{ type: "text", text: "go" }], timestamp: 1_000 },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", thinkingSignature: "sig" },
          { type: "text", text: "Look." },
          { type: "toolCall", id: "t1", name: "read", arguments: { a: 1 } }
        ],
        api: "anthropic-messages",
        provider: "anthropic",
        model: "claude-x",
        usage: {
          input: 10,
          output: 7,
          cacheRead: 20,
          cacheWrite: 30,
          totalTokens: 67,
          cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
        },
        stopReason: "toolUse",
        timestamp: 2_000
      },
      {
        role: "toolResult",
        toolCallId: "t1",
        toolName: "read",
        content: [{ type: "text", text: "out" }],
        isError: false,
        timestamp: 2_000
      }
    ])
    assert.isTrue(all.every((record) => !("palimpsest" in record)))
  })

  it("ids come from the origin where free, one per entry, else they are deterministic", () => {
    const results = {
      ...user(result({ output: "x" }, "1"), result({ output: "y" }, "2")),
      origin: { line: 3, ids: ["bbbb", "cccc"] }
    }
    const steps = [
      message({ ...model(call("1"), call("2")), model: "claude-x", origin: { line: 2, ids: ["aaaa"] } }),
      message(results),
      message({ ...user({ text: "again" }), origin: { line: 4, ids: ["aaaa"] } })
    ]
    const ids = records(steps).map((record) => record.id)
    assert.deepStrictEqual(ids.slice(2, 5), ["aaaa", "bbbb", "cccc"])
    assert.match(String(ids[5]), /^[0-9a-f]{8}$/)
    assert.deepStrictEqual(
      records(steps).map((record) => record.id),
      ids
    )
  })

  it.each<readonly [string, string | undefined, string, string]>([
    ["Claude", "claude-opus-4-6", "anthropic", "anthropic-messages"],
    ["GPT", "gpt-5.1-codex", "openai", "openai-responses"],
    ["Gemini", "gemini-2.5-pro", "google", "google-generative-ai"],
    ["another", "llama-4", "unknown", "unknown"],
    ["unknown", undefined, "unknown", "unknown"]
  ])("the model is %s", (_, name, provider, api) => {
    const draft = { content: model({ text: "x" }).content, ...(name === undefined ? {} : { model: name }) }
    const all = records([message(draft)])
    const [said] = messagesIn(all)
    assert.deepStrictEqual([said?.provider, said?.api, said?.model], [provider, api, name ?? "unknown"])
    assert.strictEqual(kinds(all), name === undefined ? "session assistant" : "session model_change assistant")
    assert.strictEqual(draftsIn(read([message(draft)]))[0]?.model, name)
    assert.strictEqual(read([message(draft)]).model, name)
  })

  it("a model that has not answered yet is recorded at the end", () => {
    const steps = [message(model({ text: "x" }))]
    assert.strictEqual(kinds(records(steps, { model: "gpt-y" })), "session model_change assistant model_change")
    assert.strictEqual(readLines(piReader(), linesOf(writePi, transcript(steps, { model: "gpt-y" }))).model, "gpt-y")
  })

  it.each<readonly [string, Draft, string]>([
    ["with text", model({ text: "x" }), "stop"],
    ["that calls", model({ text: "x" }, call("1")), "toolUse"],
    ["without text", model(), "aborted"]
  ])("an answer %s stopped for that reason", (_, draft, reason) => {
    assert.strictEqual(messagesIn(records([message(draft)]))[0]?.stopReason, reason)
  })

  it("an empty conversation is a header", () => {
    assert.strictEqual(kinds(records([])), "session")
    assert.deepStrictEqual(read([]).steps, [])
  })
})

describe("results", () => {
  it("are one entry each, and one message", () => {
    const steps = [
      message(model(call("1"), call("2"))),
      message(user(result({ output: "x" }, "1"), result({ error: "y" }, "2")))
    ]
    const all = records(steps)
    assert.strictEqual(kinds(all), "session model_change assistant toolResult toolResult")
    assert.deepStrictEqual(
      messagesIn(all)
        .slice(1)
        .map(({ isError, toolCallId }) => [toolCallId, isError]),
      [
        ["1", false],
        ["2", true]
      ]
    )
    assert.strictEqual(all.filter((record) => "palimpsest" in record).length, 0)
    assert.strictEqual(read(steps).steps.length, 2)
  })

  it.each<readonly [string, ReadonlyArray<Part>, string]>([
    ["before the rest", [result({ output: "x" }, "1"), { text: "note" }], "toolResult user"],
    ["behind the rest", [{ text: "note" }, result({ output: "x" }, "1")], "toolResult user"],
    ["in the middle", [{ text: "a" }, result({ output: "x" }, "1"), { text: "b" }], "toolResult user"]
  ])("%s: Pi gets them first, we read one message in its own order", (_, parts, expected) => {
    const steps = [message(model(call("1"))), message(user(...parts)), says("next")]
    assert.strictEqual(kinds(records(steps)), `session model_change assistant ${expected} user`)
    assert.deepStrictEqual(
      draftsIn(read(steps)).map((draft) => draft.content),
      draftsIn(transcript(steps)).map((draft) => draft.content)
    )
  })

  it("of one turn in two messages stay two messages", () => {
    const steps = [
      message(model(call("a"), call("b"))),
      message(user(result({ output: "1" }, "a"))),
      message(user(result({ output: "2" }, "b")))
    ]
    assert.strictEqual(read(steps).steps.length, 3)
  })

  const text = (value: string) => [{ type: "text", text: value }]
  it.each<readonly [string, unknown, unknown, boolean, number]>([
    ["an output", { output: "x" }, text("x"), false, 0],
    ["an empty output", { output: "" }, [], false, 0],
    ["an error", { error: "x" }, text("x"), true, 0],
    ["blocks", { content: [...text("a"), ...text("b")] }, [...text("a"), ...text("b")], false, 0],
    [
      "an image as Claude Code writes it",
      { content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }] },
      [{ type: "image", data: "AA", mimeType: "image/png" }],
      false,
      1
    ],
    ["one text under another key", { result: "x" }, text("x"), false, 1],
    ["anything else", { rows: [1] }, text('{"rows":[1]}'), false, 1],
    ["nothing", undefined, text(""), false, 1]
  ])("that are %s", (_, response, content, isError, beside) => {
    const steps = [message(model(call("t"))), message(user(result(response, "t")))]
    const all = records(steps)
    assert.deepStrictEqual([messagesIn(all)[1]?.content, messagesIn(all)[1]?.isError], [content, isError])
    assert.strictEqual(exact(all), beside)
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })

  it.each<readonly [string, string | undefined, number]>([
    ["an id", "call|fc_1", 0],
    ["an empty one", "", 2],
    ["none", undefined, 2]
  ])("and calls with %s have the same one for Pi", (_, id, beside) => {
    const steps = [message(model(call(id))), message(user(result({ output: "x" }, id)))]
    const [asked, answered] = messagesIn(records(steps))
    const block = Array.isArray(asked?.content) ? asked.content[0] : undefined
    assert.strictEqual(block.id, answered?.toolCallId)
    assert.notStrictEqual(block.id, "")
    assert.strictEqual(exact(records(steps)), beside)
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })
})

describe("content that Pi will not show is counted", () => {
  const image: Part = { inlineData: { mimeType: "image/png", data: "AA" } }
  it.each<readonly [string, ReadonlyArray<Step>, Readonly<Record<string, number>>]>([
    [
      "nothing of an ordinary talk",
      [
        says("a"),
        message(model({ text: "t", thought: true }, call("t"))),
        message(user(result({ output: "x" }, "t"), image))
      ],
      {}
    ],
    [
      "media that are no images",
      [message(user({ inlineData: { mimeType: "application/pdf", data: "AA" } }))],
      { media: 1 }
    ],
    ["media of the model", [message(model(image))], { media: 1 }],
    ["files", [message(user({ fileData: { mimeType: "image/png", fileUri: "https://x.example/a" } }))], { files: 1 }],
    ["a result without its call", [message(user(result({ output: "x" }, "t")))], { "results without a call": 1 }],
    [
      "the user's calls and thoughts",
      [message(user(call("t"), { text: "t", thought: true }))],
      { "calls of the user": 1, thoughts: 1 }
    ],
    ["the model's results", [message(model(result({ output: "x" }, "t")))], { "results of the model": 1 }],
    [
      "signatures of texts",
      [message(model({ ...call("t"), thoughtSignature: "s" }, { text: "x", thoughtSignature: "s" }))],
      { signatures: 1 }
    ],
    ["unknown parts", [message(model({ executableCode: {} }))], { "unknown parts": 1 }],
    [
      "media in results",
      [
        message(model(call("t"))),
        message(user({ functionResponse: { id: "t", name: "read", response: { output: "x" }, parts: [] } }))
      ],
      { "media in results": 1 }
    ]
  ])("%s", (_, steps, expected) => {
    assert.deepStrictEqual(written(steps).unheld, expected)
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })
})

describe("authors", () => {
  it.each<readonly [string, Draft, unknown, ReadonlyArray<string>]>([
    // Pi's models are not told that a custom message is none of the user's: the text says so itself.
    ["a program", { ...user({ text: "x" }), author: "program" }, undefined, [foreignNotes.program, "x"]],
    ["the environment", { ...user({ text: "x" }), author: "environment" }, { author: "environment" }, ["x"]]
  ])("%s is a custom message", (_, draft, marks, texts) => {
    const [, record] = records([message(draft)])
    assert.deepStrictEqual(
      [record?.type, record?.customType, record?.content, record?.display, record?.palimpsest],
      ["custom_message", "palimpsest", texts.map((text) => ({ type: "text", text })), true, marks]
    )
    assert.strictEqual(draftsIn(read([message(draft)]))[0]?.author, draft.author)
  })

  it("a summary of two texts keeps both", () => {
    const two: Draft = { content: { role: "user", parts: [{ text: "so far" }, { text: "and on" }] }, author: "summary" }
    const steps = [says("a"), says("b"), compaction([two], 1)]
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
    assert.include(JSON.stringify(shownByPi(linesOf(writePi, transcript(steps)))), "and on")
  })

  it("a summary in the middle begins with a note that the user did not write it", () => {
    const steps = [says("a"), message(summary("so far"))]
    const record = records(steps)[2]
    assert.deepStrictEqual(
      [record?.type, record?.content],
      [
        "custom_message",
        [
          { type: "text", text: foreignNotes.summary },
          { type: "text", text: "so far" }
        ]
      ]
    )
    assert.strictEqual(exact(records(steps)), 0)
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })

  it("round-trip for a model's summary, a program that answers, and a user who writes our own note", () => {
    const steps = [
      message({ ...model({ text: "x" }), author: "summary" }),
      message(model(call("1"))),
      message({ ...user(result({ output: "x" }, "1")), author: "program" }),
      message(user({ text: foreignNotes.summary }, { text: "x" }))
    ]
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })
})

describe("compactions", () => {
  const talk = [says("a"), message(model({ text: "b" })), says("c")]

  it("one text in place of the rest names the first entry it kept", () => {
    const steps = [...talk, compaction([summary("s")], 1, { tokensBefore: 99 }), says("d")]
    const all = records(steps)
    assert.strictEqual(kinds(all), "session user model_change assistant user compaction user")
    assert.deepStrictEqual(
      [all[5]?.summary, all[5]?.firstKeptEntryId, all[5]?.tokensBefore, all[5]?.parentId],
      ["s", all[3]?.id, 99, all[4]?.id]
    )
    assert.deepStrictEqual(shownByPi(written(steps).lines), ["s", "b", "c", "d"])
  })

  it("without kept messages names itself, and Pi shows nothing from before", () => {
    const steps = [...talk, compaction([summary("s")]), says("d")]
    const all = records(steps)
    assert.strictEqual(all[5]?.firstKeptEntryId, all[5]?.id)
    assert.deepStrictEqual(shownByPi(written(steps).lines), ["s", "d"])
  })

  it("of any other form repeat everything Pi is to show, which is read once", () => {
    const steps = [...talk, compaction([summary("s"), model({ text: "ok" })], 1), says("d")]
    assert.deepStrictEqual(shownByPi(written(steps).lines), ["s", "ok", "b", "c", "d"])
    assert.deepStrictEqual(
      read(steps).steps.map((step) => (step._tag === "Compaction" ? step.keptFrom : step.draft.content.parts[0]?.text)),
      ["a", "b", "c", 1, "d"]
    )
  })

  it("without an insertion have a note in the runtime's name", () => {
    const steps = [...talk, compaction([], 1)]
    const cut = records(steps).find((record) => record.type === "compaction")
    assert.include(String(cut?.summary), runtimeMark)
    assert.deepStrictEqual(read(steps).steps.at(-1), compaction([], 1))
  })

  it.each<readonly [string, ReadonlyArray<Step>]>([
    ["manual, with tokens", [...talk, compaction([summary("s")], undefined, { trigger: "manual", tokensBefore: 5 })]],
    ["kept twice", [...talk, compaction([summary("s")], 1), says("d"), compaction([summary("t")], 1), says("e")]],
    [
      "from before an earlier one",
      [...talk, compaction([summary("s")]), says("d"), compaction([summary("t")], 1), says("e")]
    ],
    [
      "kept of what stood again",
      [...talk, compaction([summary("s"), summary("s")], 1), says("d"), compaction([summary("t")], 2), says("e")]
    ],
    ["all of it twice", [...talk, compaction([], 1), says("d"), compaction([model({ text: "t" })], 2), says("e")]],
    ["a summary with bytes", [...talk, compaction([summary("caf\uDCE9 \uD83D")], 1)]],
    [
      "the environment",
      [message({ ...user({ text: "env" }), author: "environment" }), ...talk, compaction([summary("s")], 3), says("d")]
    ],
    ["first of all", [compaction([summary("s")]), says("a")]],
    [
      "from the second message of results",
      [
        says("a"),
        message(model(call("1"), call("2"))),
        message(user(result({ output: "x" }, "1"))),
        message(user(result({ output: "y" }, "2"))),
        compaction([summary("s")], 3),
        says("d")
      ]
    ],
    [
      "several results kept again",
      [
        message(model(call("1"), call("2"))),
        message(user(result({ output: "x" }, "1"), result({ output: "y" }, "2"), { text: "z" })),
        compaction([], 0),
        says("d")
      ]
    ]
  ])("%s: reads as it was", (_, steps) => {
    const back = read(steps)
    assert.deepStrictEqual(told(viewOf(back)), told(viewOf(transcript(steps))))
    assert.deepStrictEqual(told(draftsIn(back)), told(draftsIn(transcript(steps))))
    assert.strictEqual(back.steps.length, steps.length)
    const about = ({ steps: all }: Transcript) =>
      all.flatMap((step) => (step._tag === "Compaction" ? [[step.trigger, step.tokensBefore]] : []))
    assert.deepStrictEqual(about(back), about(transcript(steps)))
  })

  it("repeat the environment", () => {
    const env: Step = message({ ...user({ text: "env" }), author: "environment" })
    const steps = [env, ...talk, compaction([summary("s")], 2), says("d")]
    assert.deepStrictEqual(shownByPi(written(steps).lines), ["s", "env", "b", "c", "d"])
    assert.deepStrictEqual(told(viewOf(read(steps))), told(viewOf(transcript(steps))))
  })

  it("between a call and its result do not separate them", () => {
    const steps = [
      says("a"),
      message(model(call("1"), call("2"))),
      message(user(result({ output: "x" }, "1"))),
      compaction([summary("s")], 1),
      message(user(result({ output: "y" }, "2")))
    ]
    const all = records(steps)
    assert.strictEqual(kinds(all), "session user model_change assistant toolResult compaction toolResult")
    assert.isTrue(all.every((record) => !("palimpsest" in record)))
    assert.strictEqual(read(steps).steps.length, 5)
  })

  it("messages after Pi's own cut within our insertion are kept", () => {
    const lines = linesOf(
      writePi,
      transcript([...talk, compaction([summary("s"), model({ text: "ok" })], 1), says("d")])
    )
    const ids = lines.map((line) => jsonOf(line).id)
    const inserted = lines.findIndex((line) => line.includes('"inserted":true'))
    const cut = {
      type: "compaction",
      id: "later",
      parentId: ids.at(-1),
      timestamp: "2026-01-01T00:00:00Z",
      summary: "t",
      firstKeptEntryId: ids[inserted],
      tokensBefore: 9
    }
    assert.deepStrictEqual(
      viewOf(readLines(piReader(), [...lines, JSON.stringify(cut)])).map((draft) => draft.content.parts[0]?.text),
      ["t", "b", "c", "d"]
    )
  })

  it("a result that Pi adds to a repeated turn is its own message", () => {
    const steps = [message(model(call("1"), call("2"))), message(user(result({ output: "x" }, "1"))), compaction([], 0)]
    const lines = linesOf(writePi, transcript(steps))
    const entry = {
      type: "message",
      id: "later",
      parentId: jsonOf(lines.at(-1) ?? "{}").id,
      timestamp: "2026-01-01T00:00:00Z",
      message: { role: "toolResult", toolCallId: "2", toolName: "read", content: [{ type: "text", text: "y" }] }
    }
    assert.deepStrictEqual(
      viewOf(readLines(piReader(), [...lines, JSON.stringify(entry)])).map(
        (draft) => draft.content.parts[0]?.functionResponse?.response
      ),
      [undefined, { output: "x" }, { output: "y" }]
    )
  })
})

describe("usage", () => {
  it.each<readonly [string, Draft["usage"], boolean]>([
    ["as Pi counts", { prompt: 60, cached: 20, cacheWrite: 30, answer: 7, thoughts: 0 }, false],
    ["with thoughts apart", { prompt: 60, cached: 0, cacheWrite: 0, answer: 7, thoughts: 3 }, true],
    ["without counts of cache writes", { prompt: 60, cached: 0, answer: 7, thoughts: 0 }, true],
    ["unknown", undefined, false]
  ])("%s comes back", (_, usage, marked) => {
    const draft = { ...model({ text: "x" }), ...(usage === undefined ? {} : { usage }) }
    assert.deepStrictEqual(draftsIn(read([message(draft)]))[0]?.usage, usage)
    assert.strictEqual(
      records([message(draft)]).some((record) => "palimpsest" in record),
      marked
    )
  })
})

describe("real files", () => {
  it.each(sessionNames)("%s: round-trips, also through the other format", (name) => {
    const reader = name.startsWith("pi") ? piReader : claudeReader
    const lines = sessionText(name)
      .split("\n")
      .filter((line) => line !== "")
    const original = readLines(reader(), lines)
    const out = runSync(writePi(original))
    assert.deepStrictEqual(out.unheld, {})
    // Pi has no place for what a cache keeps for an hour.
    const ours = draftsIn(original).filter(({ usage }) => usage?.cacheWriteHour !== undefined)
    assert.strictEqual(out.lines.filter((line) => "palimpsest" in jsonOf(line)).length, ours.length)
    const same = (back: Transcript) => {
      assert.deepStrictEqual(told(draftsIn(back)), told(draftsIn(original)))
      assert.deepStrictEqual(told(viewOf(back)), told(viewOf(original)))
      assert.deepStrictEqual(counted(draftsIn(back)), counted(draftsIn(original)))
      assert.deepStrictEqual([back.session, back.cwd, back.model], [original.session, original.cwd, original.model])
    }
    const back = readLines(piReader(), linesOf(writePi, original))
    same(back)
    const there = readLines(claudeReader(), linesOf(writeClaude, back))
    same(there)
    same(readLines(piReader(), linesOf(writePi, there)))
  })
})

describe("generated conversations", () => {
  it.prop(
    "round-trip for us and for the agent; each line is JSON on one line",
    [transcripts],
    ([original]) => {
      const out = runSync(writePi(original))
      for (const line of out.lines) {
        assert.notMatch(line, /[\r\n]/)
        assert.isTrue(isJson(JSON.parse(line)))
      }
      const back = readLines(piReader(), linesOf(writePi, original))
      assert.deepStrictEqual(told(draftsIn(back)), told(draftsIn(original)))
      assert.deepStrictEqual(told(viewOf(back)), told(viewOf(original)))
      assert.deepStrictEqual(counted(draftsIn(back)), counted(draftsIn(original)))
      assert.strictEqual(back.steps.length, original.steps.length)
    },
    { arbitrary: { runs: runsOf(500), seed: "pi", size: 24 } }
  )

  it.prop(
    "appear in Pi as in the view",
    [transcripts],
    ([{ steps, ...rest }]) => {
      // Texts alone, so that what Pi shows can be told from what was said; the environment stands behind the summary.
      let n = 0
      const plain = (draft: Draft): Draft => {
        n += 1
        const { author: _author, ...own } = draft
        return {
          ...own,
          ...(draft.author === "summary" && draft.content.role === "user" ? { author: "summary" } : {}),
          content: { role: draft.content.role, parts: [{ text: `text ${n}` }] },
          source: {}
        }
      }
      const original: Transcript = {
        ...rest,
        steps: steps.map((step) =>
          step._tag === "Message" ? message(plain(step.draft)) : { ...step, insert: step.insert.map(plain) }
        )
      }
      const shown = shownByPi(runSync(writePi(original)).lines)
        .filter((text) => !String(text).startsWith(runtimeMark) || String(text).includes("|"))
        .map((text) => String(text).split("|").at(-1))
      assert.deepStrictEqual(
        shown,
        viewOf(original).map((draft) => draft.content.parts[0]?.text)
      )
    },
    { arbitrary: { runs: runsOf(500), seed: "pi sees", size: 24 } }
  )
})
