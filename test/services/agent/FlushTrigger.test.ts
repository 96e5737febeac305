import { assert, describe, it } from "@effect/vitest"
import { flushTokens, forcedLogBytes, isFlushDue, isSilentAnswer } from "../../../src/services/agent/MemoryFlush.ts"

describe("the memory flush", () => {
  it("openclaw: is due 4,000 tokens before the compression, or half of what there is (OpenClaw 2026.9)", () => {
    // A window of 32,768 with 8,192 in reserve.
    assert.strictEqual(flushTokens(24_576), 20_576)
    assert.strictEqual(flushTokens(6_000), 3_000)
    const due = (tokens: number) => isFlushDue({ tokens, trigger: 24_576, logBytes: 0 })
    assert.deepStrictEqual([due(20_575), due(20_576), due(30_000)], [false, true, true])
  })

  it("openclaw: is forced by 2 MB of log (OpenClaw 2026.9; ours: since the last flush, because the log never shrinks)", () => {
    const due = (logBytes: number) => isFlushDue({ tokens: 0, trigger: 100_000, logBytes })
    assert.deepStrictEqual([due(forcedLogBytes - 1), due(2_097_152)], [false, true])
  })

  it("openclaw: an answer that means nothing is NO_REPLY or no words (OpenClaw 2026.9)", () =>
    assert.deepStrictEqual(
      ["NO_REPLY", " NO_REPLY\n", "", "NO_REPLY NO_REPLY", "Saved: NO_REPLY"].map(isSilentAnswer),
      [true, true, true, true, false]
    ))
})
