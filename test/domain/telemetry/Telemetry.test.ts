import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import {
  ActivityBuffer,
  compressionEntry,
  eventEntry,
  summaryCallEntries,
  ToolNameTracker
} from "../../../src/domain/telemetry/Telemetry.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { runsOf } from "../../support/runs.ts"

const record = (at: number) => ({ name: `n${at % 3}`, at, session: null, attributes: {} })

describe("the activity buffer", () => {
  it.prop(
    "keeps the newest records in order, and counts them",
    [
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 }))
    ],
    ([most, count]) => {
      const buffer = new ActivityBuffer(most)
      for (let at = 0; at < count; at += 1) buffer.push(record(at))
      const { kinds, range, records } = buffer.view()
      const expected = Array.from({ length: count }, (_, at) => at).slice(-most)
      assert.deepStrictEqual(
        records.map(({ at }) => at),
        expected
      )
      assert.strictEqual(
        Object.values(kinds).reduce((sum, n) => sum + n, 0),
        expected.length
      )
      assert.deepStrictEqual(range, expected.length === 0 ? null : { from: expected[0] ?? 0, to: expected.at(-1) ?? 0 })
    },
    { arbitrary: { runs: runsOf(300), seed: "activities" } }
  )

  it.each([0, -1, Number.NaN])("of %d records keeps the last one", (size) => {
    const buffer = new ActivityBuffer(size)
    for (let at = 0; at < 3; at += 1) buffer.push(record(at))
    assert.deepStrictEqual(buffer.view().records, [record(2)])
  })
})

describe("the record of an event", () => {
  const words = "something a person said"
  const speaking: ReadonlyArray<ChatEvent> = [
    { _tag: "Content", text: words },
    { _tag: "Thought", subject: words, description: words },
    { _tag: "ToolCallRequest", id: "c1", call: { name: "read_file", args: { path: words } } },
    { _tag: "ToolCallStarted", id: "1", name: "read_file", title: words },
    { _tag: "ToolCallProgress", id: "1", text: words },
    { _tag: "ToolCallConfirmation", id: "1", name: "shell", title: words, detail: words },
    {
      _tag: "ToolCallResponse",
      id: "1",
      name: "shell",
      status: "error",
      display: { _tag: "Text", text: words },
      message: words,
      duration: 5
    },
    { _tag: "Retry", attempt: 2, delay: 5, reason: "NetworkError", message: words },
    { _tag: "Error", reason: "NetworkError", message: words },
    { _tag: "Notice", source: "hook", message: words },
    { _tag: "HookStopped", message: words, refused: true },
    {
      _tag: "ContextWindowWillOverflow",
      what: "message",
      estimated: TokenCount.make(1),
      remaining: TokenCount.make(1),
      limit: TokenCount.make(1),
      stubborn: [],
      text: words,
      message: words
    }
  ]

  for (const event of speaking) {
    it(`contains no conversation text: ${event._tag}`, () =>
      assert.notInclude(JSON.stringify(eventEntry(event, false) ?? null), words))
  }

  it("contains text when enabled", () => {
    assert.include(JSON.stringify(eventEntry({ _tag: "Content", text: words }, true)), words)
  })

  const answered = (name: string, id = "1"): ChatEvent => ({
    _tag: "ToolCallResponse",
    id,
    name,
    status: "error",
    display: null,
    message: null,
    duration: 5
  })
  const toolOf = (seen: ToolNameTracker, event: ChatEvent, prompts = false) =>
    eventEntry(event, prompts, seen.of(event))?.attributes["tool"]

  it("omits the name of an unknown tool, which the model made up", () => {
    const seen = new ToolNameTracker()
    for (const name of ["the_password_is_hunter2", words, "x".repeat(65), "a\nb"]) {
      assert.strictEqual(toolOf(seen, answered(name)), "unknown")
    }
    assert.strictEqual(toolOf(seen, answered("hunter2"), true), "hunter2")
  })

  it("contains the name of a tool that has started or was asked about", () => {
    const seen = new ToolNameTracker()
    seen.of({ _tag: "ToolCallStarted", id: "1", name: "read_file", title: words })
    // It was called by another name that it answers to.
    assert.strictEqual(toolOf(seen, answered("ReadFile")), "read_file")
    assert.strictEqual(toolOf(seen, answered("read_file", "2")), "read_file")
    assert.strictEqual(toolOf(seen, answered("ReadFile", "3")), "unknown")
    seen.of({ _tag: "ToolCallConfirmation", id: "4", name: "shell", title: words, detail: words })
    assert.strictEqual(toolOf(seen, answered("shell", "4")), "shell")
  })

  const models: ReadonlyArray<readonly [model: string, shown: string]> = [
    ["gemini-2.5-pro", "gemini-2.5-pro"],
    ["models/gemini-2.5-pro", "models/gemini-2.5-pro"],
    [words, "unknown"],
    ["x".repeat(65), "unknown"],
    ["a/b", "unknown"]
  ]
  it.each(models)("contains a valid model name: %s", (model, shown) => {
    const event: ChatEvent = { _tag: "ModelInfo", model, limit: TokenCount.make(1) }
    assert.strictEqual(eventEntry(event, false)?.attributes["model"], shown)
    assert.strictEqual(eventEntry(event, true)?.attributes["model"], model)
  })

  const compressions: ReadonlyArray<readonly [status: string, isTold: boolean]> = [
    ["COMPRESSED", true],
    ["CONTENT_TRUNCATED", true],
    ["COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", true],
    ["COMPRESSION_FAILED_EMPTY_SUMMARY", true],
    ["FAILED_SUMMARIZER", true],
    ["CANCELLED", true],
    ["NOOP", false]
  ]
  it.each(compressions)("chat_compression has tokens before and after: %s", (status, isTold) => {
    const told = compressionEntry({
      _tag: "PostCompress",
      trigger: "auto",
      status,
      before: TokenCount.make(100),
      after: TokenCount.make(40)
    })
    assert.deepStrictEqual(
      told,
      isTold
        ? { name: "chat_compression", attributes: { tokens_before: 100, tokens_after: 40, status, trigger: "auto" } }
        : undefined
    )
  })

  it("each call of a compression has prompt id, role and cost, without text", () => {
    const call = { promptId: "compress-7", purpose: "generate", model: "gemini-2.5-pro", usage: null }
    const usage = { prompt: 10, answer: 5, thoughts: 1, cached: 2 }
    const told = summaryCallEntries({
      _tag: "PostCompress",
      trigger: "manual",
      status: "COMPRESSED",
      before: TokenCount.make(100),
      after: TokenCount.make(40),
      promptId: "compress-7",
      calls: [call, { ...call, promptId: "compress-7-verify", purpose: "verify", usage }]
    })
    const shared = { role: "utility_compressor", model: "gemini-2.5-pro" }
    assert.deepStrictEqual(told, [
      { name: "summary_call", attributes: { prompt_id: "compress-7", ...shared, purpose: "generate" } },
      {
        name: "summary_call",
        attributes: {
          prompt_id: "compress-7-verify",
          ...shared,
          purpose: "verify",
          prompt_tokens: 10,
          answer_tokens: 5,
          thought_tokens: 1,
          cached_tokens: 2
        }
      }
    ])
  })
})
