import { assert, describe, it } from "@effect/vitest"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { conversationBreaks, turnCosts } from "../../../src/domain/evaluation/TurnCosts.ts"
import type { Usage } from "../../../src/domain/tokens/Tokens.ts"
import { conversationOf, entry } from "../../cli/page/pages.ts"

const prices = { source: "test", table: { models: { m: { input: 10, output: 100, cacheRead: 1, cacheWrite: 10 } } } }
const usage = (prompt: number, cached: number, cacheWrite: number): Usage => ({
  prompt,
  cached,
  cacheWrite,
  answer: 1_000,
  thoughts: 0
})

const minute = 60_000
const recorded = conversationOf([
  entry(1, user(text("the environment")), [40], { author: "environment" }),
  entry(2, user(text("  Fix the\nparser")), [12]),
  entry(3, model(call("read", { path: "a" }, "1")), [30], { model: "m", at: 0, usage: usage(50_000, 0, 50_000) }),
  entry(4, user(response("read", { output: "x" }, "1")), [900]),
  entry(5, model(text("done")), [5], { model: "m", at: minute, usage: usage(60_000, 50_000, 10_000) }),
  entry(6, user(text("And now?")), [7]),
  entry(7, model(text("nothing")), [5], { model: "m", at: 20 * minute, usage: usage(70_000, 0, 70_000) })
])

describe("the cost of turns", () => {
  it("is that of the requests in them, by recorded use", () =>
    assert.deepStrictEqual(turnCosts(recorded, { prices }), [
      {
        turn: 1,
        entry: entryId(2),
        title: "Fix the parser",
        messages: 4,
        calls: 1,
        tokens: 947,
        requests: 2,
        sent: 110_000,
        cached: 50_000,
        answered: 2_000,
        cost: 0.5 + 0.1 + 0.05 + 0.1 + 0.1
      },
      {
        turn: 2,
        entry: entryId(6),
        title: "And now?",
        messages: 2,
        calls: 0,
        tokens: 12,
        requests: 1,
        sent: 70_000,
        cached: 0,
        answered: 1_000,
        cost: 0.8
      }
    ]))

  it("is estimated by the size of the view where nothing is recorded, and unknown without a price", () => {
    const talk = conversationOf([
      entry(1, model(text("hello")), [3]),
      entry(2, user(text("hi")), [10]),
      entry(3, model(text("yes")), [5])
    ])
    assert.deepStrictEqual(
      turnCosts(talk, { model: "other", prices }).map(({ cached, cost, sent, turn }) => [turn, sent, cached, cost]),
      [
        [0, 0, 0, null],
        [1, 13, 0, null]
      ]
    )
  })

  it("breaks of the cache are found in the recorded use, after a compaction by its name", () => {
    const causes = (laidAt: ReadonlyArray<number>) =>
      conversationBreaks(recorded, laidAt, { prices }).map(({ cause, request }) => [request, cause])
    assert.deepStrictEqual([causes([]), causes([6])], [[["e7", "pause"]], [["e7", "compaction"]]])
  })
})
