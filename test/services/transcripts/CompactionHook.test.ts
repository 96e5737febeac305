import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { findHandle } from "../../../src/domain/conversation/Recall.ts"
import { recallableOf } from "../../../src/domain/session/Session.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { AgentSessions } from "../../../src/services/transcripts/AgentSessions.ts"
import { answerHook } from "../../../src/services/transcripts/CompactionHook.ts"
import { Transcripts } from "../../../src/services/transcripts/Transcripts.ts"
import { root } from "../../support/paths.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const services = Transcripts.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(NodeServices.layer, TokenCounter.layerEstimate, MemoryTempStore.layer)),
  Layer.merge(Layer.mock(AgentSessions, {}))
)

const file = path.join(root, "examples/claude-code-subagent.jsonl")
const input = (fields: Record<string, string>) => JSON.stringify({ transcript_path: file, session_id: "s", ...fields })

/** What Gemini CLI recorded: a compaction, and texts that were said after it. */
const geminiSession = (...after: ReadonlyArray<string>) => {
  const at = "2026-01-01T00:00:00.000Z"
  const said = (id: string, type: "user" | "gemini", text: string) => ({ id, timestamp: at, type, content: [{ text }] })
  const before = [
    said("a", "user", "Never touch the file keys.txt. Rename tide to swell."),
    said("b", "gemini", "Renamed in 12 files.")
  ]
  const summary = said("c", "user", "<state_snapshot>renamed</state_snapshot>")
  const taken = said("d", "gemini", "Got it. Thanks for the additional context!")
  return [
    { sessionId: "1111", projectHash: "x", startTime: at, lastUpdated: at },
    ...before,
    { $set: { messages: [summary, taken], lastUpdated: at } },
    ...after.map((text, index) => said(`e${index}`, index % 2 === 0 ? "user" : "gemini", text))
  ]
    .map((record) => JSON.stringify(record))
    .join("\n")
}

const inFolder = <A, E, R>(use: (folder: string) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "hook-"))),
    use,
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

it.effect("a hook of Gemini CLI adds what the summary lost to the first prompt after a compression, once", () =>
  inFolder((folder) =>
    Effect.gen(function* () {
      const session = path.join(folder, "session-1.jsonl")
      const ask = answerHook(JSON.stringify({ hook_event_name: "BeforeAgent", transcript_path: session, prompt: "?" }))
      assert.strictEqual(yield* ask, "", "no file yet")
      writeFileSync(session, geminiSession())
      const { hookSpecificOutput } = JSON.parse(yield* ask)
      assert.strictEqual(hookSpecificOutput.hookEventName, "BeforeAgent")
      assert.include(hookSpecificOutput.additionalContext, "Never touch the file keys.txt.")
      const escaped = hookSpecificOutput.additionalContext.replaceAll("<", "&lt;").replaceAll(">", "&gt;")
      writeFileSync(session, geminiSession(`go on <hook_context>${escaped}</hook_context>`, "Done."))
      assert.strictEqual(yield* ask, "")
      writeFileSync(session, geminiSession("go on", "Done."))
      assert.notStrictEqual(yield* ask, "", "compressed in the middle of a turn")
      writeFileSync(session, geminiSession().split("\n").slice(0, 3).join("\n"))
      assert.strictEqual(yield* ask, "", "nothing was compressed")
    })
  ).pipe(Effect.provide(services))
)

it.effect("the extension of Pi gets a summary of what is left out, with handles of the session's own file", () =>
  inFolder((folder) =>
    Effect.gen(function* () {
      const file = path.join(folder, "session.jsonl")
      const said = (id: string, parentId: string | null, role: string, text: string) => ({
        type: "message",
        id,
        parentId,
        timestamp: "2026-01-01T00:00:00.000Z",
        message: { role, content: [{ type: "text", text }], timestamp: 0 }
      })
      const entries = [
        said("1", null, "user", "Never touch the file keys.txt. Rename tide to swell."),
        said("2", "1", "assistant", "Renamed in 12 files."),
        said("3", "2", "user", "Now the docs, as swell-table.md.")
      ]
      const header = { type: "session", version: 3, id: "p", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/w" }
      writeFileSync(file, [header, ...entries].map((record) => JSON.stringify(record)).join("\n"))
      const event = { hook_event_name: "session_before_compact", transcript_path: file, cwd: "/w", entries }
      const { summary } = JSON.parse(yield* answerHook(JSON.stringify({ ...event, first_kept_entry_id: "3" })))
      assert.include(summary, "Never touch the file keys.txt.")
      const { session } = yield* Transcripts.use(({ load }) => load(file))
      for (const [handle] of summary.matchAll(/h_[a-z2-7]{10}/g)) {
        assert.strictEqual(findHandle(recallableOf(session), handle)._tag, "Found")
      }
      const whole = JSON.parse(yield* answerHook(JSON.stringify({ ...event, transcript_path: null })))
      assert.include(whole.summary, "swell-table.md")
    })
  ).pipe(Effect.provide(services))
)

describe("a hook around a compaction of Claude Code or Codex", () => {
  it.effect("answers nothing for a session without a file", services, function* () {
    for (const hook_event_name of ["PreCompact", "SessionStart", "BeforeAgent"]) {
      const text = JSON.stringify({ hook_event_name, source: "compact", transcript_path: null })
      assert.strictEqual(yield* answerHook(text), "")
    }
  })

  it.effect("adds what the summary lost, within the hook's 10,000 characters", services, function* () {
    const answer: { hookSpecificOutput: { hookEventName: string; additionalContext: string } } = JSON.parse(
      yield* answerHook(input({ hook_event_name: "SessionStart", source: "compact" }))
    )
    const { additionalContext, hookEventName } = answer.hookSpecificOutput
    assert.strictEqual(hookEventName, "SessionStart")
    assert.isAtMost(additionalContext.length, 10_000)
    assert.include(additionalContext, "<user_words")
    assert.match(additionalContext, /entry="e1"/)
    assert.include(additionalContext, file)
  })

  it.effect("names the latest orders before it, where there are many", () =>
    inFolder((folder) =>
      Effect.gen(function* () {
        const session = path.join(folder, "many.jsonl")
        const lines = Array.from({ length: 20 }, (_, at) => ({
          type: "user",
          uuid: `u${at}`,
          parentUuid: at === 0 ? null : `u${at - 1}`,
          sessionId: "s",
          message: { role: "user", content: `Never touch the file keys${at}.txt.` }
        }))
        writeFileSync(session, lines.map((line) => JSON.stringify(line)).join("\n"))
        const focus = yield* answerHook(
          input({ hook_event_name: "PreCompact", trigger: "auto", transcript_path: session })
        )
        assert.include(focus, "keys19.txt")
        assert.notInclude(focus, "keys0.txt")
      })
    ).pipe(Effect.provide(services))
  )

  it.effect("gives a focus before it, and answers nothing to other events", services, function* () {
    assert.isAtMost((yield* answerHook(input({ hook_event_name: "PreCompact", trigger: "auto" }))).length, 8_000)
    for (const fields of [{ hook_event_name: "SessionStart", source: "startup" }, { hook_event_name: "Stop" }]) {
      assert.strictEqual(yield* answerHook(input(fields)), "")
    }
  })

  it.effect("refuses anything else in one line", services, function* () {
    for (const text of ["", "garbage", "[]", '{"hook_event_name":1}']) {
      assert.notInclude((yield* Effect.flip(answerHook(text))).message, "\n")
    }
  })
})
