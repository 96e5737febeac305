import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { shownAttachments } from "../../../src/domain/transcripts/claude/Attachments.ts"
import { decodeClaude, ignoredKinds as claudeKinds } from "../../../src/domain/transcripts/claude/Record.ts"
import { decodeCodex, ignoredKinds as codexKinds } from "../../../src/domain/transcripts/codex/Record.ts"
import { decodeGemini, ignoredKinds as gemini } from "../../../src/domain/transcripts/gemini/Record.ts"
import {
  decodeOpencode,
  decodePart,
  ignoredKinds as opencode
} from "../../../src/domain/transcripts/opencode/Record.ts"
import { decodePi, ignoredKinds as pi } from "../../../src/domain/transcripts/pi/Record.ts"
import { root } from "../../support/paths.ts"

/** The kinds of records of an agent. */
interface AgentKinds {
  readonly agent: string
  /** The versions whose recorded sessions were read. */
  readonly versions: string
  readonly read: ReadonlyArray<string>
  /** Known and not read as messages: no part of the conversation: they are counted, and stay in a file that is compressed in place. */
  readonly skipped: ReadonlySet<string>
}

/** What this program knows of the records of each agent. Any other kind is new to it, and `inspect` says so. */
const recordKinds: ReadonlyArray<AgentKinds> = [
  {
    agent: "Claude Code",
    versions: "1.0 to 2.1.219",
    read: [
      "user",
      "assistant",
      "system: compact_boundary",
      "queue-operation",
      "summary",
      "ai-title",
      "custom-title",
      "progress",
      "attachment: queued_command",
      ...shownAttachments.map((kind) => `attachment: ${kind}`)
    ],
    skipped: claudeKinds
  },
  {
    agent: "Codex",
    versions: "2025 to 0.144",
    read: [
      "session_meta",
      "turn_context",
      "compacted",
      "inter_agent_communication",
      "response_item: message",
      "response_item: agent_message",
      "response_item: reasoning",
      "response_item: function_call",
      "response_item: function_call_output",
      "response_item: custom_tool_call",
      "response_item: custom_tool_call_output",
      "response_item: local_shell_call",
      "response_item: …_call",
      "response_item: …_output",
      "event_msg: token_count",
      "event_msg: thread_rolled_back"
    ],
    skipped: codexKinds
  },
  {
    agent: "Gemini CLI",
    versions: "2025 and 2026",
    read: ["metadata", "user", "gemini", "$set", "$rewindTo"],
    skipped: gemini
  },
  {
    agent: "Pi",
    versions: "sessions of version 1 to 3",
    read: ["session", "message", "compaction", "branch_summary", "custom_message"],
    skipped: pi
  },
  {
    agent: "opencode",
    versions: "1.18",
    read: [
      "row: session",
      "row: message",
      "row: part",
      "part: text",
      "part: reasoning",
      "part: tool",
      "part: file",
      "part: subtask",
      "part: compaction"
    ],
    skipped: opencode
  }
]

/** Writes the kinds as a table of Markdown. */
const kindsTable = (): string =>
  [
    "| agent | read | known, and skipped |",
    "|---|---|---|",
    ...recordKinds.map(
      ({ agent, read, skipped, versions }) =>
        `| ${agent} (${versions}) | ${read.join(", ")} | ${[...skipped].filter((kind) => !read.includes(kind)).join(", ")} |`
    )
  ].join("\n")

describe("the kinds of records", () => {
  it("stand in docs/formats.md as the decoders have them", () => {
    assert.include(readFileSync(path.join(root, "docs/formats.md"), "utf8"), kindsTable())
  })

  const [claude, codex, geminiKinds, piKinds, opencodeKinds] = recordKinds
  it.each(claude?.read ?? [])("Claude Code's %s is decoded", (kind) => {
    const [type, subtype] = kind.split(": ")
    const relayed = { type: "assistant", message: { content: [] } }
    const record = {
      type,
      subtype,
      message: { content: "" },
      data: { message: relayed },
      attachment: { type: subtype }
    }
    assert.notStrictEqual(decodeClaude(record)._tag, "Other")
  })

  it.each((codex?.read ?? []).filter((kind) => !kind.includes("…")))("Codex's %s is decoded", (kind) => {
    const [type, inner] = kind.split(": ")
    const payload = { id: "s", type: inner, info: { last_token_usage: {} }, num_turns: 1 }
    assert.notInclude(["Other", "Broken"], decodeCodex({ type, payload })._tag)
  })

  it.each(geminiKinds?.read ?? [])("Gemini CLI's %s is decoded", (kind) => {
    const special = kind === "metadata" ? { sessionId: "s" } : { [kind]: kind === "$set" ? {} : "m" }
    const record = kind === "metadata" || kind.startsWith("$") ? special : { type: kind, content: "" }
    assert.notInclude(["Other", "Note", "Broken"], decodeGemini(record)._tag)
  })

  it.each(piKinds?.read ?? [])("Pi's %s is decoded", (type) => {
    assert.notInclude(["Other", "Broken"], decodePi({ type, summary: "", message: { role: "user" } })._tag)
  })

  it.each(opencodeKinds?.read ?? [])("opencode's %s is decoded", (kind) => {
    const [table, type] = kind.split(": ")
    const decoded =
      table === "row"
        ? decodeOpencode({ kind: type, id: "s", data: {} })
        : decodePart({ type, text: "", state: {}, url: "data:image/png;base64,aGk=" })
    assert.notInclude(["Other", "Broken"], decoded._tag)
  })
})
