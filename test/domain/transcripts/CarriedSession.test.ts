import { assert, describe, it } from "@effect/vitest"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import { append, empty, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { emptySession, logVersion, type Session } from "../../../src/domain/session/Session.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import {
  carriedFolder,
  carriedId,
  carriedName,
  carriedSession,
  resumeCommand,
  type WritableAgent
} from "../../../src/domain/transcripts/CarriedSession.ts"
import { writeClaude } from "../../../src/domain/transcripts/claude/ClaudeWriter.ts"
import { writeCodex } from "../../../src/domain/transcripts/codex/CodexWriter.ts"
import { writeGemini } from "../../../src/domain/transcripts/gemini/GeminiWriter.ts"
import { writePi } from "../../../src/domain/transcripts/pi/PiWriter.ts"
import { sessionToTranscript } from "../../../src/domain/transcripts/SessionToTranscript.ts"
import type { Writer } from "../../../src/domain/transcripts/Transcript.ts"
import { linesOf } from "../../support/transcripts.ts"

const old = "0a0a0a0a-0000-4000-8000-000000000001"
const uuid = "0b0b0b0b-0000-4000-8000-000000000002"
const place = { folder: "/work/here", at: "2026-02-03T04:05:06.789Z" }

const entry = (sequence: number, content: ReturnType<typeof user>) => ({
  id: entryId(sequence),
  content,
  tokens: [1],
  handles: [],
  usage: { prompt: 170_000, answer: 1, thoughts: 0, cached: 0 }
})
const session: Session = {
  ...emptySession,
  started: {
    _tag: "Started",
    version: logVersion,
    session: old,
    at: 1,
    estimator: "1",
    cwd: "/work/there",
    importedFrom: { format: "claude", session: old }
  },
  conversation: [entry(1, user(text("go"))), entry(2, model(text("Done.")))].reduce(append, empty)
}

const writers: Readonly<Record<Exclude<WritableAgent, "opencode">, Writer>> = {
  claude: writeClaude,
  codex: writeCodex,
  gemini: writeGemini,
  pi: writePi
}

const agents = ["claude", "codex", "gemini", "pi", "opencode"] as const

describe.each(agents)("a session that is carried over to %s", (agent) => {
  const id = carriedId(agent, uuid)
  const carried = carriedSession(session, agent, { folder: place.folder, id })

  it("has one id: in its file, in the file's name, and in the command that continues it", () => {
    const { started } = carried
    assert.deepStrictEqual(
      [started?.session, started?.importedFrom?.session, started?.importedFrom?.format, started?.cwd],
      [id, id, agent, place.folder]
    )
    const name = carriedName(agent, { ...place, id })
    const command = resumeCommand(agent, { ...place, id }, `/sessions/${name}`)
    assert.include(name, agent === "gemini" ? id.slice(0, 8) : id)
    assert.include(command, id)
    if (agent === "opencode") return
    const lines = linesOf(writers[agent], runSync(sessionToTranscript(carried)))
    assert.include(lines.join("\n"), id)
    assert.notInclude(lines.join("\n"), old)
    assert.notInclude(lines.join("\n"), "/work/there")
  })

  it("is found in the folder where the agent looks, and counts nothing of the old one", () => {
    const folders = {
      claude: "-work-here",
      codex: "2026/02/03",
      gemini: undefined,
      pi: "--work-here--"
    }
    if (agent !== "opencode") assert.strictEqual(carriedFolder(agent, { ...place, id }), folders[agent])
    assert.notInclude(JSON.stringify(carried.conversation), "170000")
  })
})
