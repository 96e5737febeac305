import { assert, describe, it } from "@effect/vitest"
import { notifiedReports, reportsIn } from "../../../src/domain/actions/AgentReports.ts"
import { toolKind } from "../../../src/domain/actions/AgentTools.ts"
import { call, response } from "../../../src/domain/content/Content.ts"

describe("what another agent reports", () => {
  it.each<readonly [what: string, tool: string, result: string, reports: ReadonlyArray<string>]>([
    ["to Claude Code", "Task", "The lock is taken twice.", ["The lock is taken twice."]],
    [
      "to Claude Code of 2026",
      "Agent",
      "The lock is taken twice.\nagentId: a1b2 (use SendMessage to go on)\n<usage>total_tokens: 9\ntool_uses: 1</usage>",
      ["The lock is taken twice."]
    ],
    ["to Claude Code, later", "Agent", "Async agent launched successfully.\nagentId: a1b2", []],
    [
      "to opencode",
      "task",
      "task_id: ses_2\n\n<task_result>\nIt is taken twice.\n</task_result>",
      ["It is taken twice."]
    ],
    ["to Codex, later", "spawn_agent", '{"agent_id":"a","nickname":"Kepler"}', []],
    ["to Codex", "wait_agent", '{"status":{"a":{"completed":"Twice."},"b":"running"},"timed_out":false}', ["Twice."]],
    ["to Codex that has no report yet", "wait_agent", '{"status":{},"timed_out":true}', []],
    ["to Codex that waited in vain", "wait_agent", '{"message":"Wait timed out.","timed_out":true}', []],
    ["to Codex, of a failure", "wait", '{"status":{"a":{"errored":"boom"}},"timed_out":false}', []],
    ["to Codex, of a task", "spawn_agent", '{"task_name":"/root/a"}', []],
    ["to Claude Code, of a teammate", "Agent", "Spawned successfully.\nagent_id: a@b\nname: a", []],
    ["that quotes a tag", "Task", "It writes <result>x</result>.", ["It writes <result>x</result>."]],
    [
      "that names an agent",
      "Task",
      "agentId: a is the lock.\nIt is taken twice.",
      ["agentId: a is the lock.\nIt is taken twice."]
    ],
    ["to nobody", "Bash", "<result>Twice.</result>", []]
  ])("%s", (_, tool, result, reports) => {
    assert.deepStrictEqual(reportsIn(call(tool, {}), response(tool, { output: result })), reports)
  })

  it("of a script of Codex that is waited for is none", () => {
    const waited = response("wait", { output: "Script completed\nWall time 1 seconds\nOutput:\n\nok" })
    assert.deepStrictEqual(reportsIn(call("wait", { cell_id: "7" }), waited), [])
    assert.strictEqual(toolKind("wait", { cell_id: "7" }), "follow")
  })

  it.each(["agentId: a ", "agentId: a\n", "<usage>a</usage>", "<result>", "\n", " "])(
    "repeated %j takes linear time",
    (piece) => {
      const report = `${piece.repeat(100_000)}so.`
      assert.isTrue(reportsIn(call("Task", {}), response("Task", { output: report }))[0] === report)
      assert.lengthOf(notifiedReports(`<task-notification>${report}`), 0)
    }
  )

  it.each<readonly [what: string, text: string, reports: ReadonlyArray<string>]>([
    [
      "Codex of 2026",
      "Message Type: FINAL_ANSWER\nTask name: /root/a\nSender: /root/a\nPayload:\nTwice.\nIn a.ts.",
      ["Twice.\nIn a.ts."]
    ],
    ["Codex of 2026 of a task", "Message Type: NEW_TASK\nTask name: /root/a\nPayload:\nLook.", []],
    [
      "Claude Code",
      "<task-notification>\n<task-id>a1</task-id>\n<status>completed</status>\n<result>Twice.</result>\n</task-notification>",
      ["Twice."]
    ],
    [
      "Codex, of a review",
      "<user_action>\n  <action>review</action>\n  <results>\n  [P1] It is taken twice.\n  </results>\n</user_action>",
      ["[P1] It is taken twice."]
    ],
    ["Claude Code, of a command", "<task-notification>\n<summary>exit code 0</summary>\n</task-notification>", []],
    [
      "Codex",
      '<subagent_notification>\n{"agent_id":"a","status":{"completed":"Twice."}}\n</subagent_notification>',
      ["Twice."]
    ],
    ["no agent", "<result>Twice.</result>", []]
  ])("in a message of %s", (_, text, reports) => assert.deepStrictEqual(notifiedReports(text), reports))
})
