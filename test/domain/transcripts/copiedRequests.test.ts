import { assert, it } from "@effect/vitest"
import { claudeReader } from "../../../src/domain/transcripts/claude/ClaudeReader.ts"
import { codexReader } from "../../../src/domain/transcripts/codex/CodexReader.ts"
import { newScan } from "../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../src/domain/transcripts/facts/SessionScan.ts"
import { drafts, ok, reading } from "../../support/reading.ts"

/** A fork repeats the requests of the session that it comes from: `inspect`, which reads messages, counts those that `cost` counts. */

const claude = (uuid: string, parentUuid: string | null, at: string, more: object = {}) => ({
  parentUuid,
  isSidechain: false,
  type: "user",
  message: { role: "user", content: "go on" },
  uuid,
  timestamp: `2026-01-01T${at}Z`,
  sessionId: "fork",
  ...more
})
const claudeAnswer = (uuid: string, parentUuid: string, at: string, more: object = {}) =>
  claude(uuid, parentUuid, at, {
    type: "assistant",
    requestId: `req_${uuid}`,
    message: {
      id: `msg_${uuid}`,
      role: "assistant",
      model: "claude-x",
      content: [{ type: "text", text: uuid }],
      usage: { input_tokens: 100, output_tokens: Number(uuid) }
    },
    ...more
  })
const queued = (at: string) => ({
  type: "queue-operation",
  operation: "enqueue",
  timestamp: `2026-01-01T${at}Z`,
  content: "and then?",
  sessionId: "fork"
})
const forkedFrom = { forkedFrom: { sessionId: "origin", messageUuid: "1" } }

const codex = (at: string, type: string, payload: object) => ({ timestamp: `2026-01-01T${at}Z`, type, payload })
const meta = (id: string, forked_from_id?: string) => ({
  id,
  cwd: "/w",
  ...(forked_from_id === undefined ? {} : { forked_from_id })
})
const said = (text: string) => ({ type: "message", role: "assistant", content: [{ type: "output_text", text }] })
const count = (output_tokens: number) => ({
  type: "token_count",
  info: { last_token_usage: { input_tokens: 100, output_tokens }, total_token_usage: { total_tokens: output_tokens } }
})
const codexAnswer = (at: string, tokens: number) => [
  codex(at, "response_item", said(String(tokens))),
  codex(at, "event_msg", count(tokens))
]

it.each<[name: string, agent: "claude" | "codex", records: ReadonlyArray<object>, answered: ReadonlyArray<number>]>([
  [
    "after a branch of Claude Code, whose copies name their origin",
    "claude",
    [
      claude("1", null, "09:00:00", forkedFrom),
      claudeAnswer("2", "1", "09:00:01", forkedFrom),
      claude("3", "2", "10:00:00"),
      claudeAnswer("4", "3", "10:00:01")
    ],
    [4]
  ],
  [
    "after --fork-session of Claude Code, whose copies are older than the prompt of the fork",
    "claude",
    [
      queued("10:00:00"),
      claude("1", null, "09:00:00"),
      claudeAnswer("2", "1", "09:00:01"),
      claude("3", "2", "10:00:00.100", { message: { role: "user", content: "and then?" } }),
      claudeAnswer("4", "3", "10:00:01")
    ],
    [4]
  ],
  [
    "in a session of Claude Code of its own",
    "claude",
    [queued("10:00:00"), claude("1", null, "10:00:00.100"), claudeAnswer("2", "1", "10:00:01")],
    [2]
  ],
  [
    "after a fork of Codex",
    "codex",
    [
      codex("10:00:00", "session_meta", meta("fork", "origin")),
      codex("10:00:00", "session_meta", meta("origin")),
      ...codexAnswer("10:00:00", 1),
      ...codexAnswer("10:00:00", 2),
      ...codexAnswer("10:00:09", 3)
    ],
    [3]
  ],
  [
    "in a session of Codex of its own",
    "codex",
    [codex("10:00:00", "session_meta", meta("own")), ...codexAnswer("10:00:05", 1), ...codexAnswer("10:00:09", 2)],
    [1, 2]
  ]
])("requests that count %s", (_, agent, records, answered) => {
  const state = newScan()
  for (const record of records) scanRecord(state, agent, { ...record })
  const read = reading(agent === "claude" ? claudeReader : codexReader)
  const messages = drafts(ok(read(records.map((record) => JSON.stringify(record)))))
  assert.deepStrictEqual(
    [
      state.requests.flatMap(({ isCopied, usage }) => (isCopied === true ? [] : [usage.answer])),
      messages.flatMap(({ usage }) => (usage === undefined ? [] : [usage.answer]))
    ],
    [answered, answered]
  )
})
