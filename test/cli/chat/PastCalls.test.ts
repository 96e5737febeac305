import { pastCallText } from "../../../src/cli/chat/PastCalls.ts"
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
})
