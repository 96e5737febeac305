import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { call, model, type Part, response, text, user } from "../../../../src/domain/content/Content.ts"
import type { Draft } from "../../../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../../../src/domain/conversation/Projection.ts"
import { isJson, type Json } from "../../../../src/domain/transcripts/JsonRecord.ts"
import type { Step, Transcript } from "../../../../src/domain/transcripts/Transcript.ts"
import { cut, draftsIn, readText, transcriptOf, viewOf, writtenText } from "../../../support/transcripts.ts"

/** What Codex's own records are like. That they come back is tested in `writers.test.ts`. */

const write = (steps: ReadonlyArray<Step>, rest: Partial<Transcript> = {}) => {
  const bare = { session: undefined, cwd: undefined }
  const { text: file, unheld } = writtenText("codex", transcriptOf(steps, { ...bare, ...rest }))
  const lines = file.trimEnd().split("\n")
  return { lines, unheld, records: lines.map((line): Json => JSON.parse(line)), back: readText(file) }
}
/** A message with everything about it. */
const message = (draft: Draft): Step => ({ _tag: "Message", draft })
type Written = ReturnType<typeof write>

const payloads = ({ records }: Written, type: string): ReadonlyArray<Json> =>
  records.flatMap(({ payload, type: kind }) => (kind === type && isJson(payload) ? [payload] : []))
const items = (written: Written) => payloads(written, "response_item")
const hasExact = (line: string): boolean => /"palimpsest":\{[^}]*"(?:parts|escaped)":/.test(line)
/** Lines that carry parts beside their own form. */
const exactLines = ({ lines }: Written): number => lines.filter(hasExact).length

describe("in Codex's own form", () => {
  it("writes only items that Codex writes itself", () => {
    const written = write(
      [
        message({ content: user(text("look"), { inlineData: { mimeType: "image/png", data: "AA" } }), at: 1_000 }),
        message({
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
        message({
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
    const first = written.records[0]
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
    const written = write([message({ content: thoughts })])
    assert.strictEqual(exactLines(written), 0)
    assert.deepStrictEqual(items(written)[0]?.summary, [
      { type: "summary_text", text: "" },
      { type: "summary_text", text: "b" }
    ])
  })

  it("repeats the texts of user and model where Codex shows them, and only those", () => {
    const written = write([
      message({ content: user(text("a"), text("b")) }),
      message({ content: model({ text: "hm", thought: true }, text("c"), call("f", {}, "1")) }),
      message({ content: user(response("f", { output: "x" }, "1")) }),
      message({ content: user(text("<environment_context>x</environment_context>")), author: "program" }),
      message({ content: user(text("so far")), author: "summary" })
    ])
    assert.deepStrictEqual(payloads(written, "event_msg"), [
      { type: "user_message", message: "a\nb" },
      { type: "agent_message", message: "c" }
    ])
    // Codex lists a session only where the user speaks within its first ten records.
    assert.isBelow(
      written.lines.findIndex((line) => line.includes("user_message")),
      10
    )
  })

  it("gives a session without a UUID a deterministic one, and keeps its own id", () => {
    const idOf = (session: string | undefined) => payloads(write([], { session }), "session_meta")[0]?.id
    for (const session of ["chat 1", "", "x\ud83d", undefined]) {
      assert.match(String(idOf(session)), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.strictEqual(idOf(session), idOf(session))
    }
    assert.notStrictEqual(idOf("chat 1"), idOf("chat 2"))
    assert.strictEqual(write([], { session: "chat 1" }).back.session, "chat 1")
    assert.isUndefined(write([]).back.session)
    assert.isUndefined(write([]).back.cwd)
  })

  it("records a change of model", () => {
    const steps = ["m1", "m1", "m2", undefined].map((name) =>
      message({ content: model(text("a")), ...(name === undefined ? {} : { model: name }) })
    )
    const written = write(steps, { model: "m0", cwd: "/w" })
    assert.deepStrictEqual(
      payloads(written, "turn_context").map((context) => context.model),
      ["m0", "m1", "m2"]
    )
    assert.deepStrictEqual(
      draftsIn(written.back).map((draft) => draft.model),
      ["m1", "m1", "m2", "m2"]
    )
  })

  it("usage round-trips, and the totals add up", () => {
    const usage = { prompt: 100, answer: 20, thoughts: 10, cached: 40, cacheWrite: 5 }
    const none = { prompt: 0, answer: 0, thoughts: 0, cached: 0 }
    const written = write([
      message({ content: model(text("a")), usage }),
      message({ content: model(text("b")), usage }),
      message({ content: model(text("c")), usage: none }),
      message({ content: model(text("d")) })
    ])
    // Counts part messages for any reader, so that nothing of ours has to.
    assert.strictEqual(written.lines.filter((line) => line.includes('"message":"new"')).length, 1)
    assert.deepStrictEqual(
      draftsIn(written.back).map((draft) => draft.usage),
      [usage, usage, undefined, undefined]
    )
    const [, second] = payloads(written, "event_msg").filter(({ type }) => type === "token_count")
    assert.deepInclude(JSON.parse(JSON.stringify(second?.info)).total_token_usage, {
      input_tokens: 200,
      cached_input_tokens: 80,
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
    const written = write(drafts.map(message))
    assert.deepStrictEqual(ids(written), [...expected])
  })

  it("a result of a custom call is a custom result, also after a compaction", () => {
    const steps = [
      message({ content: model(call("apply_patch", { input: "x" }, "c")) }),
      cut([], 0),
      message({ content: user(response("apply_patch", { output: "ok" }, "c")) })
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
      message({ content: model(call("shell", {}, "c")) }),
      message({ content: user(response("shell", value, "c")) })
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
    const written = write([message({ content: model(part) })])
    assert.strictEqual(items(written)[0]?.arguments, expected)
  })

  it("arguments keep their spelling in Codex's own form", () => {
    const source = '{"functionCall":{"id":"c","name":"f","args":{ "n": 12345678901234567890 }}}'
    const draft = { content: model(JSON.parse(source)), source: { "0": source } }
    const written = write([message(draft)])
    assert.strictEqual(items(written)[0]?.arguments, '{ "n": 12345678901234567890 }')
    assert.strictEqual(exactLines(written), 0)
  })
})

describe("authors", () => {
  const shown = (draft: Draft) => items(write([message(draft)]))[0]?.content
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
    const written = write([message(draft)])
    assert.deepStrictEqual(written.unheld, unheld)
    // A compaction that shows it again counts it once.
    assert.deepStrictEqual(write([message(draft), cut([], 0)]).unheld, unheld)
    assert.deepStrictEqual(write([cut([draft])]).unheld, unheld)
  })

  it("a file in a result", () => {
    const answer = { functionResponse: { id: "c", name: "f", response: {}, parts: [{ inlineData: { data: "AA" } }] } }
    assert.deepStrictEqual(
      write([message({ content: model(call("f", {}, "c")) }), message({ content: user(answer) })]).unheld,
      { "file in an answer": 1 }
    )
  })

  it("content without a form travels in an item that Codex ignores, and never in a replacement", () => {
    const odd: Draft = { content: user({ later: 1 }) }
    assert.deepStrictEqual(items(write([message(odd)])), [{ type: "other", role: "user" }])
    const [compacted] = payloads(write([message(odd), cut([], 0)]), "compacted")
    assert.deepStrictEqual(compacted, { message: "", replacement_history: [] })
  })
})

describe("input that Codex rejects", () => {
  it("is replaced in its own form, and nothing else", () => {
    const written = write([message({ content: user(text("\\udc80 \\\\udc80 \udc80 \ud83d\ude00")) })])
    assert.deepStrictEqual(items(written)[0]?.content, [
      { type: "input_text", text: "\\udc80 \\\\udc80 \ufffd \ud83d\ude00" }
    ])
  })

  const texts = ["caf\udce9", "\udcc3\udca9", "a lone \ud83d half", "\udcff\ud83d"]
  it.each(texts.map((value) => [JSON.stringify(value), value] as const))("%s reaches no line", (_, value) => {
    const steps = [
      message({ content: user(text(value)) }),
      message({ content: model({ text: value, thought: true }, call("f", { [value]: value }, "c")) }),
      message({ content: user(response("f", { output: value }, "c")) }),
      cut([{ content: user(text(value)), author: "summary" }], 1)
    ]
    const written = write(steps, { cwd: value, session: value, model: value })
    for (const line of written.lines) {
      assert.isTrue(line.isWellFormed())
      // Half a pair, spelled; behind a double backslash it is only text.
      assert.notMatch(line, /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/)
    }
    assert.include(JSON.stringify(items(written)[0]), "\ufffd")
  })
})

describe("compaction", () => {
  it("has the time of its summary", () => {
    const summary: Draft = { content: user(text("s")), author: "summary", at: 9_000 }
    const steps = [
      message({ content: user(text("a")), at: 1_000 }),
      cut([summary]),
      message({ content: user(text("b")) })
    ]
    assert.deepStrictEqual(
      viewOf(write(steps).back).map((draft) => draft.at),
      [9_000, 9_000]
    )
  })

  it("contains the summary and everything shown from then on", () => {
    const written = write([
      message({ content: user(text("a")) }),
      message({ content: model(text("b"), call("f", {}, "c")) }),
      cut([{ content: user(text("so far")), author: "summary" }], 1),
      message({ content: user(response("f", { output: "x" }, "c")) })
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
    const steps = [message(environment), message({ content: user(text("a")) }), cut([{ content: model(text("s")) }], 1)]
    const written = write(steps)
    assert.include(JSON.stringify(payloads(written, "compacted")), "today")
    assert.deepStrictEqual(
      written.back.steps.map((step) => (step._tag === "Compaction" ? step.insert.length : "m")),
      ["m", "m", 2]
    )
  })
})

it("a recorded session goes back without a copy beside its items", () => {
  const file = readFileSync(new URL("../../../fixtures/codex/codex-today.jsonl", import.meta.url), "utf8")
  const written = writtenText("codex", readText(file))
  assert.deepStrictEqual([written.lines.filter(hasExact), written.unheld], [[], {}])
})
