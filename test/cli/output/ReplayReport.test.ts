import { describe as text } from "../../../src/cli/output/ReplayReport.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe("the replay report", () => {
  const failing = (turn: number) =>
    ({
      turn,
      status: "FAILED",
      trigger: "guard",
      message: null,
      before: 9_000 + turn,
      after: 9_000 + turn,
      request: 1,
      figures: null
    }) as const

  const shown = text({
    file: "talk\u001b.jsonl",
    format: "claude",
    messages: 1_234,
    window: 8_000,
    threshold: 0.5,
    model: "claude-opus-4-5",
    prices: "built in",
    strategies: [
      {
        strategy: "gemini",
        trigger: 4_000,
        turns: 30,
        requests: 2,
        refused: [6, 7, 8, 12],
        largest: 7_000,
        over: 0,
        sent: 10_000,
        prefix: 2_500,
        stable: { part: 2_500, whole: 3_000, least: 2_500 / 3_000 },
        cost: 1.5,
        statuses: { COMPRESSED: 1, FAILED: 3 },
        rescued: 1,
        inVain: 2,
        compressions: [
          failing(6),
          failing(7),
          failing(8),
          {
            turn: 9,
            status: "COMPRESSED",
            trigger: "guard",
            message: null,
            before: 9_500,
            after: 2_000,
            request: 1,
            figures: { actionsGrounded: { part: 1, whole: 4 }, actionsReachable: { part: 3, whole: 4 } }
          }
        ],
        figures: {
          actionsGrounded: { part: 1, whole: 4 },
          actionsReachable: { part: 3, whole: 4 },
          factsKept: { part: 2, whole: 8 },
          factsReachable: { part: 7, whole: 8 }
        },
        sizes: [
          { tokens: 3_000, prefix: 0 },
          { tokens: 7_000, prefix: 2_500 }
        ],
        milliseconds: 12
      }
    ]
  })

  it("has a timeline and a table, groups equal failures, and shows refused turns as ranges", () =>
    assert.strictEqual(
      shown,
      `talk\\u{1b}.jsonl (claude, 1,234 messages) in a window of 8,000 tokens, compressed at 4,000

Figures
  figure                                gemini
  requests                                   2
    larger than the window                   0
    refused before sending                   4
  compressed at                          4,000
  largest request                        7,000
  tokens sent in total                  10,000
    average request                      5,000
    same as in the request before         25 %
  unchanged between compressions          83 %
    lowest of any request                 83 %
  cost                                   $1.50
  compressions                               4
    COMPRESSED                               1
    FAILED                                   3
    made to fit                              1
    without progress                         2
  tool calls that need earlier content       4
    in the context                        25 %
    or there after one recall             75 %
  names used again after a compression       8
    in the context                        25 %
    or there after one recall             88 %
  Actions: the percentage of the agent's next tool calls whose names are in the context. Facts: the
  same for all that the agent wrote.
  cost: claude-opus-4-5, built in; a cache serves what a request shares with the one before.

gemini
  ▄█
  2 requests, first to last; the largest has 7,000 tokens

  Compressions
  request       before  after  actions  with one recall  facts  status
  6–8      9,006–9,008      –        –                –      –  FAILED, did not fit, 3 times
  9              9,500  2,000     25 %             75 %      –  COMPRESSED, made to fit
  refused, too large even after compression: request 6–8, 12`
    ))
})
