import { assert, describe, it } from "@effect/vitest"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { activityOf, RunProgress } from "../../../src/services/agent/LocalAgentProgress.ts"

describe("the progress of an agent", () => {
  const tokens = TokenCount.make(1)
  const turn: ChatEvent = { _tag: "ModelInfo", model: "m", limit: tokens }
  const said = (text: string): ChatEvent => ({ _tag: "Content", text })
  const done: ChatEvent = { _tag: "Finished", reason: "STOP", usage: null, answer: entryId(1), tokens, limit: tokens }
  const retry: ChatEvent = { _tag: "Retry", attempt: 2, delay: 1, reason: "r", message: "m" }
  const limit: ChatEvent = { _tag: "LimitReached", limit: "turns", message: "m" }
  const time: ChatEvent = { _tag: "LimitReached", limit: "time", message: "m" }
  const loop = (halted: boolean): ChatEvent => ({ _tag: "LoopDetected", kind: "calls", detail: "d", halted })
  const stopped: ChatEvent = { _tag: "HookStopped", message: "m", refused: true }
  const failed = "ERROR_NO_COMPLETE_TASK_CALL"
  it.each<
    readonly [
      events: ReadonlyArray<ChatEvent>,
      news: string,
      soFar: string,
      turns: number,
      reason: string,
      hasGrace: boolean
    ]
  >([
    [[], "", "", 0, failed, true],
    [[turn, said(" a"), said("b "), done], "...+", "ab", 1, failed, true],
    [[turn, said(" "), done], "...", "", 1, failed, true],
    [[turn, said("a"), done, turn, said(" ")], "..+..", "a", 2, failed, true],
    [[turn, said("a"), retry, said("b"), done], "....+", "b", 1, failed, true],
    [[turn, said("a"), limit], "...", "a", 1, "MAX_TURNS", true],
    [[turn, time], "..", "", 1, "TIMEOUT", true],
    [[turn, loop(false)], "..", "", 1, failed, true],
    [[turn, loop(true)], "..", "", 1, "ERROR", true],
    [[turn, { _tag: "UserCancelled" }], "..", "", 1, "ABORTED", false],
    [[turn, stopped], "..", "", 1, "ABORTED", false]
  ])("after %j", (events, news, soFar, turns, reason, hasGrace) => {
    const progress = new RunProgress()
    progress.begin({ turns: 3, time: 60_000 })
    const told = events.map((event) => (progress.push(event) ? "+" : ".")).join("")
    const { end } = progress
    assert.deepStrictEqual(
      [told, progress.soFar, progress.turns, end.reason, end.hasGrace],
      [news, soFar, turns, reason, hasGrace]
    )
    progress.begin({})
    assert.deepStrictEqual([progress.end.reason, progress.turns], [failed, turns])
  })

  it("is shown by what its events are", () => {
    const thought = (subject: string): ChatEvent => ({ _tag: "Thought", subject, description: "why" })
    const shown = [turn, thought("s"), thought(""), limit, loop(true), stopped, retry].map(activityOf)
    assert.deepStrictEqual(shown, [
      undefined,
      { _tag: "Thought", text: "s" },
      { _tag: "Thought", text: "why" },
      { _tag: "Failed", message: "m" },
      { _tag: "Failed", message: "d" },
      { _tag: "Failed", message: "stopped by a hook: m" },
      undefined
    ])
  })
})
