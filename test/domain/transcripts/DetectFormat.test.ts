import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import { formatOfRecord, detectFormat } from "../../../src/domain/transcripts/DetectFormat.ts"
import type { FormatName } from "../../../src/domain/transcripts/Transcript.ts"

const heads: ReadonlyArray<readonly [name: string, head: string, format: FormatName | undefined]> = [
  ["our own log", '{"_tag":"Started","version":1,"session":"x","at":0,"estimator":"e"}\n', "palimpsest"],
  ["an array", '[{"role":"user"', "contents"],
  ["an indented array", '  \n[\n  {\n    "role": "user"', "contents"],
  ["a checkpoint", '{"history":[{"role":"user","parts":[]}]}', "contents"],
  ["a checkpoint that is cut off", '{"history":[{"role":"user","parts":[{"text":"aaaa', "contents"],
  ["an indented request", '{\n  "systemInstruction": {"parts": [{"text": "\\"sessionId\\": 1"}]},\n  "con', "contents"],
  ["a Gemini CLI session", '{\n  "sessionId": "a",\n  "projectHash": "b",\n  "messages": [', "gemini"],
  ["a Gemini CLI log", '{"sessionId":"a","projectHash":"b","startTime":"x"}\n{"id":"1","type":"user"', "gemini"],
  ["a Pi session", '{"type":"session","version":3,"id":"a","timestamp":"2026","cwd":"/"}\n', "pi"],
  ["a Pi session behind a broken line", '{"type":\n{"type":"session","id":"a","timestamp":"2026"}\n', "pi"],
  ["a Codex rollout", '{"timestamp":"2026","type":"session_meta","payload":{"id":"a"}}\n', "codex"],
  ["an old Codex rollout", '{"id":"a","timestamp":"2025","instructions":null,"git":{}}\n', "codex"],
  ["Claude: a snapshot", '{"type":"file-history-snapshot","messageId":"a","snapshot":{}}\n', "claude"],
  ["Claude: a title", '{"type":"summary","summary":"x","leafUuid":"y"}\n', "claude"],
  ["Claude: a queue", '{"type":"queue-operation","operation":"enqueue","sessionId":"x"}\n', "claude"],
  ["Claude: progress", '{"parentUuid":null,"isSidechain":false,"type":"progress","uuid":"x"}\n', "claude"],
  ["Claude: a message longer than the head", '{"parentUuid":null,"type":"user","message":{"content":"aaaa', "claude"],
  [
    "Droid",
    '{"type":"session_start","id":"a","version":2}\n{"type":"message","id":"b","timestamp":"2026","message":{"role":"user"}}\n',
    undefined
  ],
  [
    "Qwen Code",
    '{"uuid":"a","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[]}}\n',
    undefined
  ],
  [
    "Qwen Code: telemetry",
    '{"uuid":"a","parentUuid":null,"sessionId":"s","type":"system","systemPayload":{}}\n',
    undefined
  ],
  [
    "output of claude -p",
    '{"type":"system","subtype":"init","session_id":"s"}\n{"type":"assistant","message":{}}\n',
    undefined
  ],
  [
    "output of codex exec",
    '{"type":"thread.started","thread_id":"t"}\n{"type":"item.completed","item":{}}\n',
    undefined
  ],
  [
    "output of gemini",
    '{"type":"init","timestamp":"2026","session_id":"s"}\n{"type":"message","timestamp":"2026","role":"user","content":"x"}\n',
    undefined
  ],
  [
    "output of pi --mode json",
    '{"type":"session","version":3,"id":"a","timestamp":"2026","cwd":"/"}\n{"type":"agent_start"}\n',
    undefined
  ],
  ["prose", "# A heading\n\nText.\n", undefined],
  ["some JSON", '{"name":"palimpsest","version":"0.1.0"}', undefined],
  ["nothing", "", undefined]
]

describe("detect", () => {
  it.each(heads)("%s", (_, head, format) => {
    assert.strictEqual(detectFormat(head), format)
  })

  it.each([
    ["claude-code-short", "claude"],
    ["claude-code-tools", "claude"],
    ["claude-code-subagent", "claude"],
    ["claude-code-1512-lines", "claude"],
    ["pi-1019-lines", "pi"]
  ])("real file %s: its first KB is enough, and every line says the same or nothing", (name, format) => {
    const file = gunzipSync(readFileSync(new URL(`../../fixtures/sessions/${name}.jsonl.gz`, import.meta.url)))
    const text = file.toString("utf8")
    assert.strictEqual(detectFormat(text.slice(0, 1024)), format)
    const found = new Set(
      text.split("\n").flatMap((line) => (line === "" ? [] : (formatOfRecord(JSON.parse(line)) ?? [])))
    )
    assert.deepStrictEqual([...found], [format])
  })
})
