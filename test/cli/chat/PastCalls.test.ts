import { lastTurns, pastCallText } from "../../../src/cli/chat/PastCalls.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe("a call of an earlier turn", () => {
  it.effect.each([
    ["Bash", { command: "npm test\n", description: "Run the tests" }, "✓ Bash npm test"],
    ["Read", { file_path: "/p/mix.exs" }, "✓ Read /p/mix.exs"],
    ["unknown", {}, "✓ unknown"]
  ] as const)("of another agent's tool %s names what it worked on", function* ([name, args, line]) {
    const call = { name, args }
    const response = { functionResponse: { name, response: { output: "done" } } }
    assert.deepStrictEqual(yield* pastCallText([], { call, response }), { isDone: true, line })
  })

  it.effect.each([
    ["run_shell_command", "Command: false\nStdout: (empty)\nExit Code: 1\nSignal: (none)", "✗ Run false · exit code 1"],
    [
      "shell_command",
      "Exit code: 2\nWall time: 0.1 seconds\nOutput:\nno such file",
      "✗ shell_command false · exit code 2"
    ]
  ] as const)("whose command failed is no success: %s", function* ([name, output, line]) {
    const response = { functionResponse: { name, response: { output } } }
    const call = { name, args: { command: "false" } }
    assert.deepStrictEqual(yield* pastCallText([], { call, response }), { isDone: false, line })
  })
})

describe("the end of a resumed conversation", () => {
  const user = (text: string) => ({ role: "user" as const, parts: [{ text }] })
  const model = (text: string) => ({ role: "model" as const, parts: [{ text }] })

  it("is its last two turns", () => {
    const all = [user("1"), model("a"), user("2"), model("b"), user("3"), model("c")]
    assert.deepStrictEqual(lastTurns(all), { shown: all.slice(2), skipped: 0 })
  })

  it("has no more than 30 messages of a long turn", () => {
    const all = [user("1"), ...Array.from({ length: 40 }, (_, at) => model(`${at}`))]
    assert.deepStrictEqual(lastTurns(all), { shown: [...all.slice(0, 1), ...all.slice(11)], skipped: 10 })
    assert.deepStrictEqual(lastTurns(all.slice(1)), { shown: all.slice(11), skipped: 10 })
  })
})
