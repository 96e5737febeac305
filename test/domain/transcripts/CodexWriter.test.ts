import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import {
  call,
  model,
  needsSource,
  type Part,
  payload,
  response,
  text,
  user
} from "../../../src/domain/content/Content.ts"
import type { Draft } from "../../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../../src/domain/conversation/Projection.ts"
import { decode, encode } from "../../../src/domain/text/Bytes.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { claudeReader } from "../../../src/domain/transcripts/ClaudeReader.ts"
import { codexReader } from "../../../src/domain/transcripts/CodexReader.ts"
import { writeCodex } from "../../../src/domain/transcripts/CodexWriter.ts"
import { formatOfRecord, detectFormat } from "../../../src/domain/transcripts/DetectFormat.ts"
import { piReader } from "../../../src/domain/transcripts/PiReader.ts"
import { isProblem, problemText } from "../../../src/domain/transcripts/Problem.ts"
import {
  type LineReader,
  VisibleMessages,
  type Step,
  type Transcript,
  type Written
} from "../../../src/domain/transcripts/Transcript.ts"
import { openingDrafts, swappedTalks, talks } from "../../support/generate.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const readWith = (reader: LineReader, lines: ReadonlyArray<string>): Transcript => {
  for (const [index, line] of lines.entries()) {
    if (line === "") continue
    const problem = reader.line(JSON.parse(line), line, index + 1)
    if (problem !== undefined) throw new Error(`line ${problem.line}: ${problemText(problem)}`)
  }
  const transcript = Work.runSync(reader.end())
  if (isProblem(transcript)) throw new Error(problemText(transcript))
  return transcript
}

const transcriptOf = (steps: ReadonlyArray<Step>, rest: Partial<Transcript> = {}): Transcript => ({
  format: "palimpsest",
  session: undefined,
  cwd: undefined,
  model: undefined,
  steps,
  skipped: {},
  ...rest
})
const said = (draft: Draft): Step => ({ _tag: "Message", draft })
const compaction = (insert: ReadonlyArray<Draft>, keptFrom?: number): Step => ({
  _tag: "Compaction",
  insert,
  keptFrom,
  trigger: "auto",
  tokensBefore: undefined
})

/** Through bytes, as a file goes. */
const linesOf = ({ lines }: Written): ReadonlyArray<string> =>
  decode(encode(`${lines.join("\n")}\n`))
    .text.split("\n")
    .slice(0, -1)
const write = (steps: ReadonlyArray<Step>, rest?: Partial<Transcript>): Written =>
  Work.runSync(writeCodex(transcriptOf(steps, rest)))
const back = (written: Written): Transcript => readWith(codexReader(), linesOf(written))

const shownBy = (steps: ReadonlyArray<Step>): ReadonlyArray<Draft> => {
  const shown = new VisibleMessages()
  for (const step of steps) {
    if (step._tag === "Message") shown.message(step.draft)
    else shown.compact(step)
  }
  return shown.drafts
}
const messagesIn = (steps: ReadonlyArray<Step>): ReadonlyArray<Draft> =>
  steps.flatMap((step) => (step._tag === "Message" ? [step.draft] : []))

/** A message as all that has to stay of it: who wrote it, and each part with the bytes behind its handle. */
const told = ({ author, content, source }: Draft): string =>
  [
    `${content.role} ${author ?? ""}`,
    ...content.parts.map((part, at) => `${payload(part, source?.[String(at)]).text} ${JSON.stringify(part)}`)
  ].join("\n")

const record = (line: string): Record<string, unknown> => JSON.parse(line)
const payloads = (written: Written, type: string): ReadonlyArray<Record<string, unknown>> =>
  linesOf(written).flatMap((line) => {
    const { payload, type: kind } = JSON.parse(line)
    return kind === type ? [payload] : []
  })
const items = (written: Written) => payloads(written, "response_item")
const hasExact = (line: string): boolean => {
  const ours = record(line).palimpsest
  return typeof ours === "object" && ours !== null && ("parts" in ours || "escaped" in ours)
}
/** Lines that carry parts beside their own form. */
const exactLines = (written: Written): number => linesOf(written).filter(hasExact).length

/** A message of parts as they were spelled. */
const spelled = (role: "user" | "model", ...slices: ReadonlyArray<string>): Draft => {
  const parts = slices.map((slice): Part => JSON.parse(slice))
  const source = Object.fromEntries(
    slices.flatMap((slice, at) => {
      const part = parts[at]
      return part !== undefined && needsSource(part, slice) ? [[String(at), slice]] : []
    })
  )
  return { content: { role, parts }, ...(Object.keys(source).length === 0 ? {} : { source }) }
}

describe("in Codex's own form", () => {
  it("writes only items that Codex writes itself", () => {
    const written = write(
      [
        said({ content: user(text("look"), { inlineData: { mimeType: "image/png", data: "AA" } }), at: 1_000 }),
        said({
          content: model(
            { text: "first", thought: true },
            { text: "second", thought: true, thoughtSignature: "gAAAAx" },
            { text: "", thought: true, thoughtSignature: "gAAAAy" },
            text("Looking."),
            call("shell", { command: ["ls"] }, "c1"),
            call("apply_patch", { input: "*** Begin" }, "c2"),
            call("list", undefined, "c3")
          ),
          at: 2_000,
          model: "m"
        }),
        said({
          content: user(
            response("shell", { output: "a" }, "c1"),
            response("apply_patch", { output: "done" }, "c2"),
            response(
              "list",
              {
                content: [
                  { type: "input_text", text: "x" },
                  { type: "input_image", image_url: "u" }
                ]
              },
              "c3"
            )
          ),
          at: 3_000
        })
      ],
      { session: "019c2a10-77aa-7d01-9f3e-0a1b2c3d4e5f", cwd: "/w", model: "m" }
    )
    assert.strictEqual(exactLines(written), 0)
    assert.deepStrictEqual(written.unheld, {})
    assert.deepStrictEqual(items(written), [
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "look" },
          { type: "input_image", image_url: "data:image/png;base64,AA" }
        ]
      },
      {
        type: "reasoning",
        summary: [
          { type: "summary_text", text: "first" },
          { type: "summary_text", text: "second" }
        ],
        encrypted_content: "gAAAAx"
      },
      { type: "reasoning", summary: [], encrypted_content: "gAAAAy" },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Looking." }] },
      { type: "function_call", name: "shell", arguments: '{"command":["ls"]}', call_id: "c1" },
      { type: "custom_tool_call", status: "completed", call_id: "c2", name: "apply_patch", input: "*** Begin" },
      { type: "function_call", name: "list", arguments: "", call_id: "c3" },
      { type: "function_call_output", call_id: "c1", output: "a" },
      { type: "custom_tool_call_output", call_id: "c2", output: "done" },
      {
        type: "function_call_output",
        call_id: "c3",
        output: [
          { type: "input_text", text: "x" },
          { type: "input_image", image_url: "u" }
        ]
      }
    ])
    const first = record(linesOf(written)[0] ?? "")
    assert.deepStrictEqual(first, {
      timestamp: "1970-01-01T00:00:01.000Z",
      type: "session_meta",
      payload: {
        id: "019c2a10-77aa-7d01-9f3e-0a1b2c3d4e5f",
        timestamp: "1970-01-01T00:00:01.000Z",
        cwd: "/w",
        originator: "palimpsest",
        cli_version: "0.0.0",
        source: "cli"
      }
    })
  })

  it("joins an empty thought to the signed one after it", () => {
    const thoughts = model({ text: "", thought: true }, { text: "b", thought: true, thoughtSignature: "gAAAAx" })
    const written = write([said({ content: thoughts })])
    assert.strictEqual(exactLines(written), 0)
    assert.deepStrictEqual(items(written)[0]?.summary, [
      { type: "summary_text", text: "" },
      { type: "summary_text", text: "b" }
    ])
  })

  it("repeats the texts of user and model where Codex shows them, and only those", () => {
    const written = write([
      said({ content: user(text("a"), text("b")) }),
      said({ content: model({ text: "hm", thought: true }, text("c"), call("f", {}, "1")) }),
      said({ content: user(response("f", { output: "x" }, "1")) }),
      said({ content: user(text("<environment_context>x</environment_context>")), author: "program" }),
      said({ content: user(text("so far")), author: "summary" })
    ])
    assert.deepStrictEqual(payloads(written, "event_msg"), [
      { type: "user_message", message: "a\nb" },
      { type: "agent_message", message: "c" }
    ])
    // Codex lists a session only where the user speaks within its first ten records.
    assert.isBelow(
      linesOf(written).findIndex((line) => line.includes("user_message")),
      10
    )
  })

  it("fills in missing times from the last known", () => {
    const written = write([
      said({ content: user(text("a")) }),
      said({ content: user(text("b")), at: 5_000 }),
      said({ content: user(text("c")) }),
      said({ content: user(text("d")), at: 1e300 }),
      said({ content: user(text("e")), at: -1 }),
      said({ content: user(text("f")), at: 7_000 })
    ])
    const times = linesOf(written)
      .map(record)
      .filter(({ type }) => type === "response_item")
      .map(({ timestamp }) => Date.parse(String(timestamp)))
    assert.deepStrictEqual(times, [5_000, 5_000, 5_000, 5_000, 5_000, 7_000])
    assert.strictEqual(record(linesOf(write([]))[0] ?? "").timestamp, "1970-01-01T00:00:00.000Z")
  })

  it("gives a session without a UUID a deterministic one, and keeps its own id", () => {
    const idOf = (session: string | undefined) => payloads(write([], { session }), "session_meta")[0]?.id
    for (const session of ["chat 1", "", "x\ud83d", undefined]) {
      assert.match(String(idOf(session)), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.strictEqual(idOf(session), idOf(session))
    }
    assert.notStrictEqual(idOf("chat 1"), idOf("chat 2"))
    assert.strictEqual(back(write([], { session: "chat 1" })).session, "chat 1")
    assert.isUndefined(back(write([])).session)
    assert.isUndefined(back(write([])).cwd)
  })

  it("records a change of model", () => {
    const steps = ["m1", "m1", "m2", undefined].map((name) =>
      said({ content: model(text("a")), ...(name === undefined ? {} : { model: name }) })
    )
    const written = write(steps, { model: "m0", cwd: "/w" })
    assert.deepStrictEqual(
      payloads(written, "turn_context").map((context) => context.model),
      ["m0", "m1", "m2"]
    )
    assert.deepStrictEqual(
      messagesIn(back(written).steps).map((draft) => draft.model),
      ["m1", "m1", "m2", "m2"]
    )
  })

  it("usage round-trips, and the totals add up", () => {
    const usage = { prompt: 100, answer: 20, thoughts: 10, cached: 40, cacheWrite: 5 }
    const none = { prompt: 0, answer: 0, thoughts: 0, cached: 0 }
    const written = write([
      said({ content: model(text("a")), usage }),
      said({ content: model(text("b")), usage }),
      said({ content: model(text("c")), usage: none }),
      said({ content: model(text("d")) })
    ])
    // Counts part messages for any reader, so that nothing of ours has to.
    assert.strictEqual(linesOf(written).filter((line) => line.includes('"message":"new"')).length, 1)
    assert.deepStrictEqual(
      messagesIn(back(written).steps).map((draft) => draft.usage),
      [usage, usage, undefined, undefined]
    )
    const [, second] = payloads(written, "event_msg").filter(({ type }) => type === "token_count")
    assert.deepInclude(JSON.parse(JSON.stringify(second?.info)).total_token_usage, {
      input_tokens: 200,
      output_tokens: 60,
      total_tokens: 260
    })
  })
})

describe("calls and results", () => {
  const ids = (written: Written): ReadonlyArray<unknown> =>
    items(written).flatMap(({ call_id: id }) => (id === undefined ? [] : [id]))
  it.each<readonly [string, ReadonlyArray<Draft>, ReadonlyArray<string>]>([
    [
      "without ids are paired by name, in order",
      [
        { content: model(call("f", {}), call("f", {}), call("g", {})) },
        { content: user(response("g", {}), response("f", {}), response("f", {})) }
      ],
      ["call_1", "call_2", "call_3", "call_3", "call_1", "call_2"]
    ],
    [
      "with an id that was used before get another",
      [
        { content: model(call("f", {}, "c")) },
        { content: user(response("f", {}, "c")) },
        { content: model(call("f", {}, "c")) },
        { content: user(response("f", {}, "c")) }
      ],
      ["c", "c", "c_2", "c_2"]
    ],
    [
      "with one id in parallel are paired in order",
      [
        { content: model(call("f", {}, "c"), call("f", {}, "c")) },
        { content: user(response("f", {}, "c"), response("f", {}, "c")) }
      ],
      ["c", "c_2", "c", "c_2"]
    ],
    [
      "with an id of a call that was never answered go with the newer",
      [
        { content: model(call("f", {}, "c")) },
        { content: user(text("stop")) },
        { content: model(call("f", {}, "c")) },
        { content: user(response("f", {}, "c")) }
      ],
      ["c", "c_2", "c_2"]
    ],
    [
      "get no id that another has been given",
      [
        {
          content: model(
            call("f", {}, "c"),
            call("f", {}, "c"),
            call("f", {}, "c_2"),
            call("f", {}),
            call("f", {}, "call_4")
          )
        }
      ],
      ["c", "c_2", "c_2_2", "call_4", "call_4_2"]
    ],
    [
      "of nothing stand alone",
      [{ content: user(response("f", {}, "x"), response("f", {}), response("f", {}, "x")) }],
      ["x", "answer_2", "x_2"]
    ]
  ])("%s", (_, drafts, expected) => {
    const written = write(drafts.map(said))
    assert.deepStrictEqual(ids(written), [...expected])
    assert.deepStrictEqual(messagesIn(back(written).steps).map(told), drafts.map(told))
  })

  it("a result without its call is not named after a call behind a compaction", () => {
    const lone: Draft = { content: user({ functionResponse: { id: "c", response: { output: "x" } } }) }
    const steps = [said(lone), compaction([]), said({ content: model(call("f", {}, "c")) })]
    assert.deepStrictEqual(messagesIn(back(write(steps)).steps).map(told), messagesIn(steps).map(told))
  })

  it("a result of a custom call is a custom result, also after a compaction", () => {
    const steps = [
      said({ content: model(call("apply_patch", { input: "x" }, "c")) }),
      compaction([], 0),
      said({ content: user(response("apply_patch", { output: "ok" }, "c")) })
    ]
    assert.deepStrictEqual(
      items(write(steps)).map((item) => item.type),
      ["custom_tool_call", "custom_tool_call_output"]
    )
    assert.strictEqual(exactLines(write(steps)), 0)
  })

  it.each<readonly [string, unknown, unknown, boolean]>([
    ["a text", { output: "a" }, "a", false],
    ["an error", { error: "a" }, "a", true],
    [
      "a text that tells its failure",
      { error: "Exit code: 2\nWall time: 1 s\nOutput:\n" },
      "Exit code: 2\nWall time: 1 s\nOutput:\n",
      false
    ],
    ["another key", { result: "a" }, "a", true],
    ["several keys", { rows: [1, 2], n: 1 }, '{"rows":[1,2],"n":1}', true],
    ["a text alone", "a", "a", true],
    ["nothing", undefined, '""', true],
    [
      "blocks of Claude Code",
      {
        content: [
          { type: "text", text: "a" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }
        ]
      },
      [
        { type: "input_text", text: "a" },
        { type: "input_image", image_url: "data:image/png;base64,AA" }
      ],
      true
    ],
    [
      "blocks of Pi",
      { content: [{ type: "image", data: "AA", mimeType: "image/png" }] },
      [{ type: "input_image", image_url: "data:image/png;base64,AA" }],
      true
    ],
    [
      "blocks that nobody knows",
      {
        content: [
          { type: "chart", x: 1 },
          { type: "file", data: "AA", mimeType: "application/pdf" }
        ]
      },
      [
        { type: "input_text", text: '{"type":"chart","x":1}' },
        { type: "input_text", text: '{"type":"file","data":"AA","mimeType":"application/pdf"}' }
      ],
      true
    ]
  ])("an answer that is %s", (_, value, expected, isExact) => {
    const written = write([
      said({ content: model(call("shell", {}, "c")) }),
      said({ content: user(response("shell", value, "c")) })
    ])
    assert.deepStrictEqual(items(written)[1]?.output, expected)
    assert.strictEqual(exactLines(written) === 1, isExact)
  })

  it.each<readonly [string, Part, string]>([
    ["an object", call("f", { a: 1 }, "c"), '{"a":1}'],
    ["nothing", call("f", undefined, "c"), ""],
    ["a text that was no JSON", call("f", { arguments: "{broken" }, "c"), "{broken"],
    ["a text that is a JSON object", call("f", { arguments: "{}" }, "c"), '{"arguments":"{}"}'],
    ["an empty text", call("f", { arguments: "" }, "c"), '{"arguments":""}'],
    ["a list", call("f", [1], "c"), "[1]"]
  ])("arguments that are %s", (_, part, expected) => {
    const written = write([said({ content: model(part) })])
    assert.strictEqual(items(written)[0]?.arguments, expected)
    assert.deepStrictEqual(back(written).steps.length, 1)
    assert.deepStrictEqual(messagesIn(back(written).steps).map(told), [told({ content: model(part) })])
  })

  it("arguments keep their spelling in Codex's own form", () => {
    const draft = spelled("model", '{"functionCall":{"id":"c","name":"f","args":{ "n": 12345678901234567890 }}}')
    const written = write([said(draft)])
    assert.strictEqual(items(written)[0]?.arguments, '{ "n": 12345678901234567890 }')
    assert.strictEqual(exactLines(written), 0)
    assert.deepStrictEqual(messagesIn(back(written).steps).map(told), [told(draft)])
  })
})

describe("authors", () => {
  const shown = (draft: Draft) => items(write([said(draft)]))[0]?.content
  it.each<readonly [string, Draft, ReadonlyArray<string>]>([
    ["the user", { content: user(text("a")) }, ["a"]],
    ["a summary", { content: user(text("a")), author: "summary" }, [foreignNotes.summary, "a"]],
    ["a program", { content: user(text("a")), author: "program" }, [foreignNotes.program, "a"]],
    [
      "a program, as Codex tells it",
      { content: user(text("<skill>x</skill>")), author: "program" },
      ["<skill>x</skill>"]
    ],
    [
      "a summary, as Codex tells it",
      {
        content: user(text("Another language model started to solve this problem and produced a summary of it")),
        author: "summary"
      },
      ["Another language model started to solve this problem and produced a summary of it"]
    ],
    ["the user, in the words of a program", { content: user(text("<skill>x</skill>")) }, ["<skill>x</skill>"]],
    [
      "the user, in the words of a note",
      { content: user(text(foreignNotes.summary), text("a")) },
      [foreignNotes.summary, "a"]
    ],
    [
      "a program, in the words of a summary",
      {
        content: user(text("Another language model started to solve this problem and produced a summary")),
        author: "program"
      },
      [foreignNotes.program, "Another language model started to solve this problem and produced a summary"]
    ],
    ["the environment", { content: user(text("a")), author: "environment" }, ["a"]],
    [
      "a program that answers",
      { content: user(text("a"), response("f", {}, "x")), author: "program" },
      [foreignNotes.program, "a"]
    ]
  ])("%s: Codex sees it, and it comes back", (_, draft, expected) => {
    assert.deepStrictEqual(
      shown(draft),
      expected.map((text) => ({ type: "input_text", text }))
    )
    const inserted = draft.author === "environment" ? [] : [[compaction([draft])]]
    for (const steps of [[said(draft)], [said(draft), compaction([], 0)], ...inserted]) {
      assert.deepStrictEqual(shownBy(back(write(steps)).steps).map(told), shownBy(steps).map(told))
    }
  })

  it("a user message with a summary's text stays the user's", () => {
    const steps = [
      said({ content: user(text("so far")) }),
      compaction([{ content: user(text("so far")), author: "summary" }], 0)
    ]
    assert.deepStrictEqual(shownBy(back(write(steps)).steps).map(told), shownBy(steps).map(told))
  })
})

describe("what Codex does not show", () => {
  it.each<readonly [string, Draft, Readonly<Record<string, number>>]>([
    ["nothing is lost of plain words", { content: user(text("a")) }, {}],
    ["a message without parts", { content: model() }, { "empty message": 1 }],
    ["a message without words", { content: model(text(""), text("")) }, { "empty message": 1 }],
    [
      "a file by its address",
      { content: user({ fileData: { mimeType: "video/mp4", fileUri: "gs://b/1" } }) },
      { "file by address": 1 }
    ],
    [
      "an image that Codex cannot fetch",
      { content: user({ fileData: { mimeType: "image/png", fileUri: "gs://b/1" } }) },
      { "file by address": 1 }
    ],
    [
      "an image by its address is seen",
      { content: user({ fileData: { mimeType: "image/png", fileUri: "https://b/1" } }) },
      {}
    ],
    [
      "a file that is no image",
      { content: user({ inlineData: { mimeType: "application/pdf", data: "AA" } }) },
      { "file that is no image": 1 }
    ],
    [
      "an image of the model",
      { content: model({ inlineData: { mimeType: "image/png", data: "AA" } }) },
      { "file of the model": 1 }
    ],
    ["parts of an unknown kind", { content: user({ later: 1 }, { later: 2 }) }, { "part of an unknown kind": 2 }],
    [
      "a thought without a signature",
      { content: model({ text: "a", thought: true }) },
      { "thought of another model": 1 }
    ],
    [
      "a thought that Gemini signed",
      { content: model({ text: "a", thought: true, thoughtSignature: "c2ln" }) },
      { "thought of another model": 1 }
    ],
    [
      "a call that Gemini signed",
      { content: model({ ...call("f", {}, "c"), thoughtSignature: "c2ln" }) },
      { "signature of another model": 1 }
    ],
    ["a call of the user", { content: user(call("f", {}, "c")) }, { "call in the user's role": 1 }],
    ["an answer of the model", { content: model(response("f", {}, "c")) }, { "answer in the model's role": 1 }],
    ["a thought of the user", { content: user({ text: "a", thought: true }) }, { "thought in the user's role": 1 }],
    ["an answer to no call", { content: user(response("f", {}, "c")) }, { "answer without a call": 1 }],
    ["an unknown key", { content: user({ text: "a", hint: 1 }) }, { "key of a part": 1 }],
    ["a key beside the parts", { content: { ...user(text("a")), hint: 1 } }, { "key of a message": 1 }]
  ])("%s", (_, draft, unheld) => {
    const written = write([said(draft)])
    assert.deepStrictEqual(written.unheld, unheld)
    // A compaction that shows it again counts it once.
    assert.deepStrictEqual(write([said(draft), compaction([], 0)]).unheld, unheld)
    assert.deepStrictEqual(write([compaction([draft])]).unheld, unheld)
    assert.deepStrictEqual(messagesIn(back(written).steps).map(told), [told(draft)])
  })

  it("a file in a result", () => {
    const answer = { functionResponse: { id: "c", name: "f", response: {}, parts: [{ inlineData: { data: "AA" } }] } }
    assert.deepStrictEqual(
      write([said({ content: model(call("f", {}, "c")) }), said({ content: user(answer) })]).unheld,
      { "file in an answer": 1 }
    )
  })

  it("content without a form travels in an item that Codex ignores, and never in a replacement", () => {
    const odd: Draft = { content: user({ later: 1 }) }
    assert.deepStrictEqual(items(write([said(odd)])), [{ type: "other", role: "user" }])
    const [compacted] = payloads(write([said(odd), compaction([], 0)]), "compacted")
    assert.deepStrictEqual(compacted, { message: "", replacement_history: [] })
  })
})

describe("input that Codex rejects", () => {
  it("is replaced in its own form, and nothing else", () => {
    const written = write([said({ content: user(text("\\udc80 \\\\udc80 \udc80 \ud83d\ude00")) })])
    assert.deepStrictEqual(items(written)[0]?.content, [
      { type: "input_text", text: "\\udc80 \\\\udc80 \ufffd \ud83d\ude00" }
    ])
  })

  const texts = ["caf\udce9", "\udcc3\udca9", "a lone \ud83d half", "\udcff\ud83d"]
  it.each(texts.map((value) => [JSON.stringify(value), value] as const))("%s reaches no line", (_, value) => {
    const steps = [
      said({ content: user(text(value)) }),
      said({ content: model({ text: value, thought: true }, call("f", { [value]: value }, "c")) }),
      said({ content: user(response("f", { output: value }, "c")) }),
      said(spelled("user", `{"text":"\\udc80 \\ud83d"}`, `{"text":${JSON.stringify(value)},\r\n"n":1.0}`)),
      compaction([{ content: user(text(value)), author: "summary" }], 1)
    ]
    const written = write(steps, { cwd: value, session: value, model: value })
    for (const line of written.lines) {
      assert.isTrue(line.isWellFormed())
      // Half a pair, spelled; behind a double backslash it is only text.
      assert.notMatch(line, /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/)
    }
    assert.include(JSON.stringify(items(written)[0]), "\ufffd")
    assert.deepStrictEqual(messagesIn(back(written).steps).map(told), messagesIn(steps).map(told))
    assert.deepStrictEqual(shownBy(back(written).steps).map(told), shownBy(steps).map(told))
  })
})

describe("compaction", () => {
  it("has the time of its summary", () => {
    const summary: Draft = { content: user(text("s")), author: "summary", at: 9_000 }
    const steps = [
      said({ content: user(text("a")), at: 1_000 }),
      compaction([summary]),
      said({ content: user(text("b")) })
    ]
    assert.deepStrictEqual(
      shownBy(back(write(steps)).steps).map((draft) => draft.at),
      [9_000, 9_000]
    )
  })

  it("contains the summary and everything shown from then on", () => {
    const written = write([
      said({ content: user(text("a")) }),
      said({ content: model(text("b"), call("f", {}, "c")) }),
      compaction([{ content: user(text("so far")), author: "summary" }], 1),
      said({ content: user(response("f", { output: "x" }, "c")) })
    ])
    assert.deepStrictEqual(payloads(written, "compacted"), [
      {
        message: "so far",
        replacement_history: [
          {
            type: "message",
            role: "user",
            content: [
              { type: "input_text", text: foreignNotes.summary },
              { type: "input_text", text: "so far" }
            ]
          },
          { type: "message", role: "assistant", content: [{ type: "output_text", text: "b" }] },
          { type: "function_call", name: "f", arguments: "{}", call_id: "c" }
        ]
      }
    ])
    assert.strictEqual(exactLines(written), 0)
  })

  it("shows the environment to Codex, and a reader does not insert it again", () => {
    const environment: Draft = { content: user(text("today")), author: "environment" }
    const steps = [
      said(environment),
      said({ content: user(text("a")) }),
      compaction([{ content: model(text("s")) }], 1)
    ]
    const written = write(steps)
    assert.include(JSON.stringify(payloads(written, "compacted")), "today")
    assert.deepStrictEqual(shownBy(back(written).steps).map(told), shownBy(steps).map(told))
    assert.deepStrictEqual(
      back(written).steps.map((step) => (step._tag === "Compaction" ? step.insert.length : "m")),
      ["m", "m", 2]
    )
  })

  it("keeps who requested it", () => {
    const step: Step = { _tag: "Compaction", insert: [], keptFrom: undefined, trigger: "manual", tokensBefore: 5 }
    assert.deepInclude(back(write([step])).steps[0], { trigger: "manual" })
  })
})

describe("real conversations", () => {
  const packed = (name: string) =>
    gunzipSync(readFileSync(new URL(`../../fixtures/sessions/${name}.jsonl.gz`, import.meta.url)))
      .toString("utf8")
      .split("\n")
  const plain = (name: string) =>
    readFileSync(new URL(`../../fixtures/codex/${name}.jsonl`, import.meta.url), "utf8").split("\n")
  it.each<readonly [string, () => Transcript]>([
    ["claude-code-1512-lines", () => readWith(claudeReader(), packed("claude-code-1512-lines"))],
    ["claude-code-tools", () => readWith(claudeReader(), packed("claude-code-tools"))],
    ["pi-1019-lines", () => readWith(piReader(), packed("pi-1019-lines"))],
    ["codex-today", () => readWith(codexReader(), plain("codex-today"))],
    ["codex-2025", () => readWith(codexReader(), plain("codex-2025"))]
  ])("%s: every message comes back, and so does the view", (_, read) => {
    const transcript = read()
    const written = Work.runSync(writeCodex(transcript))
    const again = back(written)
    assert.deepStrictEqual(messagesIn(again.steps).map(told), messagesIn(transcript.steps).map(told))
    assert.deepStrictEqual(shownBy(again.steps).map(told), shownBy(transcript.steps).map(told))
    assert.deepStrictEqual([again.session, again.cwd], [transcript.session, transcript.cwd])
    for (const line of written.lines) assert.strictEqual(formatOfRecord(JSON.parse(line)), "codex")
    assert.strictEqual(detectFormat(written.lines.join("\n")), "codex")
  })

  it("from Codex go back without a copy beside them", () => {
    const transcript = readWith(codexReader(), plain("codex-today"))
    const written = Work.runSync(writeCodex(transcript))
    assert.deepStrictEqual(linesOf(written).filter(hasExact), [])
    assert.deepStrictEqual(written.unheld, {})
  })

  it("a message of very many parts round-trips, also from a compaction", () => {
    const length = sizeOf(200_000, 10_000)
    const many: Draft = { content: user(...Array.from({ length }, (): Part => ({ later: 1 }))) }
    const texts: Draft = { content: user(...Array.from({ length }, () => text("a"))) }
    const again = back(write([said(many), said(texts), compaction([], 0)]))
    assert.deepStrictEqual(
      shownBy(again.steps).map(({ content }) => content.parts.length),
      [length, length]
    )
  })

  it("are written in slices", () => {
    const transcript = readWith(claudeReader(), packed("claude-code-1512-lines"))
    const work = writeCodex(transcript)
    let slices = 0
    while (work.next().done !== true) slices += 1
    assert.isAtLeast(slices, transcript.steps.length)
  })
})

// --- generated conversations ------------------------------------------------------------------------------------------

const wordings = [
  "fix it",
  "",
  "caf\udce9",
  "\udcc3\udca9",
  "half \ud83d",
  foreignNotes.summary,
  "<environment_context>x</environment_context>",
  "Another language model started to solve this problem and produced a summary",
  '{"output":"x","metadata":{"exit_code":1}}',
  "two\r\nlines\u2028 \u0000\u001b",
  "\\ud83d \\\\ud83d \\n"
] as const
const Words = Schema.Literals(wordings)
const Id = Schema.Literals(["none", "c", "c", "c_2", "call_1", "", "answer_1"])

/** One part, of any kind, in any role. */
const Seed = Schema.Struct({
  kind: Schema.Literals([
    "text",
    "text",
    "thought",
    "signed thought",
    "call",
    "call",
    "custom call",
    "broken call",
    "response",
    "response",
    "error",
    "blocks",
    "rows",
    "image",
    "file",
    "unknown",
    "late signature",
    "spelled text",
    "spelled call",
    "spelled response",
    "spelled image"
  ]),
  words: Words,
  id: Id,
  name: Schema.Literals(["shell", "f"])
})
type Seed = typeof Seed.Type

/** The part as it was spelled. */
const sliceOf = ({ id, kind, name, words }: Seed): string => {
  const own = id === "none" ? {} : { id }
  const quoted = JSON.stringify(words)
  const parts: Readonly<Record<Exclude<Seed["kind"], `spelled ${string}`>, unknown>> = {
    text: { text: words },
    thought: { text: words, thought: true },
    "signed thought": { text: words, thought: true, thoughtSignature: name === "f" ? "gAAAAx" : "c2ln" },
    call: { functionCall: { ...own, name, args: { [words]: words } } },
    "custom call": { functionCall: { ...own, name, args: { input: words } } },
    "broken call": { functionCall: { ...own, name, args: { arguments: words } } },
    response: { functionResponse: { ...own, name, response: { output: words } } },
    error: { functionResponse: { ...own, name, response: { error: words } } },
    blocks: { functionResponse: { ...own, response: { content: [{ type: "input_text", text: words }, { x: 1 }] } } },
    rows: { functionResponse: { ...own, name, response: { rows: [words], n: 1 } } },
    image: { inlineData: { mimeType: "image/png", data: "AA" } },
    file: { fileData: { fileUri: `https://x/${words}` } },
    unknown: { later: { words }, hint: [words] },
    "late signature": { text: words, thoughtSignature: "c2ln" }
  }
  switch (kind) {
    case "spelled text":
      return `{"text":"\\udc80\\/ \\ud83d", "n": 1.0}`
    case "spelled call":
      return `{"functionCall":{${id === "none" ? "" : `"id":"${id}",`}"name":"f","args":{ "n":12345678901234567890,\r\n"w":${quoted}}}}`
    case "spelled response":
      return `{ "functionResponse" : {"name":"f","response":{"rows":[1e3,-0,9007199254740993],"w":${quoted}}}}`
    case "spelled image":
      return `{"inlineData":{"mimeType":"image\\/png","data":"AA"}}`
    default:
      return JSON.stringify(parts[kind])
  }
}

const Message = Schema.Struct({
  role: Schema.Literals(["user", "model"]),
  author: Schema.Literals(["none", "none", "none", "program", "summary", "environment"]),
  seeds: Schema.Array(Seed),
  usage: Schema.Literals([0, 0, 1])
})
const draftOf = ({ author, role, seeds, usage }: typeof Message.Type): Draft => ({
  ...spelled(role, ...seeds.map(sliceOf)),
  ...(author === "none" ? {} : { author }),
  ...(usage === 0 ? {} : { usage: { prompt: 10, answer: 2, thoughts: 1, cached: 3 } })
})

const Cut = Schema.Struct({
  after: Schema.Literals([0, 1, 2, 3, 5, 8]),
  keptFrom: Schema.Literals([-1, 0, 1, 2, 3, 5]),
  insert: Schema.Array(Message)
})

/** Messages, with compactions laid between them. */
const stepsOf = (drafts: ReadonlyArray<Draft>, cuts: ReadonlyArray<typeof Cut.Type>): ReadonlyArray<Step> =>
  Array.from({ length: Math.max(drafts.length, 9) + 1 }, (_, index) => {
    const draft = drafts[index]
    const laid = cuts
      .filter(({ after }) => after === index)
      .map(({ insert, keptFrom }) =>
        compaction(
          insert.map(draftOf).filter(({ author }) => author !== "environment"),
          keptFrom < 0 ? undefined : keptFrom
        )
      )
    return [...laid, ...(draft === undefined ? [] : [said(draft)])]
  }).flat()

const staysTheSame = (steps: ReadonlyArray<Step>): void => {
  const written = write(steps, { session: "s", cwd: "/w", model: "m" })
  for (const line of written.lines) {
    assert.notMatch(line, /[\r\n]/)
    assert.isObject(JSON.parse(line))
    assert.isTrue(line.isWellFormed())
  }
  const again = back(written)
  assert.deepStrictEqual(messagesIn(again.steps).map(told), messagesIn(steps).map(told))
  assert.deepStrictEqual(shownBy(again.steps).map(told), shownBy(steps).map(told))
  assert.strictEqual(again.steps.length, steps.length)
  // Once more, from what was read: nothing grows, nothing changes.
  const twice = write(again.steps, { session: "s", cwd: "/w", model: "m" })
  assert.deepStrictEqual(shownBy(back(twice).steps).map(told), shownBy(steps).map(told))
}

describe("any conversation round-trips", () => {
  it.prop(
    "with any parts, roles, ids and authors, and compactions anywhere",
    [Schema.Array(Message), Schema.Array(Cut)],
    ([messages, cuts]) => staysTheSame(stepsOf(messages.map(draftOf), cuts)),
    { arbitrary: { runs: runsOf(1_000), seed: "codex parts", size: 12, maxShrinks: 400 } }
  )

  it.prop(
    "after any history",
    [talks, Schema.Array(Cut)],
    ([script, cuts]) => staysTheSame(stepsOf(openingDrafts(script), cuts)),
    { arbitrary: { runs: runsOf(200), seed: "codex talks", size: 12, maxShrinks: 200 } }
  )

  it.prop(
    "also with calls and responses in the wrong role",
    [swappedTalks],
    ([script]) => staysTheSame(stepsOf(openingDrafts(script), [])),
    { arbitrary: { runs: runsOf(100), seed: "codex swapped", size: 12, maxShrinks: 200 } }
  )
})
