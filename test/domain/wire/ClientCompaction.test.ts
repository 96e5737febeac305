import { assert, it } from "@effect/vitest"
import { compactedBy } from "../../../src/domain/wire/ClientCompaction.ts"

it.each([
  ["claude", "This session is being continued from a previous conversation that ran out of context."],
  ["codex", "Another language model started to solve this problem and produced a summary of its thinking process."],
  ["gemini", "<state_snapshot>\n<overall_goal>"],
  ["pi", "The conversation history before this point was compacted into the following summary:"]
])("a summary by %s is recognised at the beginning of a conversation only", (client, text) => {
  const summary = JSON.stringify({ role: "user", content: text })
  const other = JSON.stringify({ role: "user", content: "hello" })
  assert.strictEqual(compactedBy([summary, other]), client)
  assert.strictEqual(compactedBy([other, summary]), client)
  assert.isUndefined(compactedBy([other, other, other, other, summary]))
  assert.isUndefined(compactedBy([other]))
})
