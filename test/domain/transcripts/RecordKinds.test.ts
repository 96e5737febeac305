import { assert, describe, it } from "@effect/vitest"
import { recordKinds } from "../../../scripts/recordKinds.ts"
import { decodeClaude } from "../../../src/domain/transcripts/claude/Record.ts"
import { decodeCodex } from "../../../src/domain/transcripts/codex/Record.ts"
import { decodeGemini } from "../../../src/domain/transcripts/gemini/Record.ts"
import { decodeOpencode, decodePart } from "../../../src/domain/transcripts/opencode/Record.ts"
import { decodePi } from "../../../src/domain/transcripts/pi/Record.ts"

describe("the kinds of records in docs/formats.md", () => {
  const readBy = (agent: string): ReadonlyArray<string> =>
    recordKinds.find((kinds) => kinds.agent === agent)?.read ?? assert.fail(`no kinds of ${agent}`)

  it.each(readBy("Claude Code"))("Claude Code's %s is decoded", (kind) => {
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

  it.each(readBy("Codex").filter((kind) => !kind.includes("…")))("Codex's %s is decoded", (kind) => {
    const [type, inner] = kind.split(": ")
    const payload = { id: "s", type: inner, info: { last_token_usage: {} }, num_turns: 1 }
    assert.notInclude(["Other", "Broken"], decodeCodex({ type, payload })._tag)
  })

  it.each(readBy("Gemini CLI"))("Gemini CLI's %s is decoded", (kind) => {
    const special = kind === "metadata" ? { sessionId: "s" } : { [kind]: kind === "$set" ? {} : "m" }
    const record = kind === "metadata" || kind.startsWith("$") ? special : { type: kind, content: "" }
    assert.notInclude(["Other", "Note", "Broken"], decodeGemini(record)._tag)
  })

  it.each(readBy("Pi"))("Pi's %s is decoded", (type) => {
    assert.notInclude(["Other", "Broken"], decodePi({ type, summary: "", message: { role: "user" } })._tag)
  })

  it.each(readBy("opencode"))("opencode's %s is decoded", (kind) => {
    const [table, type] = kind.split(": ")
    const decoded =
      table === "row"
        ? decodeOpencode({ kind: type, id: "s", data: {} })
        : decodePart({ type, text: "", state: {}, url: "data:image/png;base64,aGk=" })
    assert.notInclude(["Other", "Broken"], decoded._tag)
  })
})
