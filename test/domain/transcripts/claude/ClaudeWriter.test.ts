import { assert, describe, it } from "@effect/vitest"
import { call, model, type Part, response, text, user } from "../../../../src/domain/content/Content.ts"
import type { Draft } from "../../../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../../../src/domain/text/RuntimeMark.ts"
import { isJson, type Json } from "../../../../src/domain/transcripts/JsonRecord.ts"
import type { Step } from "../../../../src/domain/transcripts/Transcript.ts"
import { runsOf } from "../../../support/runs.ts"
import {
  cut,
  draftsIn,
  readText,
  recordsOf,
  said,
  says,
  summary,
  transcriptOf,
  transcripts,
  viewOf,
  writtenText
} from "../../../support/transcripts.ts"

/** What Claude Code's own records are like. That they come back is tested in `writers.test.ts`. */

const session = transcriptOf([]).session
const records = (...steps: ReadonlyArray<Step>) => recordsOf("claude", steps)
const messageIn = (record: Json | undefined): Json => (isJson(record?.message) ? record.message : {})
const contentIn = (record: Json | undefined): unknown => messageIn(record).content
const blocksIn = (record: Json): ReadonlyArray<Json> => {
  const content = contentIn(record)
  return Array.isArray(content) ? content : [{ type: "text", text: content }]
}
const back = (steps: ReadonlyArray<Step>, ...more: ReadonlyArray<object>) => {
  const { text: file } = writtenText("claude", transcriptOf(steps))
  return readText(`${file}${more.map((record) => JSON.stringify(record)).join("\n")}`)
}
const textBlock = (words: string) => ({ type: "text", text: words })
/** The records that carry exact parts. */
const exact = (all: ReadonlyArray<Json>): number =>
  all.filter((record) => isJson(record.palimpsest) && "parts" in record.palimpsest).length
const image: Part = { inlineData: { mimeType: "image/png", data: "AA" } }
const answered = (answer: unknown, id = "t") => [
  said(model(call("Read", {}, id))),
  said(user(response("Read", answer, id)))
]

describe("records", () => {
  it("form a chain of lines as Claude Code writes them", () => {
    const usage = { prompt: 60, cached: 20, cacheWrite: 30, cacheWriteHour: 12, answer: 7, thoughts: 0 }
    const thought = { text: "hm", thought: true, thoughtSignature: "sig" }
    const all = records(
      said(user(text("go")), { at: 1_000 }),
      said(model(thought, text("Look."), call("Read", { a: 1 }, "toolu_1")), { usage, model: "claude-x" }),
      said(user(response("Read", { output: "out" }, "toolu_1")))
    )
    const uuids = all.map(({ uuid }) => String(uuid))
    assert.strictEqual(new Set(uuids).size, 3)
    const about = {
      cwd: "/w",
      isSidechain: false,
      sessionId: session,
      timestamp: "1970-01-01T00:00:01.000Z",
      userType: "external"
    }
    for (const [index, record] of all.entries()) {
      assert.match(uuids[index] ?? "", /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
      assert.deepInclude(record, { ...about, parentUuid: uuids[index - 1] ?? null })
      assert.notProperty(record, "palimpsest")
    }
    assert.deepStrictEqual(all.map(messageIn), [
      { role: "user", content: "go" },
      {
        model: "claude-x",
        id: `msg_${uuids[1]?.replaceAll("-", "")}`,
        type: "message",
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "sig" },
          textBlock("Look."),
          { type: "tool_use", id: "toolu_1", name: "Read", input: { a: 1 } }
        ],
        stop_reason: "tool_use",
        stop_sequence: null,
        usage: {
          input_tokens: 10,
          cache_creation_input_tokens: 30,
          cache_read_input_tokens: 20,
          output_tokens: 7,
          cache_creation: { ephemeral_5m_input_tokens: 18, ephemeral_1h_input_tokens: 12 }
        }
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "out" }] }
    ])
  })

  it("keep the uuids that messages had, each once", () => {
    const known = "dd3cc2e6-a191-4331-a0f0-2473e6d7692d"
    const made = String(records(says("x"))[0]?.uuid)
    const from = (...ids: ReadonlyArray<string>) => said(user(text("x")), { origin: { line: 1, ids } })
    const uuids = records(from("a1b2c3d4"), from(known), from(known), from(), from(made)).map(({ uuid }) => uuid)
    assert.deepStrictEqual([uuids[1], uuids[4]], [known, made])
    assert.strictEqual(new Set(uuids).size, 5)
  })

  it.each<readonly [string, Step, string | undefined, string]>([
    ["its own", said(model(text("x")), { model: "claude-x" }), "claude-y", "claude-x"],
    ["else that of the conversation", said(model(text("x"))), "claude-y", "claude-y"],
    ["else the one of lines that no model wrote", said(model(text("x"))), undefined, "<synthetic>"]
  ])("the model is %s", (_, step, known, expected) => {
    assert.strictEqual(messageIn(recordsOf("claude", [step], { model: known })[0]).model, expected)
  })

  it("an empty answer is marked", () => {
    assert.deepStrictEqual(contentIn(records(says("go"), said(model()))[1]), [textBlock("(no content)")])
  })

  it("texts of a program and of the environment are marked as such", () => {
    const [program, environment] = records(
      said(user(text("x")), { author: "program" }),
      said(user(text("x")), { author: "environment" })
    )
    assert.deepStrictEqual([program?.isMeta, environment?.isMeta], [true, true])
    assert.deepStrictEqual([program?.palimpsest, environment?.palimpsest], [undefined, { author: "environment" }])
  })

  it("a summary in the middle begins with a note that the user did not write it", () => {
    const all = records(says("a"), { _tag: "Message", draft: summary("so far") })
    assert.deepStrictEqual(contentIn(all[1]), [textBlock(foreignNotes.summary), textBlock("so far")])
    assert.strictEqual(exact(all), 0)
  })
})

describe("calls and results", () => {
  it.each<readonly [string, string | undefined, boolean]>([
    ["an id that the API takes", "call_0-1", true],
    ["one that it does not take", "call|fc_1", false],
    ["an empty one", "", false],
    ["none", undefined, false]
  ])("%s", (_, id, native) => {
    const all = records(said(model(call("Read", {}, id))), said(user(response("Read", {}, id))))
    const [made, answer] = all.flatMap(blocksIn)
    assert.strictEqual(made?.id, answer?.tool_use_id)
    assert.match(String(made?.id), native ? /^call_0-1$/ : /^toolu_[0-9a-f]{24}$/)
    assert.strictEqual(exact(all), native ? 1 : 2)
  })

  it.each<readonly [string, unknown, Json, number]>([
    ["an output", { output: "x" }, { content: "x" }, 0],
    ["an empty output", { output: "" }, { content: "" }, 0],
    ["an error", { error: "x" }, { content: "x", is_error: true }, 0],
    ["an error without a word", { error: "" }, { content: "(no content)", is_error: true }, 1],
    ["blocks", { content: [textBlock("a"), textBlock("b")] }, { content: [textBlock("a"), textBlock("b")] }, 0],
    [
      "an image as Pi writes it",
      { content: [textBlock("a"), { type: "image", data: "AA", mimeType: "image/png" }] },
      { content: [textBlock("a"), { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }] },
      1
    ],
    [
      "a block of another kind",
      { content: [{ type: "chart", x: 1 }] },
      { content: [textBlock('{"type":"chart","x":1}')] },
      1
    ],
    ["one text under another key", { result: "x" }, { content: "x" }, 1],
    ["anything else", { rows: [1], n: 2 }, { content: '{"rows":[1],"n":2}' }, 1],
    ["nothing", undefined, { content: "" }, 1]
  ])("a result that is %s", (_, answer, expected, beside) => {
    const all = records(...answered(answer))
    assert.deepStrictEqual(contentIn(all[1]), [{ type: "tool_result", tool_use_id: "t", ...expected }])
    assert.strictEqual(exact(all), beside)
  })
})

it("results come first in a message, as the API requires", () => {
  const steps = [
    said(model(call("f", {}, "t"))),
    said(user(text("note"), response("f", { output: "x" }, "t"), text("")))
  ]
  assert.deepStrictEqual(
    blocksIn(records(...steps)[1] ?? {}).map((block) => block.type),
    ["tool_result", "text"]
  )
})

describe("content that Claude Code will not show is counted", () => {
  const thought = (own: string | undefined, thoughtSignature?: string) =>
    said(
      model({ text: "t", thought: true, ...(thoughtSignature === undefined ? {} : { thoughtSignature }) }),
      own === undefined ? {} : { model: own }
    )
  it.each<readonly [string, ReadonlyArray<Step>, Readonly<Record<string, number>>]>([
    [
      "nothing of an ordinary talk",
      [
        says("a"),
        ...answered({ output: "x" }),
        said(user(image, { inlineData: { mimeType: "application/pdf", data: "AA" } }))
      ],
      {}
    ],
    ["a thought signed by Claude, or by nobody knows whom", [thought("claude-x", "s"), thought(undefined, "s")], {}],
    [
      "thoughts of another model, and without a signature",
      [thought("gemini-y", "s"), thought("claude-x")],
      { thoughts: 2 }
    ],
    [
      "sound, and media of the model",
      [said(user({ inlineData: { mimeType: "audio/wav", data: "AA" } })), said(model(image))],
      { media: 2 }
    ],
    [
      "a file on the web is seen",
      [said(user({ fileData: { mimeType: "image/png", fileUri: "https://x.example/a" } }))],
      {}
    ],
    ["others are not", [said(user({ fileData: { mimeType: "image/png", fileUri: "gs://a/b" } }))], { files: 1 }],
    ["a result without its call", [said(user(response("f", {}, "t")))], { "results without a call": 1 }],
    [
      "a result that comes too late",
      [said(model(call("f", {}, "t"))), says("hm"), said(model(text("?"))), said(user(response("f", {}, "t")))],
      { "results without a call": 1 }
    ],
    [
      "parts of the wrong role",
      [said(user(call("f", {}, "t"), { text: "t", thought: true })), said(model(response("f", {}, "t")))],
      { "calls of the user": 1, thoughts: 1, "results of the model": 1 }
    ],
    [
      "signatures of calls and texts",
      [said(model({ ...call("f", {}, "t"), thoughtSignature: "s" }, { text: "x", thoughtSignature: "s" }))],
      { signatures: 2 }
    ],
    [
      "unknown parts, once, however often they are written",
      [said(model({ executableCode: {} })), cut([summary("s")], 0), cut([summary("s")], 0)],
      { "unknown parts": 1 }
    ],
    [
      "media in results",
      [
        said(model(call("f", {}, "t"))),
        said(user({ functionResponse: { id: "t", name: "f", response: {}, parts: [] } }))
      ],
      { "media in results": 1 }
    ]
  ])("%s", (_, steps, expected) => {
    assert.deepStrictEqual(writtenText("claude", transcriptOf(steps)).unheld, expected)
  })
})

describe("compactions", () => {
  const talk = [says("a"), said(model(text("b"))), says("c")]

  it("write a boundary with its logical parent, the summary, and again what was kept", () => {
    const all = records(...talk, cut([summary("s")], 1, "manual", 99), says("d"))
    const [boundary, second] = all.slice(3)
    assert.deepInclude(boundary, {
      type: "system",
      subtype: "compact_boundary",
      parentUuid: null,
      logicalParentUuid: all[2]?.uuid,
      compactMetadata: { trigger: "manual", preTokens: 99 }
    })
    assert.deepInclude(second, { parentUuid: boundary?.uuid, isCompactSummary: true })
    assert.deepStrictEqual(
      all.map((record) =>
        record.subtype === undefined
          ? blocksIn(record)
              .map((block) => block.text)
              .join("|")
          : "boundary"
      ),
      ["a", "b", "c", "boundary", `${foreignNotes.summary}|s`, "b", "c", "d"]
    )
    const [, , , , placeholder] = records(...talk, cut([], 1))
    assert.include(String(contentIn(placeholder)), runtimeMark)
  })

  it("repeated messages count no usage again, and keep their time", () => {
    const usage = { prompt: 170_000, cached: 0, answer: 1, thoughts: 0 }
    const all = records(
      said(model(text("a")), { usage, at: 1_000 }),
      said(user(text("b")), { at: 2_000 }),
      says("c"),
      cut([{ ...summary("s"), at: 9_000 }], 0),
      says("d")
    )
    // What is repeated does not turn the clock back for what follows.
    assert.deepStrictEqual(
      all.map((record) => Date.parse(String(record.timestamp))),
      [1_000, 2_000, 2_000, 9_000, 9_000, 1_000, 2_000, 9_000, 9_000]
    )
    assert.deepInclude(messageIn(all[5]).usage, { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 })
    assert.notStrictEqual(messageIn(all[5]).id, messageIn(all[0]).id)
  })

  const later = (parentUuid: unknown, content: unknown) => ({
    type: "user",
    uuid: "later",
    parentUuid,
    sessionId: session,
    message: { role: "user", content }
  })

  it("Claude Code can go back to one of the repeated messages", () => {
    // a b c | boundary s a' b' c': back to b', and on from there.
    const steps = [...talk, cut([summary("s")], 0)]
    const shown = viewOf(back(steps, later(records(...steps)[6]?.uuid, "d")))
    assert.deepStrictEqual(
      shown.map(({ content }) => content.parts[0]?.text),
      ["s", "a", "b", "d"]
    )
  })

  it("an answer that the agent adds to a repeated turn is its own message", () => {
    const steps = [
      said(model(call("f", {}, "1"), call("f", {}, "2"))),
      said(user(response("f", { output: "x" }, "1"))),
      cut([summary("s")], 0)
    ]
    const result = [{ type: "tool_result", tool_use_id: "2", content: "y" }]
    const shown = viewOf(back(steps, later(records(...steps).at(-1)?.uuid, result)))
    assert.deepStrictEqual(
      shown.map(({ content }) => content.parts[0]?.functionResponse?.response),
      [undefined, undefined, { output: "x" }, { output: "y" }]
    )
  })
})

it.each<readonly [string, Draft["usage"], boolean]>([
  ["as Claude counts", { prompt: 60, cached: 20, cacheWrite: 30, answer: 7, thoughts: 0 }, false],
  ["without a cache", { prompt: 60, cached: 0, answer: 7, thoughts: 0 }, false],
  ["with thoughts apart", { prompt: 60, cached: 0, answer: 7, thoughts: 3 }, true],
  ["of nothing at all", { prompt: 0, cached: 0, answer: 0, thoughts: 0 }, true],
  ["that does not add up", { prompt: 1, cached: 5, answer: 7, thoughts: 0 }, true],
  ["unknown", undefined, false]
])("usage %s is marked where its own form loses it", (_, usage, marked) => {
  const step = said(model(text("x")), usage === undefined ? {} : { usage })
  assert.deepStrictEqual(draftsIn(back([step]))[0]?.usage, usage)
  assert.strictEqual("palimpsest" in (records(step)[0] ?? {}), marked)
})

it.prop(
  "generated conversations are valid for the Anthropic API: unique ids, results after their calls, nothing empty",
  [transcripts],
  ([original]) => {
    let calls = new Set<unknown>()
    for (const record of recordsOf("claude", original.steps)) {
      if (record.subtype === "compact_boundary") {
        calls = new Set()
        continue
      }
      const blocks = blocksIn(record)
      assert.isAbove(blocks.length, 0)
      for (const block of blocks) {
        if (block.type === "text") assert.notStrictEqual(block.text, "")
        if (block.type === "tool_use") {
          assert.match(String(block.id), /^[a-zA-Z0-9_-]+$/)
          assert.isFalse(calls.has(block.id))
          assert.isTrue(isJson(block.input))
          calls.add(block.id)
        }
        if (block.type === "tool_result") {
          assert.strictEqual(record.type, "user")
          assert.isTrue(calls.has(block.tool_use_id))
        }
      }
    }
  },
  { arbitrary: { runs: runsOf(300), seed: "api", size: 24 } }
)
