import { assert, it } from "@effect/vitest"
import type { Author } from "../../../../src/domain/conversation/Conversation.ts"
import { runtimeMark } from "../../../../src/domain/text/RuntimeMark.ts"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import { writeClaude } from "../../../../src/domain/transcripts/claude/ClaudeWriter.ts"
import { writeCodex } from "../../../../src/domain/transcripts/codex/CodexWriter.ts"
import { newScan } from "../../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../../src/domain/transcripts/facts/SessionScan.ts"
import { writeGemini, writeGeminiDocument } from "../../../../src/domain/transcripts/gemini/GeminiWriter.ts"
import { writeOpencode } from "../../../../src/domain/transcripts/opencode/OpencodeWriter.ts"
import { writePi } from "../../../../src/domain/transcripts/pi/PiWriter.ts"
import { draftsOf, type Step, type Transcript } from "../../../../src/domain/transcripts/Transcript.ts"

/** The facts of a session that this program wrote for an agent are those of the conversation: only the user asks. */

const says = (text: string, author?: Author): Step => ({
  _tag: "Message",
  draft: { content: { role: "user", parts: [{ text }] }, ...(author === undefined ? {} : { author }) }
})

const transcript: Transcript = {
  format: "palimpsest",
  session: undefined,
  cwd: "/w",
  model: "m",
  steps: [
    says("It is Monday.", "environment"),
    says("The tests were red.", "summary"),
    says("A hook ran.", "program"),
    says("Fix the login"),
    says("Another hook ran.", "program"),
    says("Now the tests")
  ],
  skipped: {}
}

const recordsIn = (lines: ReadonlyArray<string>): ReadonlyArray<unknown> => {
  const records = lines.map((line) => JSON.parse(line))
  return records.flatMap(({ messages = [], ...record }) => [record, ...messages])
}

const writers = [
  ["claude", writeClaude],
  ["codex", writeCodex],
  ["gemini", writeGemini],
  ["gemini", writeGeminiDocument],
  ["opencode", writeOpencode],
  ["pi", writePi]
] as const

it.each(writers)("for %s", (agent, write) => {
  const state = newScan()
  for (const record of recordsIn(runSync(write(transcript)).lines)) scanRecord(state, agent, record)
  assert.deepStrictEqual([state.facts.prompts, state.facts.title], [2, "Fix the login"])
})

it.each(writers)(
  "a session whose prompts are all in a snapshot is called by the first of them for %s",
  (agent, write) => {
    const goals = [
      '<user_words entry="e1" at="2026-02-12 16:02">Fix the login</user_words>\n<user_words entry="e5">Now</user_words>',
      '<user_words entries="e1 to e5">\n[e1 16:02] Fix the login\n</user_words>'
    ]
    for (const goal of goals) {
      const state = newScan()
      const steps = [says(`${runtimeMark} All left.\n\n<overall_goal>\n${goal}\n</overall_goal>`, "summary")]
      for (const record of recordsIn(runSync(write({ ...transcript, steps })).lines)) scanRecord(state, agent, record)
      assert.deepStrictEqual([state.facts.prompts, state.facts.title], [0, "Fix the login"])
    }
  }
)

it.each([
  ["claude", writeClaude],
  ["codex", writeCodex],
  ["gemini", writeGemini],
  ["pi", writePi]
] as const)("a prompt that a compaction kept is counted once for %s", (agent, write) => {
  const inserted = draftsOf(says("The login is fixed.", "summary"))
  const kept: Step = { _tag: "Compaction", insert: inserted, keptFrom: 5, trigger: "manual", tokensBefore: 9 }
  const steps = [...transcript.steps, kept, says("And the docs")]
  const state = newScan()
  for (const record of recordsIn(runSync(write({ ...transcript, steps })).lines)) scanRecord(state, agent, record)
  assert.strictEqual(state.facts.prompts, 3)
})
