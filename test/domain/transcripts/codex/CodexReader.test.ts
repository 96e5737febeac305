import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { actionsOf } from "../../../../src/domain/actions/Actions.ts"
import { type Part, payload } from "../../../../src/domain/content/Content.ts"
import type { Draft } from "../../../../src/domain/conversation/Conversation.ts"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { codexReader } from "../../../../src/domain/transcripts/codex/CodexReader.ts"
import { problemText } from "../../../../src/domain/transcripts/Problem.ts"
import type { Transcript } from "../../../../src/domain/transcripts/Transcript.ts"
import { bad, contents, drafts, messageText, ok, reading, told } from "../../../support/reading.ts"
import { viewOf } from "../../../support/transcripts.ts"

const read = reading(codexReader)
const readRecords = (records: ReadonlyArray<unknown>) => read(records.map((record) => JSON.stringify(record)))
const records = (...list: ReadonlyArray<object>) => ok(readRecords([meta(), ...list]))
/** `u1 m2 C3`: roles with numbers of parts, C a compaction with the number of messages it inserts. */
const shape = ({ steps }: Transcript): string =>
  steps
    .map((step) =>
      step._tag === "Compaction"
        ? `C${step.insert.length}`
        : `${step.draft.content.role.charAt(0)}${step.draft.content.parts.length}`
    )
    .join(" ")
const exact = (draft: Draft | undefined, part = 0): string => {
  const found = draft?.content.parts[part]
  if (found === undefined) throw new Error("expected a part")
  return payload(found, draft?.source?.[String(part)]).text
}

const timestamp = "2026-01-01T00:00:01.000Z"
const wrapped = (type: string, payload: unknown) => ({ timestamp, type, payload })
const meta = (rest: object = {}) =>
  wrapped("session_meta", { id: "s", timestamp, cwd: "/w", originator: "codex_cli_rs", cli_version: "0.9", ...rest })
const item = (payload: object) => wrapped("response_item", payload)
const event = (payload: object) => wrapped("event_msg", payload)
const message = (role: string, ...content: ReadonlyArray<unknown>) => ({ type: "message", role, content })
const text = (value: string) => ({ type: "input_text", text: value })
const user = (value: string) => item(message("user", text(value)))
const say = (value: string) => item(message("assistant", { type: "output_text", text: value }))
const call = (call_id: string, name = "read_file", args = "{}") =>
  item({ type: "function_call", name, arguments: args, call_id })
const output = (call_id: string, value: unknown) => item({ type: "function_call_output", call_id, output: value })
const context = (model: string) => wrapped("turn_context", { cwd: "/w", model, approval_policy: "never" })
const counts = (input: number, given: number, rest: object = {}) => ({
  input_tokens: input,
  cached_input_tokens: 0,
  output_tokens: given,
  reasoning_output_tokens: 0,
  total_tokens: input + given,
  ...rest
})
const tokenCount = (last: object, total: object = last) =>
  event({
    type: "token_count",
    info: { total_token_usage: total, last_token_usage: last, model_context_window: 272_000 },
    rate_limits: null
  })
const compacted = (summary: string, replacement_history?: unknown) =>
  wrapped("compacted", { message: summary, ...(replacement_history === undefined ? {} : { replacement_history }) })

describe("wire shape", () => {
  it("calls of every kind have their results, and an image is a part of its message", () => {
    const transcript = records(
      item(message("user", text("look"), { type: "input_image", image_url: "data:image/png;base64,AAAA" })),
      call("c1", "read_file", '{"path":"a"}'),
      item({ type: "custom_tool_call", status: "completed", call_id: "c2", name: "apply_patch", input: "*** Begin" }),
      item({ type: "local_shell_call", call_id: "c3", status: "completed", action: { type: "exec", command: ["ls"] } }),
      output("c1", "content of a"),
      item({ type: "custom_tool_call_output", call_id: "c2", output: "done" }),
      output("c3", "b")
    )
    assert.deepStrictEqual(told(transcript), [
      'user: look | {"inlineData":{"mimeType":"image/png","data":"AAAA"}}',
      'model: read_file(c1 {"path":"a"}) | apply_patch(c2 {"input":"*** Begin"}) | local_shell(c3 {"type":"exec","command":["ls"]})',
      'user: read_file[c1] {"output":"content of a"} | apply_patch[c2] {"output":"done"} | local_shell[c3] {"output":"b"}'
    ])
  })

  it.each<readonly [string, string, Part]>([
    ["bytes", "data:image/webp;base64,UklG", { inlineData: { mimeType: "image/webp", data: "UklG" } }],
    ["bytes of an unknown type", "data:;base64,UklG", { inlineData: { data: "UklG" } }],
    ["an address", "https://example.com/a.png", { fileData: { fileUri: "https://example.com/a.png" } }],
    ["data that is not base64", "data:image/svg+xml,<svg/>", { fileData: { fileUri: "data:image/svg+xml,<svg/>" } }]
  ])("an image that is %s", (_, image_url, part) => {
    const transcript = ok(readRecords([meta(), item(message("user", { type: "input_image", image_url }))]))
    assert.deepStrictEqual(contents(transcript)[0]?.parts, [part])
  })

  it.each<readonly [string, object, ReadonlyArray<object>, object]>([
    [
      "only encrypted content",
      { summary: [], encrypted_content: "e" },
      [{ text: "", thought: true, thoughtSignature: "e" }],
      {}
    ],
    [
      "its text in content",
      { summary: [], content: [{ type: "reasoning_text", text: "raw" }] },
      [{ text: "raw", thought: true }],
      {}
    ],
    [
      "summary and content",
      {
        summary: [{ type: "summary_text", text: "s" }],
        content: [{ type: "text", text: "c" }],
        encrypted_content: "e"
      },
      [
        { text: "s", thought: true },
        { text: "c", thought: true, thoughtSignature: "e" }
      ],
      {}
    ],
    ["nothing", { summary: [], encrypted_content: null }, [], { "response_item: reasoning without text": 1 }]
  ])("reasoning with %s", (_, rest, parts, skipped) => {
    const transcript = ok(readRecords([meta(), item({ type: "reasoning", ...rest })]))
    assert.deepStrictEqual(
      contents(transcript).flatMap((content) => content.parts),
      parts
    )
    assert.deepStrictEqual(transcript.skipped, skipped)
  })

  it("drafts have time, line, item ids and the model", () => {
    const transcript = ok(
      readRecords([
        meta(),
        context("m1"),
        item({ ...message("user", text("a")), id: "msg_1" }),
        item({ type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "s" }] }),
        item({ ...message("assistant", { type: "output_text", text: "b" }), id: "msg_2" }),
        user("c"),
        context("m2"),
        say("d")
      ])
    )
    const at = Date.parse(timestamp)
    assert.deepStrictEqual(
      drafts(transcript).map(({ content: _, ...rest }) => rest),
      [
        { at, origin: { line: 3, ids: ["msg_1"] } },
        { at, model: "m1", origin: { line: 4, ids: ["rs_1", "msg_2"] } },
        { at, origin: { line: 6, ids: [] } },
        { at, model: "m2", origin: { line: 8, ids: [] } }
      ]
    )
    assert.strictEqual(transcript.model, "m2")
  })
})

describe("call arguments", () => {
  const called = (args: string, name = "f") => drafts(ok(readRecords([meta(), call("c", name, args)])))[0]
  const spliced = (args: string) => `{"functionCall":{"id":"c","name":"f","args":${args}}}`

  it.each<readonly [string, string, object | undefined]>([
    ["an object", '{"a":[1,null]}', { a: [1, null] }],
    ["no JSON", '{"a": unfinished', { arguments: '{"a": unfinished' }],
    ["a list", "[1]", { arguments: "[1]" }],
    ["a text in JSON", '"a"', { arguments: '"a"' }],
    ["null", "null", { arguments: "null" }]
  ])("that are %s", (_, args, expected) => {
    const part = called(args)?.content.parts[0]
    assert.deepStrictEqual(part?.functionCall, {
      id: "c",
      name: "f",
      ...(expected === undefined ? {} : { args: expected })
    })
  })

  it("with half a surrogate pair outside of their own JSON keep their spelling", () => {
    const line = `{"type":"response_item","payload":{"type":"function_call","name":"f","arguments":"{\\"a\\":\\"\\ud83d\\"}","call_id":"c"}}`
    assert.strictEqual(exact(drafts(ok(read([line])))[0]), spliced('{"arguments":"{\\"a\\":\\"\\ud83d\\"}"}'))
  })

  it("of a custom tool round-trip as text", () => {
    const line = `{"type":"response_item","payload":{"type":"custom_tool_call","name":"f","input":"\\u0061\\ud83d","call_id":"c"}}`
    assert.strictEqual(exact(drafts(ok(read([line])))[0]), spliced('{"input":"\\u0061\\ud83d"}'))
  })
})

describe("tool results", () => {
  const answered = (value: unknown, name = "shell") =>
    drafts(ok(readRecords([meta(), call("c", name), output("c", value)])))[1]
  const responseTo = (value: unknown, name?: string) =>
    answered(value, name)?.content.parts[0]?.functionResponse?.response
  const json = (exit_code: number) =>
    JSON.stringify({ output: "out\n", metadata: { exit_code, duration_seconds: 0.1 } })
  const items = [
    { type: "input_text", text: "a" },
    { type: "input_image", image_url: "data:image/png;base64,AA" }
  ]

  it.each<readonly [string, unknown, object]>([
    ["a text", "out", { output: "out" }],
    ["an empty text", "", { output: "" }],
    ["JSON text with exit code 0", json(0), { output: json(0) }],
    ["JSON text with another exit code", json(2), { error: json(2) }],
    [
      "a text with exit code 0",
      "Exit code: 0\nWall time: 1 seconds\nOutput:\nok",
      { output: "Exit code: 0\nWall time: 1 seconds\nOutput:\nok" }
    ],
    [
      "a text with another exit code",
      "Exit code: 1\nWall time: 1 seconds\nOutput:\nno",
      { error: "Exit code: 1\nWall time: 1 seconds\nOutput:\nno" }
    ],
    [
      "a process that failed",
      "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 127\nOutput:\nno",
      { error: "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 127\nOutput:\nno" }
    ],
    [
      "a process that goes on",
      "Wall time: 1 seconds\nProcess running with session ID 5\nOutput:\n",
      { output: "Wall time: 1 seconds\nProcess running with session ID 5\nOutput:\n" }
    ],
    ["a call that was aborted", "aborted by user after 3.1s", { error: "aborted by user after 3.1s" }],
    [
      "a call that was refused",
      "patch rejected: outside of the project; rejected by user approval settings",
      { error: "patch rejected: outside of the project; rejected by user approval settings" }
    ],
    [
      "output that only looks like an exit code",
      "see\nExit code: 1\nWall time: 1",
      { output: "see\nExit code: 1\nWall time: 1" }
    ],
    ["content and success", { content: "fine", success: true }, { output: "fine" }],
    ["content and failure", { content: "boom", success: false }, { error: "boom" }],
    ["one text item", [items[0]], { output: "a" }],
    ["no item", [], { output: "" }],
    ["several items", items, { content: items }],
    ["items and failure", { content: items, success: false }, { error: items }]
  ])("that are %s", (_, value, expected) => {
    assert.deepStrictEqual(responseTo(value), expected)
  })

  it("of a patch that did not apply are errors, so that no file counts as changed", () => {
    const [asked, answer] = drafts(
      ok(
        readRecords([
          meta(),
          item({
            type: "custom_tool_call",
            call_id: "c",
            name: "apply_patch",
            input: "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"
          }),
          item({
            type: "custom_tool_call_output",
            call_id: "c",
            output: "apply_patch verification failed: no such line"
          })
        ])
      )
    ).map((draft) => draft.content.parts[0])
    assert.isDefined(asked)
    if (asked !== undefined) assert.deepStrictEqual(actionsOf(asked, answer), [])
  })

  it("of tools that say how they ended are errors because of their text, those of others never", () => {
    for (const name of ["shell", "shell_command", "exec_command", "write_stdin", "container.exec", "apply_patch"])
      assert.deepStrictEqual(responseTo(json(2), name), { error: json(2) })
    assert.deepStrictEqual(responseTo(json(2), "fetch"), { output: json(2) })
  })

  it.each([
    ["one text", '[{"type":"input_text","text":"\\udc80"}]', '{"output":"\\udc80"}'],
    [
      "several",
      '[{"type":"input_text","text":"a"},{"2":1,"1":2.0,"type":"input_text","text":"b"}]',
      '{"content":[{"type":"input_text","text":"a"},{"2":1,"1":2.0,"type":"input_text","text":"b"}]}'
    ],
    ["wrapped", '{"content":[{"type":"x","n":1.0}],"success":false}', '{"error":[{"type":"x","n":1.0}]}'],
    ["text", '"\\udc80\\/"', '{"output":"\\udc80\\/"}']
  ])("in items come back exactly: %s", (_, value, expected) => {
    const line = `{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":${value}}}`
    const [, draft] = drafts(ok(read([JSON.stringify(call("c", "f")), line])))
    assert.strictEqual(exact(draft), `{"functionResponse":{"id":"c","name":"f","response":${expected}}}`)
  })

  const names = (records: ReadonlyArray<object>) =>
    contents(ok(readRecords([meta(), ...records])))
      .flatMap((content) => content.parts)
      .flatMap((part) => (part.functionResponse === undefined ? [] : [part.functionResponse.name]))
  it.each<readonly [string, ReadonlyArray<object>, ReadonlyArray<string | undefined>]>([
    ["its call", [call("1", "a"), call("2", "b"), output("2", ""), output("1", "")], ["b", "a"]],
    ["the last call with its id", [call("1", "a"), output("1", ""), call("1", "b"), output("1", "")], ["a", "b"]],
    ["a call that comes only later", [output("1", ""), call("1", "a")], ["a"]],
    ["no call", [output("1", "")], [undefined]],
    ["a call before a compaction", [call("1", "a"), compacted("s", []), output("1", "")], ["a"]]
  ])("are named after %s", (_, records, expected) => {
    assert.deepStrictEqual(names(records), expected)
  })
})

describe("usage", () => {
  const used = (...records: ReadonlyArray<object>) =>
    drafts(ok(readRecords([meta(), ...records]))).map(({ content, usage }) => [content.role, usage])

  it("belongs to the model's last message", () => {
    const last = counts(100, 30, { cached_input_tokens: 40, reasoning_output_tokens: 10, cache_write_input_tokens: 5 })
    assert.deepStrictEqual(used(user("a"), say("b"), tokenCount(last), user("c")), [
      ["user", undefined],
      ["model", { prompt: 100, answer: 20, thoughts: 10, cached: 40, cacheWrite: 5 }],
      ["user", undefined]
    ])
  })

  it("may come after the results", () => {
    assert.deepStrictEqual(used(call("1"), output("1", "x"), tokenCount(counts(7, 3)))[0]?.[1], {
      prompt: 7,
      answer: 3,
      thoughts: 0,
      cached: 0
    })
  })

  it.each<readonly [string, ReadonlyArray<object>]>([
    ["null", [say("a"), event({ type: "token_count", info: null })]],
    ["missing", [say("a"), event({ type: "token_count" })]],
    ["of nothing", [say("a"), tokenCount(counts(0, 0, { total_tokens: 500 }))]],
    ["no numbers", [say("a"), tokenCount({ input_tokens: "many", output_tokens: -1 })]],
    ["before any answer", [user("a"), tokenCount(counts(1, 1))]],
    ["after a compaction", [say("a"), compacted("s", []), tokenCount(counts(1, 1))]]
  ])("counts that are %s belong to nothing and are skipped", (_, records) => {
    const transcript = ok(readRecords([meta(), ...records]))
    assert.isTrue(drafts(transcript).every((draft) => draft.usage === undefined))
    assert.deepStrictEqual(transcript.skipped, { "event_msg: token_count": 1 })
  })

  it("has no more thoughts than output", () => {
    const usage = used(say("a"), tokenCount(counts(9, 4, { reasoning_output_tokens: 6 })))[0]?.[1]
    assert.deepStrictEqual(usage, { prompt: 9, answer: 0, thoughts: 4, cached: 0 })
  })

  it("is ignored when it repeats the one before", () => {
    const [, , again] = used(say("a"), tokenCount(counts(9, 1)), user("b"), say("c"), tokenCount(counts(9, 1)))
    assert.deepStrictEqual(again, ["model", undefined])
  })
})

describe("compaction", () => {
  const compactions = (records: ReadonlyArray<object>) =>
    ok(readRecords([meta(), ...records])).steps.flatMap((step) => (step._tag === "Compaction" ? [step] : []))
  const seen = (records: ReadonlyArray<object>) => viewOf(ok(readRecords([meta(), ...records]))).map(messageText)
  const environment = user("<environment_context>x</environment_context>")

  it("with a replacement inserts all of it, with the summary marked", () => {
    const records = [
      user("a"),
      call("1", "f"),
      compacted("so far", [
        message("user", text("a")),
        message("user", text("so far")),
        { type: "compaction", encrypted_content: "x" },
        { type: "function_call_output", call_id: "1", output: "late" }
      ]),
      say("b")
    ]
    assert.deepStrictEqual(seen(records), ["user: a", "summary: so far", 'user: f[1] {"output":"late"}', "model: b"])
    const transcript = ok(readRecords(records))
    assert.strictEqual(shape(transcript), "u1 m1 C3 m1")
    assert.deepStrictEqual(transcript.skipped, { "response_item: compaction": 1 })
    const [step] = compactions(records)
    assert.isUndefined(step?.encryptedAt)
    assert.strictEqual(step?.keptFrom, undefined)
    assert.strictEqual(step?.insert[2]?.content.parts[0]?.functionResponse?.name, "f")
  })

  it("without one keeps the user's messages and adds the summary", () => {
    assert.deepStrictEqual(
      seen([environment, user("a"), say("b"), call("1"), output("1", "x"), user("c"), compacted("so far"), user("d")]),
      ["user: a", "user: c", "summary: so far", "user: d"]
    )
  })

  it("a second one keeps what the first kept, without its summary", () => {
    assert.deepStrictEqual(seen([user("a"), compacted("one"), user("b"), say("c"), compacted("two"), say("d")]), [
      "user: a",
      "user: b",
      "summary: two",
      "model: d"
    ])
  })

  it("without a summary inserts none", () => {
    const said = (value: string) => message("user", text(value))
    assert.deepStrictEqual(seen([compacted("", [said(""), said("a")])]), ["user: ", "user: a"])
    assert.deepStrictEqual(seen([compacted("s", [message("user", text("s"), text("t"))])]), ["user: s | t"])
  })

  it("treats null as no replacement, and an empty list as one", () => {
    assert.deepStrictEqual(seen([user("a"), compacted("s", null)]), ["user: a", "summary: s"])
    assert.deepStrictEqual(seen([user("a"), compacted("s", [])]), [])
  })

  it("records the size of the context", () => {
    const [step, again] = compactions([say("a"), tokenCount(counts(90, 9)), compacted("one", []), compacted("two", [])])
    assert.deepStrictEqual([step?.tokensBefore, again?.tokensBefore], [99, undefined])
    assert.strictEqual(step?.trigger, "auto")
  })

  it("keeps the spelling of the summary", () => {
    const [draft] = drafts(ok(read(['{"type":"compacted","payload":{"message":"\\udc80"}}'])))
    assert.strictEqual(exact(draft), '{"text":"\\udc80"}')
  })

  it("restores items of a replacement exactly", () => {
    const args = '{ "n": 12345678901234567890 }'
    const line = `{"type":"compacted","payload":{"message":"","replacement_history":[ {"type":"message","role":"user","content":[]}, {"type":"function_call","name":"f","arguments":${JSON.stringify(args)},"call_id":"c"}]}}`
    assert.strictEqual(exact(drafts(ok(read([line])))[1]), `{"functionCall":{"id":"c","name":"f","args":${args}}}`)
  })
})

describe("counts records that are not part of the conversation", () => {
  it.each<readonly [string, object]>([
    ["event_msg: agent_message", event({ type: "agent_message", message: "a" })],
    ["event_msg: turn_aborted", event({ type: "turn_aborted", reason: "interrupted" })],
    ["event_msg: unknown record", event({})],
    ["response_item: ghost_snapshot", item({ type: "ghost_snapshot" })],
    ["response_item: other", item({ type: "other", role: "user" })],
    ["message: tool", item(message("tool", text("x")))],
    ["record_type: state", { record_type: "state" }],
    ["world_state", wrapped("world_state", null)],
    [
      "block: encrypted_content",
      item({ type: "agent_message", content: [{ type: "encrypted_content", encrypted_content: "x" }] })
    ],
    ["response_item: whatever", { type: "whatever" }],
    ["session_meta", meta({ id: "parent", cwd: "/elsewhere" })]
  ])("%s", (kind, record) => {
    const transcript = ok(readRecords([meta(), record]))
    assert.deepStrictEqual(transcript.skipped, { [kind]: 1 })
    assert.deepStrictEqual(transcript.steps, [])
    assert.deepStrictEqual([transcript.session, transcript.cwd], ["s", "/w"])
  })

  it("counts unknown blocks beside known ones", () => {
    const transcript = ok(readRecords([meta(), item(message("user", text("a"), { type: "hologram", data: "x" }))]))
    assert.strictEqual(shape(transcript), "u1")
    assert.deepStrictEqual(transcript.skipped, { "block: hologram": 1 })
  })
})

describe("problems have their position", () => {
  it.each<readonly [string, unknown, string]>([
    ["no record", 7, ""],
    ["a list", [], ""],
    ["no type", { timestamp }, "type:"],
    ["a number for a type", { type: 5, payload: {} }, "type:"],
    ["a null payload", wrapped("response_item", null), "payload:"],
    ["a null payload of an event", wrapped("event_msg", null), "payload:"],
    ["an invalid block", item(message("user", "text")), "payload.content[0]:"],
    ["a block without text", item(message("user", text("a"), { type: "input_text" })), "payload.content[1].text:"],
    ["a call without name", item({ type: "function_call", arguments: "{}", call_id: "c" }), "payload.name:"],
    ["an answer without output", item({ type: "function_call_output", call_id: "c" }), "payload.output:"],
    ["a number of turns that is none", event({ type: "thread_rolled_back", num_turns: "all" }), "payload.num_turns:"],
    ["a replacement that is no list", compacted("s", {}), "payload.replacement_history:"],
    [
      "a broken item of a replacement",
      compacted("s", [message("user"), { type: "function_call" }]),
      "payload.replacement_history[1].name:"
    ],
    ["exact parts that are none", { ...user("a"), palimpsest: { parts: [{ text: 5 }] } }, "palimpsest.parts[0]:"],
    ["escaped parts that are none", { ...user("a"), palimpsest: { escaped: ["{"] } }, "palimpsest.escaped:"],
    ["a layout without items", { ...compacted("s", []), palimpsest: { layout: [{}] } }, "palimpsest.layout:"],
    [
      "a layout that leaves parts over",
      { ...compacted("s", []), palimpsest: { parts: [{ text: "a" }] } },
      "palimpsest.layout:"
    ]
  ])("%s, and the line can be skipped", (_, record, where) => {
    const problem = bad(readRecords([meta(), record]))
    assert.deepStrictEqual([problem.line, problemText(problem).startsWith(where)], [2, true], problemText(problem))
    assert.notInclude(problemText(problem), "\n")
    const reader = codexReader()
    for (const [index, one] of [meta(), user("a"), record, user("b")].entries())
      reader.line(one, JSON.stringify(one), index + 1)
    assert.deepStrictEqual(told(ok(Work.runSync(reader.end()))), ["user: a", "user: b"])
  })
})

describe("files", () => {
  const folder = new URL("../../../fixtures/codex/", import.meta.url)
  const golden = new URL("../../../golden/", import.meta.url)
  const lines = (name: string) =>
    readFileSync(new URL(`${name}.jsonl`, folder), "utf8")
      .split("\n")
      .filter((line) => line !== "")

  it.each([["codex-today"], ["codex-2025"]])("%s is read as another reading reads it", (name) => {
    const transcript = ok(read(lines(name)))
    const expected: unknown = JSON.parse(readFileSync(new URL(`${name}.json`, golden), "utf8"))
    const message = ({ author, content, usage }: Draft) => ({
      role: content.role,
      author: author ?? null,
      parts: content.parts,
      usage: usage ?? null
    })
    assert.deepStrictEqual(
      {
        session: transcript.session,
        cwd: transcript.cwd,
        model: transcript.model ?? null,
        skipped: transcript.skipped,
        steps: transcript.steps.map((step) =>
          step._tag === "Message"
            ? message(step.draft)
            : { compaction: step.insert.map(message), tokens: step.tokensBefore ?? null }
        )
      },
      expected
    )
  })

  it("a file of 2025 names its folder in the environment context", () => {
    const bare = (context: string) => [
      { id: "s", timestamp, instructions: null },
      { record_type: "state" },
      message("user", text(context))
    ]
    for (const context of [
      "<environment_context>\n  <cwd>/home/me</cwd>\n</environment_context>",
      "<environment_context>\nCurrent working directory: /home/me\nApproval policy: never\n</environment_context>"
    ]) {
      const transcript = ok(readRecords(bare(context)))
      assert.deepStrictEqual([transcript.session, transcript.cwd], ["s", "/home/me"])
    }
  })
})

describe("blocks that Codex has not", () => {
  it.each([{ type: "" }, { type: "thinking", thinking: "Hm." }, { type: "toolCall", name: "f" }])(
    "%j is counted",
    (block) => {
      const { skipped, steps } = records(item(message("assistant", block, text("It is so."))))
      assert.deepStrictEqual([steps.length, skipped], [1, { [`block: ${block.type}`]: 1 }])
    }
  )
})
