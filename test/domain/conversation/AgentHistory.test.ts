import { assert, describe, it } from "@effect/vitest"
import { add, empty, maxBlockChars, maxHistoryChars } from "../../../src/domain/conversation/AgentHistory.ts"

describe("the history of a subagent", () => {
  it("shortens a block to 4,000 characters and counts the rest", () => {
    const [block] = add(empty, "agent", "x".repeat(maxBlockChars + 7)).blocks
    assert.strictEqual(block?.text, `${"x".repeat(maxBlockChars)}\n(7 more characters)`)
  })

  it("splits no character and no secret at a cut", () => {
    const [block] = add(empty, "agent", `${"x".repeat(maxBlockChars - 1)}😀`).blocks
    assert.isTrue(block?.text.isWellFormed())
    const [secret] = add(empty, "agent", `${"x".repeat(maxBlockChars - 12)} password=hunter2`).blocks
    assert.notInclude(secret?.text ?? "", "hunt")
  })

  it("bounds the whole: drops the oldest, keeps the first and the newest", () => {
    let history = add(empty, "you", "the task")
    for (let n = 0; n < 200; n += 1) history = add(history, "agent", `${n} ${"x".repeat(1_000)}`)
    assert.isAtMost(history.length, maxHistoryChars)
    assert.strictEqual(
      history.length,
      history.blocks.reduce((sum, { text }) => sum + text.length, 0)
    )
    assert.strictEqual(history.blocks[0]?.text, "the task")
    assert.isTrue(history.blocks.at(-1)?.text.startsWith("199 "))
    assert.strictEqual(history.dropped + history.blocks.length, 201)
  })
})
