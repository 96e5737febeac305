import { assert, describe, it } from "@effect/vitest"
import { outputText, type Part } from "../../../src/domain/content/Content.ts"
import type { Draft } from "../../../src/domain/conversation/Conversation.ts"
import { foreignNotes, missingResponse } from "../../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { estimateText, partTokens } from "../../../src/domain/tokens/Tokens.ts"
import { claudeReader } from "../../../src/domain/transcripts/claude/ClaudeReader.ts"
import { writeClaude } from "../../../src/domain/transcripts/claude/ClaudeWriter.ts"
import { codexReader } from "../../../src/domain/transcripts/codex/CodexReader.ts"
import { writeCodex } from "../../../src/domain/transcripts/codex/CodexWriter.ts"
import { geminiReader } from "../../../src/domain/transcripts/gemini/GeminiReader.ts"
import { writeGemini } from "../../../src/domain/transcripts/gemini/GeminiWriter.ts"
import { isJson, type Json } from "../../../src/domain/transcripts/JsonRecord.ts"
import { piReader } from "../../../src/domain/transcripts/pi/PiReader.ts"
import { writePi } from "../../../src/domain/transcripts/pi/PiWriter.ts"
import type { LineReader, Step, Transcript, Writer } from "../../../src/domain/transcripts/Transcript.ts"
import { linesOf, readLines } from "../../support/transcripts.ts"

/** What other agents' programs need of a file to go on with our view; `npm run test:peers` asks the programs themselves. */

const transcript = (steps: ReadonlyArray<Step>): Transcript => ({
  format: "palimpsest",
  session: "4d5611e5-241a-462a-8d15-5122611a9569",
  cwd: "/w",
  model: undefined,
  steps,
  skipped: {}
})
const message = (draft: Draft): Step => ({ _tag: "Message", draft })
const user = (...parts: ReadonlyArray<Part>): Draft => ({ content: { role: "user", parts } })
const model = (...parts: ReadonlyArray<Part>): Draft => ({ content: { role: "model", parts }, model: "claude-x" })
const summary = (text: string): Draft => ({ ...user({ text }), author: "summary" })
const compaction = (insert: ReadonlyArray<Draft>, keptFrom?: number): Step => ({
  _tag: "Compaction",
  insert,
  keptFrom,
  trigger: "auto",
  tokensBefore: undefined
})
const call = (id: string): Part => ({ functionCall: { id, name: "Read", args: { path: id } } })
const result = (id: string): Part => ({ functionResponse: { id, name: "Read", response: { output: `in ${id}` } } })

const formats: ReadonlyArray<readonly [name: string, writer: Writer, reader: () => LineReader]> = [
  ["Claude Code", writeClaude, claudeReader],
  ["Codex", writeCodex, codexReader],
  ["Gemini CLI", writeGemini, geminiReader],
  ["Pi", writePi, piReader]
]

const records = (writer: Writer, steps: ReadonlyArray<Step>): ReadonlyArray<Json> =>
  linesOf(writer, transcript(steps)).map((line) => {
    const value: unknown = JSON.parse(line)
    return isJson(value) ? value : {}
  })

/** A file's records as the agent has them: without what we say beside its own form. */
const native = (writer: Writer, steps: ReadonlyArray<Step>): string =>
  JSON.stringify(records(writer, steps).map(({ palimpsest: _ours, ...record }) => record))

const times = (text: string, part: string): number => text.split(part).length - 1

/** What reading a file gives, without ids and times. */
const readBack = (writer: Writer, reader: () => LineReader, steps: ReadonlyArray<Step>): ReadonlyArray<unknown> =>
  readLines(reader(), linesOf(writer, transcript(steps))).steps.flatMap((step) =>
    (step._tag === "Message" ? [step.draft] : step.insert).map(({ author, content }) => ({ author, content }))
  )

const talk: ReadonlyArray<Step> = [
  message(user({ text: "go" })),
  message(model({ text: "Looking." }, call("c1"))),
  message(user(result("c1"))),
  message(model({ text: "Done." })),
  message(user({ text: "thanks" })),
  message(model({ text: "You are welcome." }))
]

describe("Claude Code", () => {
  it.each<readonly [string, ReadonlyArray<Step>]>([
    ["a compaction", [...talk, compaction([summary("s")], 1)]],
    ["an older compaction, and what came after it", [...talk, compaction([summary("s")], 1), ...talk.slice(0, 4)]],
    ["two compactions", [...talk, compaction([summary("s")], 1), ...talk, compaction([summary("t")], 3)]]
  ])("no two lines are of one message, so that none is joined with its repetition: %s", (_, steps) => {
    const ids = records(writeClaude, steps).flatMap(({ message }) =>
      isJson(message) && message.role === "assistant" ? [message.id] : []
    )
    assert.isAbove(ids.length, 3)
    assert.strictEqual(new Set(ids).size, ids.length)
    assert.deepStrictEqual(records(writeClaude, steps), records(writeClaude, steps))
  })
})

describe("Codex", () => {
  const usage = { prompt: 170_000, cached: 0, answer: 1, thoughts: 0 }
  const infos = (steps: ReadonlyArray<Step>): ReadonlyArray<Json> =>
    records(writeCodex, steps).flatMap(({ payload }) =>
      isJson(payload) && payload.type === "token_count" && isJson(payload.info) ? [payload.info] : []
    )

  it("gets after a compaction the remaining tokens, not the earlier count", () => {
    const kept = talk.slice(3)
    const steps = [
      ...talk.slice(0, 5),
      message({ ...model({ text: "You are welcome." }), usage }),
      compaction([summary("s")], 3)
    ]
    const left = [{ text: "s" }, ...kept.flatMap((step) => (step._tag === "Message" ? step.draft.content.parts : []))]
    const tokens = left.reduce((sum, part) => sum + runSync(partTokens(part, outputText(part))), 0)
    const [before, after, ...others] = infos(steps)
    assert.deepStrictEqual(others, [])
    assert.isTrue(isJson(before?.last_token_usage) && before.last_token_usage.total_tokens === 170_001)
    assert.deepStrictEqual(after?.last_token_usage, {
      input_tokens: 0,
      cached_input_tokens: 0,
      output_tokens: 0,
      reasoning_output_tokens: 0,
      total_tokens: tokens
    })
    assert.deepStrictEqual(after?.total_token_usage, before?.total_token_usage)
    assert.isAtLeast(tokens, estimateText("You are welcome."))
    const types = records(writeCodex, steps).map(({ type }) => type)
    assert.strictEqual(types[types.indexOf("compacted") + 1], "event_msg")
  })

  it.each<readonly [string, Part, string | undefined, boolean]>([
    ["unsigned, of another model", { text: "hm", thought: true }, "claude-x", false],
    ["unsigned, of an unknown model", { text: "hm", thought: true }, undefined, false],
    ["signed by another", { text: "hm", thought: true, thoughtSignature: "EqQB" }, "gpt-5", false],
    ["signed by OpenAI", { text: "hm", thought: true, thoughtSignature: "gAAAAx" }, "gpt-5", true],
    ["unsigned, of a model of OpenAI's", { text: "hm", thought: true }, "gpt-5-codex", true]
  ])("a thought %s", (_, thought, name, isGiven) => {
    const { model: _model, ...draft } = model(thought, { text: "Yes." })
    const steps = [message(user({ text: "go" })), message(name === undefined ? draft : { ...draft, model: name })]
    assert.strictEqual(native(writeCodex, steps).includes('"reasoning"'), isGiven)
    assert.strictEqual(native(writeCodex, steps).includes('"hm"'), isGiven)
    const { unheld } = runSync(writeCodex(transcript(steps)))
    assert.deepStrictEqual(unheld, isGiven ? {} : { "thought of another model": 1 })
    assert.deepStrictEqual(readBack(writeCodex, codexReader, steps)[1], { author: undefined, content: draft.content })
  })
})

describe.each(formats)("%s", (_, writer, reader) => {
  const ours = `${runtimeMark} The messages e1 to e4 left the window.`

  it("has no note before a snapshot that names its own author", () => {
    for (const steps of [
      [...talk, compaction([summary(ours)], 3)],
      [message(summary(ours)), ...talk]
    ]) {
      assert.strictEqual(times(native(writer, steps), foreignNotes.summary), 0)
      assert.isAtLeast(times(native(writer, steps), ours), 1)
      assert.deepInclude(readBack(writer, reader, steps), summary(ours))
    }
  })

  it("has one before any other text that is not the user's", () => {
    const steps = [message({ ...user({ text: "Mind the gap." }), author: "program" }), message(summary("s")), ...talk]
    const text = native(writer, steps)
    assert.deepStrictEqual([times(text, foreignNotes.program), times(text, foreignNotes.summary)], [1, 1])
    assert.deepInclude(readBack(writer, reader, steps), summary("s"))
  })
})

describe.each(formats.filter(([name]) => name === "Claude Code" || name === "Gemini CLI"))(
  "%s",
  (_, writer, reader) => {
    const owed = outputText(missingResponse({ name: "Read" })) ?? ""

    it.each<readonly [string, ReadonlyArray<Step>, number]>([
      ["none", talk, 0],
      ["the only one of its message", [...talk, message(model(call("x"))), message(user({ text: "stop" }))], 1],
      ["one of two", [message(model(call("x"), call("y"))), message(user(result("y"))), ...talk], 1],
      [
        "before an answer of the model",
        [message(model(call("x"))), message(user({ text: "no" })), ...talk.slice(1)],
        1
      ],
      ["the last", [...talk, message(model(call("x")))], 1],
      [
        "the last before a compaction that parts it",
        [...talk, message(model(call("x"))), compaction([summary("s")]), ...talk],
        0
      ],
      [
        "kept by a compaction",
        [message(model(call("x"))), message(user({ text: "a" })), ...talk, compaction([summary("s")], 0)],
        2
      ]
    ])("answers calls that never got an answer, and reading leaves that out: %s", (_, steps, count) => {
      assert.strictEqual(times(native(writer, steps), owed), count)
      const said = steps.flatMap((step) => (step._tag === "Message" ? [step.draft] : step.insert))
      assert.deepStrictEqual(
        readBack(writer, reader, steps),
        said.map(({ author, content }) => ({ author, content }))
      )
    })
  }
)
