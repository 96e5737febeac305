import { assert, describe, it } from "@effect/vitest"
import { call, model, type Part, response, text, user } from "../../../../src/domain/content/Content.ts"
import type { Draft } from "../../../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../../../src/domain/text/RuntimeMark.ts"
import { isJson, type Json } from "../../../../src/domain/transcripts/JsonRecord.ts"
import type { Step, Transcript } from "../../../../src/domain/transcripts/Transcript.ts"
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

/** What Pi's own entries are like. That they come back is tested in `writers.test.ts`. */

const records = (...steps: ReadonlyArray<Step>) => recordsOf("pi", steps)
const messagesIn = (all: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  all.flatMap((record) => (isJson(record.message) ? [record.message] : []))
const back = (steps: ReadonlyArray<Step>, ...more: ReadonlyArray<object>) =>
  readText(`${writtenText("pi", transcriptOf(steps)).text}${more.map((record) => JSON.stringify(record)).join("\n")}`)
const exact = (all: ReadonlyArray<Json>): number =>
  all.filter((record) => isJson(record.palimpsest) && "parts" in record.palimpsest).length
/** `session user assistant compaction`: what there is, in order. */
const kinds = (all: ReadonlyArray<Json>): string =>
  all.map((record) => (isJson(record.message) ? record.message.role : record.type)).join(" ")
const textBlock = (words: string) => ({ type: "text", text: words })
const image: Part = { inlineData: { mimeType: "image/png", data: "AA" } }
const answered = (answer: unknown, id = "t") => [
  said(model(call("read", {}, id))),
  said(user(response("read", answer, id)))
]

/** What Pi itself would show its model of a file: texts of entries, or what they are. */
const shownByPi = ([, ...entries]: ReadonlyArray<Json>): ReadonlyArray<unknown> => {
  const at = entries.findLastIndex((entry) => entry.type === "compaction")
  const last = entries[at]
  const first = last === undefined ? 0 : entries.findIndex((entry) => entry.id === last.firstKeptEntryId)
  const emitted = [...entries.slice(first < 0 ? at : first, Math.max(at, 0)), ...entries.slice(at + 1)]
  return [
    ...(last === undefined ? [] : [last.summary]),
    ...(last === undefined ? entries : emitted).flatMap((entry) => {
      const content = isJson(entry.message) ? entry.message.content : entry.content
      return Array.isArray(content) ? [content.map((block) => block.text ?? block.type).join("|")] : []
    })
  ]
}

describe("entries", () => {
  it("form a path behind a header of version 3, as Pi writes them", () => {
    const usage = { prompt: 60, cached: 20, cacheWrite: 30, answer: 7, thoughts: 0 }
    const thought = { text: "hm", thought: true, thoughtSignature: "sig" }
    const all = records(
      said(user(text("go"), image), { at: 1_000 }),
      said(model(thought, text("Look."), call("read", { a: 1 }, "t1")), { usage, at: 2_000, model: "claude-x" }),
      said(user(response("read", { output: "out" }, "t1")))
    )
    assert.deepStrictEqual(all[0], {
      type: "session",
      version: 3,
      id: transcriptOf([]).session,
      timestamp: "1970-01-01T00:00:01.000Z",
      cwd: "/w"
    })
    assert.strictEqual(kinds(all), "session user model_change assistant toolResult")
    const ids = all.slice(1).map(({ id }) => id)
    assert.strictEqual(new Set(ids).size, 4)
    for (const id of ids) assert.match(String(id), /^[0-9a-f]{8}$/)
    assert.deepStrictEqual(
      all.slice(1).map(({ parentId }) => parentId),
      [null, ...ids.slice(0, -1)]
    )
    assert.deepInclude(all[2], { provider: "anthropic", modelId: "claude-x", timestamp: "1970-01-01T00:00:02.000Z" })
    assert.deepStrictEqual(messagesIn(all), [
      {
        role: "user",
        content: [textBlock("go"), { type: "image", data: "AA", mimeType: "image/png" }],
        timestamp: 1_000
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", thinkingSignature: "sig" },
          textBlock("Look."),
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
        content: [textBlock("out")],
        isError: false,
        timestamp: 2_000
      }
    ])
    assert.isTrue(all.every((record) => !("palimpsest" in record)))
  })

  it("keep the ids that messages had, one an entry, each once", () => {
    const from = (content: Draft["content"], ...ids: ReadonlyArray<string>) =>
      said(content, { origin: { line: 2, ids } })
    const ids = records(
      from(model(call("f", {}, "1"), call("f", {}, "2")), "aaaa"),
      from(user(response("f", {}, "1"), response("f", {}, "2")), "bbbb", "cccc"),
      from(user(text("again")), "aaaa")
    ).map(({ id }) => id)
    assert.deepStrictEqual(ids.slice(1, 4), ["aaaa", "bbbb", "cccc"])
    assert.match(String(ids[4]), /^[0-9a-f]{8}$/)
  })

  it.each<readonly [string | undefined, string, string]>([
    ["claude-opus-4-6", "anthropic", "anthropic-messages"],
    ["gpt-5.1-codex", "openai", "openai-responses"],
    ["gemini-2.5-pro", "google", "google-generative-ai"],
    ["llama-4", "unknown", "unknown"],
    [undefined, "unknown", "unknown"]
  ])("the model %s is served by %s", (name, provider, api) => {
    const steps = [said(model(text("x")), name === undefined ? {} : { model: name })]
    const all = records(...steps)
    assert.deepInclude(messagesIn(all)[0], { provider, api, model: name ?? "unknown" })
    assert.strictEqual(kinds(all), name === undefined ? "session assistant" : "session model_change assistant")
    assert.deepStrictEqual([draftsIn(back(steps))[0]?.model, back(steps).model], [name, name])
  })

  it("a model that has not answered yet is named at the end", () => {
    const all = recordsOf("pi", [said(model(text("x")), { model: "claude-x" })], { model: "gpt-y" })
    assert.strictEqual(kinds(all), "session model_change assistant model_change")
    assert.deepInclude(all.at(-1), { modelId: "gpt-y", provider: "openai" })
  })

  it("an answer says why it stopped", () => {
    const answers = [model(text("x")), model(text("x"), call("f", {}, "1")), model()].map((one) => said(one))
    assert.deepStrictEqual(
      messagesIn(records(...answers)).map(({ stopReason }) => stopReason),
      ["stop", "toolUse", "aborted"]
    )
  })
})

describe("results", () => {
  it("are one entry each and come first, whatever stands around them", () => {
    const calls = said(model(call("f", {}, "1"), call("f", {}, "2")))
    const [first, second] = [response("f", { output: "x" }, "1"), response("f", { error: "y" }, "2")]
    for (const parts of [
      [first, second, text("z")],
      [text("z"), first, second],
      [first, text("z"), second]
    ]) {
      const all = records(calls, said(user(...parts)))
      assert.strictEqual(kinds(all), "session assistant toolResult toolResult user")
      assert.deepStrictEqual(
        messagesIn(all)
          .map(({ isError, toolCallId }) => [toolCallId, isError])
          .slice(1, 3),
        [
          ["1", false],
          ["2", true]
        ]
      )
    }
    assert.isTrue(records(calls, said(user(first, second))).every((record) => !("palimpsest" in record)))
  })

  it.each<readonly [string, unknown, unknown, boolean, number]>([
    ["an output", { output: "x" }, [textBlock("x")], false, 0],
    ["an empty output", { output: "" }, [], false, 0],
    ["an error", { error: "x" }, [textBlock("x")], true, 0],
    ["blocks", { content: [textBlock("a"), textBlock("b")] }, [textBlock("a"), textBlock("b")], false, 0],
    [
      "an image as Claude Code writes it",
      { content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }] },
      [{ type: "image", data: "AA", mimeType: "image/png" }],
      false,
      1
    ],
    ["blocks and more", { content: [], more: 1 }, [textBlock('{"content":[],"more":1}')], false, 1],
    ["one text under another key", { result: "x" }, [textBlock("x")], false, 1],
    ["anything else", { rows: [1] }, [textBlock('{"rows":[1]}')], false, 1],
    ["nothing", undefined, [textBlock("")], false, 1]
  ])("that are %s", (_, answer, content, isError, beside) => {
    const all = records(...answered(answer))
    assert.deepInclude(messagesIn(all)[1], { content, isError })
    assert.strictEqual(exact(all), beside)
  })

  it.each<readonly [string, string | undefined, number]>([
    ["an id", "call|fc_1", 0],
    ["an empty one", "", 2],
    ["none", undefined, 2]
  ])("and calls with %s have the same one for Pi", (_, id, beside) => {
    const all = records(said(model(call("f", {}, id))), said(user(response("f", { output: "x" }, id))))
    const [asked, answer] = messagesIn(all)
    const block = Array.isArray(asked?.content) ? asked.content[0] : undefined
    assert.strictEqual(block.id, answer?.toolCallId)
    assert.notStrictEqual(block.id, "")
    assert.strictEqual(exact(all), beside)
  })
})

describe("content that Pi will not show is counted", () => {
  it.each<readonly [string, ReadonlyArray<Step>, Readonly<Record<string, number>>]>([
    [
      "nothing of an ordinary talk",
      [says("a"), said(model({ text: "t", thought: true })), ...answered({ output: "x" }), said(user(image))],
      {}
    ],
    [
      "media that are no images, and of the model",
      [said(user({ inlineData: { mimeType: "application/pdf", data: "AA" } })), said(model(image))],
      { media: 2 }
    ],
    ["files", [said(user({ fileData: { mimeType: "image/png", fileUri: "https://x.example/a" } }))], { files: 1 }],
    ["a result without its call", [said(user(response("f", {}, "t")))], { "results without a call": 1 }],
    [
      "parts of the wrong role",
      [said(user(call("f", {}, "t"), { text: "t", thought: true })), said(model(response("f", {}, "t")))],
      { "calls of the user": 1, thoughts: 1, "results of the model": 1 }
    ],
    [
      "signatures of texts",
      [said(model({ ...call("f", {}, "t"), thoughtSignature: "s" }, { text: "x", thoughtSignature: "s" }))],
      { signatures: 1 }
    ],
    ["unknown parts, once", [said(model({ executableCode: {} })), cut([], 0)], { "unknown parts": 1 }],
    [
      "media in results",
      [
        said(model(call("f", {}, "t"))),
        said(user({ functionResponse: { id: "t", name: "f", response: {}, parts: [] } }))
      ],
      { "media in results": 1 }
    ]
  ])("%s", (_, steps, expected) => {
    assert.deepStrictEqual(writtenText("pi", transcriptOf(steps)).unheld, expected)
  })
})

// Pi's models are not told that a custom message is none of the user's: the text says so itself.
it.each<readonly [Draft["author"], unknown, ReadonlyArray<string>]>([
  ["program", undefined, [foreignNotes.program, "x"]],
  ["summary", undefined, [foreignNotes.summary, "x"]],
  ["environment", { author: "environment" }, ["x"]]
])("a text of the %s is a custom message", (author, marks, texts) => {
  const record = records(says("a"), said(user(text("x")), author === undefined ? {} : { author }))[2]
  const about = { type: "custom_message", customType: "palimpsest", display: true }
  assert.deepInclude(record, { ...about, content: texts.map(textBlock) })
  assert.deepStrictEqual(record?.palimpsest, marks)
})

describe("compactions", () => {
  const talk = [says("a"), said(model(text("b"))), says("c")]

  it("one text in place of the rest names the first entry it kept", () => {
    const all = records(...talk, cut([summary("s")], 1, "auto", 99), says("d"))
    assert.strictEqual(kinds(all), "session user assistant user compaction user")
    assert.deepInclude(all[4], { summary: "s", firstKeptEntryId: all[2]?.id, tokensBefore: 99, parentId: all[3]?.id })
    assert.deepStrictEqual(shownByPi(all), ["s", "b", "c", "d"])
  })

  it("without kept messages names itself, and Pi shows nothing from before", () => {
    const all = records(...talk, cut([summary("s")]), says("d"))
    assert.strictEqual(all[4]?.firstKeptEntryId, all[4]?.id)
    assert.deepStrictEqual(shownByPi(all), ["s", "d"])
  })

  it("of any other form repeats everything that Pi is to show, with the environment", () => {
    const ok = { content: model(text("ok")) }
    assert.deepStrictEqual(shownByPi(records(...talk, cut([summary("s"), ok], 1), says("d"))), [
      "s",
      "ok",
      "b",
      "c",
      "d"
    ])
    const env = said(user(text("env")), { author: "environment" })
    const all = records(env, ...talk, cut([summary("s")], 2), says("d"))
    assert.deepStrictEqual(shownByPi(all), ["s", "env", "b", "c", "d"])
    assert.include(String(records(...talk, cut([], 1)).find(({ type }) => type === "compaction")?.summary), runtimeMark)
  })

  it("shows both texts of a summary", () => {
    const two: Draft = { ...summary("so far"), content: user(text("so far"), text("and on")) }
    assert.include(JSON.stringify(shownByPi(records(says("a"), says("b"), cut([two], 1)))), "and on")
  })

  it("between a call and its result does not separate them", () => {
    const all = records(
      says("a"),
      said(model(call("f", {}, "1"), call("f", {}, "2"))),
      said(user(response("f", { output: "x" }, "1"))),
      cut([summary("s")], 1),
      said(user(response("f", { output: "y" }, "2")))
    )
    assert.strictEqual(kinds(all), "session user assistant toolResult compaction toolResult")
    assert.isTrue(all.every((record) => !("palimpsest" in record)))
  })

  it("messages after Pi's own cut within our insertion are kept", () => {
    const steps = [...talk, cut([summary("s"), { content: model(text("ok")) }], 1), says("d")]
    const all = records(...steps)
    const inserted = all.find(({ palimpsest }) => isJson(palimpsest) && palimpsest.inserted === true)
    const entry = { type: "compaction", id: "later", parentId: all.at(-1)?.id, timestamp: "2026-01-01T00:00:00Z" }
    const shown = viewOf(back(steps, { ...entry, summary: "t", firstKeptEntryId: inserted?.id, tokensBefore: 9 }))
    assert.deepStrictEqual(
      shown.map(({ content }) => content.parts[0]?.text),
      ["t", "b", "c", "d"]
    )
  })

  it("a result that Pi adds to a repeated turn is its own message", () => {
    const steps = [
      said(model(call("f", {}, "1"), call("f", {}, "2"))),
      said(user(response("f", { output: "x" }, "1"))),
      cut([], 0)
    ]
    const entry = {
      type: "message",
      id: "later",
      parentId: records(...steps).at(-1)?.id,
      timestamp: "2026-01-01T00:00:00Z"
    }
    const message = { role: "toolResult", toolCallId: "2", toolName: "f", content: [textBlock("y")] }
    assert.deepStrictEqual(
      viewOf(back(steps, { ...entry, message })).map(({ content }) => content.parts[0]?.functionResponse?.response),
      [undefined, { output: "x" }, { output: "y" }]
    )
  })
})

it.each<readonly [string, Draft["usage"], boolean]>([
  ["as Pi counts", { prompt: 60, cached: 20, cacheWrite: 30, answer: 7, thoughts: 0 }, false],
  ["with thoughts apart", { prompt: 60, cached: 0, cacheWrite: 0, answer: 7, thoughts: 3 }, true],
  ["without counts of cache writes", { prompt: 60, cached: 0, answer: 7, thoughts: 0 }, true],
  ["unknown", undefined, false]
])("usage %s is marked where its own form loses it", (_, usage, marked) => {
  const all = records(said(model(text("x")), usage === undefined ? {} : { usage }))
  assert.strictEqual(
    all.some((record) => "palimpsest" in record),
    marked
  )
})

it.prop(
  "generated conversations appear in Pi as in the view",
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
        step._tag === "Message" ? { ...step, draft: plain(step.draft) } : { ...step, insert: step.insert.map(plain) }
      )
    }
    const shown = shownByPi(recordsOf("pi", original.steps))
      .filter((text) => !String(text).startsWith(runtimeMark) || String(text).includes("|"))
      .map((text) => String(text).split("|").at(-1))
    assert.deepStrictEqual(
      shown,
      viewOf(original).map((draft) => draft.content.parts[0]?.text)
    )
  },
  { arbitrary: { runs: runsOf(500), seed: "pi sees", size: 24 } }
)
