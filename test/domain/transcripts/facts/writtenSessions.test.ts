import { assert, it } from "@effect/vitest"
import type { Author } from "../../../../src/domain/conversation/Conversation.ts"
import { runtimeMark } from "../../../../src/domain/text/RuntimeMark.ts"
import type { AgentName } from "../../../../src/domain/transcripts/AgentFolders.ts"
import { newScan } from "../../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../../src/domain/transcripts/facts/SessionScan.ts"
import type { Step } from "../../../../src/domain/transcripts/Transcript.ts"
import { cut, recordsOf, said, summary, type WrittenForm } from "../../../support/transcripts.ts"

/** The facts of a session that this program wrote for an agent are those of the conversation: only the user asks. */

const says = (text: string, author?: Author): Step =>
  said({ role: "user", parts: [{ text }] }, author === undefined ? {} : { author })

const talk: ReadonlyArray<Step> = [
  says("It is Monday.", "environment"),
  says("The tests were red.", "summary"),
  says("A hook ran.", "program"),
  says("Fix the login"),
  says("Another hook ran.", "program"),
  says("Now the tests")
]

const forms = [
  ["claude", "claude"],
  ["codex", "codex"],
  ["gemini", "gemini"],
  ["gemini", "gemini document"],
  ["opencode", "opencode"],
  ["pi", "pi"]
] as const satisfies ReadonlyArray<readonly [AgentName, WrittenForm]>

const factsOf = (agent: AgentName, form: WrittenForm, steps: ReadonlyArray<Step>) => {
  const state = newScan()
  for (const { messages, ...record } of recordsOf(form, steps, { model: "m" }))
    for (const one of [record, ...(Array.isArray(messages) ? messages : [])]) scanRecord(state, agent, one)
  return state.facts
}

it.each(forms)("for %s: %s", (agent, form) => {
  assert.deepInclude(factsOf(agent, form, talk), { prompts: 2, title: "Fix the login" })
})

it.each(forms)(
  "a session whose prompts are all in a snapshot is called by the first of them for %s: %s",
  (agent, form) => {
    const goals = [
      '<user_words entry="e1" at="2026-02-12 16:02">Fix the login</user_words>\n<user_words entry="e5">Now</user_words>',
      '<user_words entries="e1 to e5">\n[e1 16:02] Fix the login\n</user_words>'
    ]
    for (const goal of goals) {
      const steps = [says(`${runtimeMark} All left.\n\n<overall_goal>\n${goal}\n</overall_goal>`, "summary")]
      assert.deepInclude(factsOf(agent, form, steps), { prompts: 0, title: "Fix the login" })
    }
  }
)

it.each(["claude", "codex", "gemini", "pi"] as const)(
  "a prompt that a compaction kept is counted once for %s",
  (agent) => {
    const kept = cut([summary("The login is fixed.")], 5, "manual", 9)
    assert.strictEqual(factsOf(agent, agent, [...talk, kept, says("And the docs")]).prompts, 3)
  }
)
