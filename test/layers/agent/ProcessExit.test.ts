import { assert, describe, it } from "@effect/vitest"
import { exitText, lastLines } from "../../../src/layers/agent/ProcessAgent.ts"

describe("the end of an agent's process", () => {
  it.each([
    [1, "p ended with exit status 1"],
    [137, "p ended with exit status 137 (it was killed, possibly because memory ran out)"]
  ])("exit status %d has a sentence", (code, sentence) => assert.strictEqual(exitText("p", code), sentence))

  it("has five lines of last words at most", () => {
    assert.strictEqual(lastLines(" \n"), "")
    assert.strictEqual(lastLines("1\n2\n3\n4\n5\n6\n"), "; the last lines of its error output: 2\n3\n4\n5\n6")
  })
})
