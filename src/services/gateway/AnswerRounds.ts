/** The rounds of one answer: the provider is asked again until its answer makes no call of the gateway's tool. */

import { Effect, Metric } from "effect"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { isJson } from "../../domain/text/JsonObject.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import { estimateText } from "../../domain/tokens/Tokens.ts"
import type { VisibleBlock } from "../../domain/wire/AnswerForm.ts"
import type { HiddenRound } from "../../domain/wire/HiddenExchange.ts"
import type { Ending, ReadAnswer, RecallCall } from "../../domain/wire/RelayedAnswer.ts"
import type { Gateway } from "./Gateway.ts"
import { recallsAnswered } from "./GatewayMetrics.ts"
import type { SentView } from "./GatewayPlan.ts"

/** The requests made so far for one answer to the client. */
export interface Rounds {
  readonly rounds: ReadonlyArray<HiddenRound>
  /** Tokens that the requests grew by. */
  readonly tokens: number
}

/** The state before the first request. */
export const noRounds: Rounds = { rounds: [], tokens: 0 }

/** What follows an answer of the provider. */
export type NextStep =
  | { readonly _tag: "End"; readonly ending: Ending }
  /** Another request for the same answer to the client. */
  | {
      readonly _tag: "Ask"
      readonly text: string
      readonly rounds: Rounds
      /** The text for the client about the calls. Empty when calls are hidden. */
      readonly note: string
    }

/** Maximum number of requests for one answer. A model that calls the tool more often is stopped. */
const maxRounds = 8

/** The share of the free window that one round may fill. */
const roomShare = 0.5

/** Describes calls for the client, one per line. */
const noteOf = (calls: ReadonlyArray<RecallCall>): string =>
  calls
    .map(({ args }) => {
      const { grep, handle } = isJson(args) ? args : {}
      const what = [handle, grep]
        .filter((each) => typeof each === "string" && each !== "")
        .map((each) => shortLine(String(each), maxNoteChars))
      return `[recalled ${what.join(" ")}]\n`
    })
    .join("")

const maxNoteChars = 80

/**
 * Answers the calls of the gateway's tool in an answer. The hidden part is stored before the answer ends for the
 * client.
 */
export const nextStep = Effect.fn("AnswerRounds.nextStep")(function* (
  gateway: Gateway["Service"],
  sent: SentView,
  { rounds, tokens }: Rounds,
  answer: ReadAnswer
): Effect.fn.Return<NextStep> {
  const { calls, hasOthers, visible } = answer
  const { isStored } = sent.body
  if (isStored !== undefined) yield* gateway.keep(sent.owner, answer, isStored)
  const isOver = rounds.length >= maxRounds
  if (calls.length === 0 || (isOver && !hasOthers)) {
    yield* gateway.remember(sent, { rounds })
    return { _tag: "End", ending: calls.length === 0 ? "as sent" : "stopped" }
  }
  const room = Math.floor((sent.limit - sent.tokens.total - tokens) * roomShare)
  const recalled = yield* gateway.recall(sent, calls, room)
  yield* Metric.update(recallsAnswered, calls.length)
  const results = wire[sent.body.dialect].answers.results(calls, recalled).map((message) => JSON.stringify(message))
  if (hasOthers) {
    yield* gateway.remember(sent, { rounds, beside: { calls: calls.map(({ json }) => json), results } })
    return { _tag: "End", ending: "as sent" }
  }
  const note = gateway.showsRecalls ? noteOf(calls) : ""
  const shown: ReadonlyArray<VisibleBlock> = note === "" ? visible : [...visible, { kind: "text", text: note }]
  const all = [...rounds, { sent: [...answer.sent, ...results], visible: shown }]
  const grown = [...answer.sent, ...results].reduce((sum, json) => sum + estimateText(json), tokens)
  return {
    _tag: "Ask",
    note,
    text: gateway.following(
      sent,
      all.flatMap((round) => round.sent)
    ),
    rounds: { rounds: all, tokens: grown }
  }
})
