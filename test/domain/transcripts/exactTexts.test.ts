import { assert, it } from "@effect/vitest"
import { payload } from "../../../src/domain/content/Content.ts"
import { claudeReader } from "../../../src/domain/transcripts/claude/ClaudeReader.ts"
import { codexReader } from "../../../src/domain/transcripts/codex/CodexReader.ts"
import { geminiReader } from "../../../src/domain/transcripts/gemini/GeminiReader.ts"
import { piReader } from "../../../src/domain/transcripts/pi/PiReader.ts"
import { drafts, ok, reading } from "../../support/reading.ts"

/** Wherever an agent records a text, its spelling is kept when it is not well-formed: here half a character, as an escape. */

const readers = { claude: claudeReader, codex: codexReader, gemini: geminiReader, pi: piReader }

const user = '"type":"user","uuid":"u","parentUuid":null,"timestamp":"2026-01-01T00:00:00Z"'
const claudeAnswer = '{"type":"assistant","uuid":"a","parentUuid":"u","message":{"id":"m","content":[]}}'
const pi = '{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z"}'
const item =
  '{"type":"message","role":"user","content":[{"type":"input_text","text":"well"},{"type":"input_text","text":"HALF"}]}'

const rows: ReadonlyArray<readonly [keyof typeof readers, string, ...ReadonlyArray<string>]> = [
  ["claude", "a text", `{${user},"message":{"content":"HALF"}}`],
  [
    "claude",
    "a block",
    `{${user},"message":{"content":[{"type":"text","text":"well"},{"type":"text","text":"HALF"}]}}`
  ],
  [
    "claude",
    "a message sent meanwhile",
    `{"type":"attachment","uuid":"u","attachment":{"type":"queued_command","prompt":"HALF"}}`
  ],
  [
    "claude",
    "a queued message",
    `{${user},"message":{"content":"Go"}}`,
    claudeAnswer,
    '{"type":"queue-operation","operation":"enqueue","content":"HALF"}',
    '{"type":"queue-operation","operation":"remove"}'
  ],
  ["codex", "an item", `{"type":"response_item","payload":${item}}`],
  ["codex", "an item of 2025", item],
  [
    "codex",
    "an item of a compaction",
    `{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[]},${item}]}}`
  ],
  ["codex", "a summary", '{"type":"compacted","payload":{"message":"HALF"}}'],
  ["gemini", "a text", '{"id":"1","type":"user","content":"HALF"}'],
  ["gemini", "a part", '{"id":"1","type":"user","content":["well",{"text":"HALF"}]}'],
  ["gemini", "the only part", '{"id":"1","type":"user","content":{"text":"HALF"}}'],
  [
    "gemini",
    "a message of a checkpoint",
    '{"$set":{"messages":[{"id":"0","type":"user","content":"well"},{"id":"1","type":"user","content":["HALF"]}]}}'
  ],
  [
    "pi",
    "a block",
    pi,
    '{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":[{"type":"text","text":"HALF"}]}}'
  ],
  ["pi", "a message of an extension", pi, '{"type":"custom_message","id":"a","parentId":null,"content":"HALF"}'],
  ["pi", "a compaction", pi, '{"type":"compaction","id":"a","parentId":null,"summary":"HALF"}'],
  ["pi", "the summary of a branch", pi, '{"type":"branch_summary","id":"a","parentId":null,"summary":"HALF"}']
]

it.each(rows.map(([agent, what, ...lines]) => ({ agent, what, lines })))("$agent: $what", ({ agent, lines }) => {
  const half = "\\udc80"
  const spelled = lines.map((line) => line.replace("HALF", () => half))
  const draft = drafts(ok(reading(readers[agent])(spelled))).at(-1)
  const at = (draft?.content.parts.length ?? 0) - 1
  const part = draft?.content.parts[at]
  assert.strictEqual(part === undefined ? "" : payload(part, draft?.source?.[String(at)]).text, `{"text":"${half}"}`)
})
