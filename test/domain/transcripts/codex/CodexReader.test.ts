import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { actionsOf } from "../../../../src/domain/actions/Actions.ts"
import { payload } from "../../../../src/domain/content/Content.ts"
import type { Draft } from "../../../../src/domain/conversation/Conversation.ts"
import { codexReader } from "../../../../src/domain/transcripts/codex/CodexReader.ts"
import type { Transcript } from "../../../../src/domain/transcripts/Transcript.ts"
import { drafts, ok, reading } from "../../../support/reading.ts"

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
const message = (role: string, ...content: ReadonlyArray<unknown>) => ({ type: "message", role, content })
const text = (value: string) => ({ type: "input_text", text: value })
const call = (call_id: string, name = "read_file", args = "{}") =>
  item({ type: "function_call", name, arguments: args, call_id })

describe("call arguments", () => {
  const spliced = (args: string) => `{"functionCall":{"id":"c","name":"f","args":${args}}}`

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
})

describe("compaction", () => {
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

it("counts records that are not part of the conversation counts unknown blocks beside known ones", () => {
  const transcript = ok(readRecords([meta(), item(message("user", text("a"), { type: "hologram", data: "x" }))]))
  assert.strictEqual(shape(transcript), "u1")
  assert.deepStrictEqual(transcript.skipped, { "block: hologram": 1 })
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

it.each([{ type: "" }, { type: "thinking", thinking: "Hm." }, { type: "toolCall", name: "f" }])(
  "blocks that Codex has not %j is counted",
  (block) => {
    const { skipped, steps } = records(item(message("assistant", block, text("It is so."))))
    assert.deepStrictEqual([steps.length, skipped], [1, { [`block: ${block.type}`]: 1 }])
  }
)
