import { Effect } from "effect"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import type { HiddenExchange } from "../../../src/domain/wire/HiddenExchange.ts"
import type { ReadAnswer } from "../../../src/domain/wire/RelayedAnswer.ts"
import { nextStep, type Rounds } from "../../../src/services/gateway/AnswerRounds.ts"
import type { Gateway } from "../../../src/services/gateway/Gateway.ts"
import type { SentView } from "../../../src/services/gateway/GatewayPlan.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const sent = {
  owner: "me",
  body: { dialect: "chat" },
  limit: 1_000,
  tokens: { total: 300 }
} as unknown as SentView
const call = (id: string, args: unknown) => ({ id, name: "palimpsest_recall", args, json: `{"id":"${id}"}` })
const calls = [call("r1", { handle: "h_a", grep: "x".repeat(90) }), call("r2", "no object")]
const answer: ReadAnswer = {
  calls,
  hasOthers: false,
  sent: ["said"],
  visible: [{ kind: "text", text: "Hm." }],
  usage: {}
}
const result = (id: string, content: string) => `{"role":"tool","tool_call_id":"${id}","content":"${content}"}`
const results = [result("r1", "one"), result("r2", "two")]
const round = (said: string) => ({ sent: [said], visible: [] })
const rounds = (count: number): Rounds => ({
  rounds: Array.from({ length: count }, (_, at) => round(`${at}`)),
  tokens: 100
})

/** A step, what the gateway was asked for. */
const stepped = Effect.fnUntraced(function* (given: {
  readonly answer?: Partial<ReadAnswer>
  readonly rounds?: Rounds
  readonly isShown?: boolean
  readonly isStored?: boolean
}) {
  const asked: Array<unknown> = []
  const gateway = {
    showsRecalls: given.isShown === true,
    keep: (owner: string, kept: ReadAnswer) => Effect.sync(() => asked.push([owner, kept.sent])),
    remember: (_: SentView, exchange: HiddenExchange) => Effect.sync(() => asked.push(exchange)),
    recall: (_: SentView, all: ReadonlyArray<unknown>, room: number) =>
      Effect.andThen(
        Effect.sync(() => asked.push({ calls: all.length, room })),
        Effect.succeed([{ text: "one" }, { text: "two" }])
      ),
    following: (_: SentView, since: ReadonlyArray<string>) => since.join(" ")
  } as unknown as Gateway["Service"]
  const from: SentView = { ...sent, body: { ...sent.body, isStored: given.isStored } }
  const step = yield* nextStep(gateway, from, given.rounds ?? rounds(0), { ...answer, ...given.answer })
  return { step, asked }
})

const grown = (all: ReadonlyArray<string>, before: number) =>
  all.reduce((sum, json) => sum + estimateText(json), before)
const end = (ending: string) => ({ _tag: "End", ending })
const beside = { calls: calls.map(({ json }) => json), results }

describe("after an answer of the provider", () => {
  const note = `[recalled h_a ${"x".repeat(80)}…]\n[recalled ]\n`
  const next = (all: ReadonlyArray<string>, more: object = {}) => ({
    _tag: "Ask",
    note: "",
    text: ["said", ...all].join(" "),
    rounds: { rounds: [{ sent: ["said", ...all], visible: answer.visible }], tokens: grown(["said", ...all], 100) },
    ...more
  })
  it.effect.each<
    readonly [rule: string, given: Parameters<typeof stepped>[0], step: object, asked: ReadonlyArray<unknown>]
  >([
    [
      "without calls the exchange is stored",
      { answer: { calls: [] }, rounds: rounds(2) },
      end("as sent"),
      [{ rounds: rounds(2).rounds }]
    ],
    [
      "an answer that the provider stores is kept",
      { answer: { calls: [] }, isStored: true },
      end("as sent"),
      [["me", ["said"]], { rounds: [] }]
    ],
    ["calls are answered", { rounds: { ...rounds(0), tokens: 100 } }, next(results), [{ calls: 2, room: 300 }]],
    [
      "calls are shown",
      { isShown: true },
      next(results, {
        note,
        rounds: {
          ...next(results).rounds,
          rounds: [{ sent: ["said", ...results], visible: [...answer.visible, { kind: "text", text: note }] }]
        }
      }),
      [{ calls: 2, room: 300 }]
    ],
    [
      "the client's own calls end it",
      { answer: { hasOthers: true }, rounds: rounds(8) },
      end("as sent"),
      [
        { calls: 2, room: 300 },
        { rounds: rounds(8).rounds, beside }
      ]
    ],
    ["the eighth round is the last", { rounds: rounds(8) }, end("stopped"), [{ rounds: rounds(8).rounds }]]
  ])("%s", function* ([, given, step, asked]) {
    assert.deepStrictEqual<unknown>(yield* stepped(given), { step, asked })
  })

  it.effect("seven rounds are followed by another", function* () {
    const { step } = yield* stepped({ rounds: rounds(7) })
    assert.strictEqual(step._tag === "Ask" ? step.rounds.rounds.length : 0, 8)
  })
})
