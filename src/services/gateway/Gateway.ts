import { Context, Effect, Layer } from "effect"
import { withMessages } from "../../domain/gateway/RequestBody.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { cutPromptText } from "../../domain/tokens/CutPrompts.ts"
import { builtInPrices, type Prices } from "../../domain/tokens/Prices.ts"
import type { HiddenExchange } from "../../domain/wire/HiddenExchange.ts"
import type { ReadAnswer, RecallCall, RecalledContent } from "../../domain/wire/RelayedAnswer.ts"
import type { Compression } from "../compression/Compression.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { keepItems, knowsItems } from "./AnsweredItems.ts"
import { addHidden, makeConversationMemory } from "./ConversationMemory.ts"
import { orReported, unchangedRequest } from "./GatewayFailures.ts"
import type { AskUpstream, GatewayOptions, GatewayPlan, GatewayRequest, SentView } from "./GatewayPlan.ts"
import type { GatewayStore } from "./GatewayStore.ts"
import type { RequestTokens } from "./MessageCounts.ts"
import { recall } from "./RecallAnswers.ts"
import { plan, planningWith } from "./RequestPlanning.ts"
import { makeSnapshotPreparation } from "./SnapshotPreparation.ts"

/** Keeps the conversations of other programs within their windows. Its failures are reported, and stop no request. */
export class Gateway extends Context.Service<
  Gateway,
  {
    /** Decides what goes out for a request, and stores its compression, if it has one. */
    readonly plan: (request: GatewayRequest) => Effect.Effect<GatewayPlan>
    /**
     * Starts to compress the conversation in the background, if the request was near the threshold. `ask` is used if
     * the operator lets models write snapshots.
     */
    readonly prepare: (plan: GatewayPlan, ask: AskUpstream) => Effect.Effect<void>
    /** Answers calls of the gateway's tool. `room` is the maximum number of tokens of all answers. */
    readonly recall: (
      sent: SentView,
      calls: ReadonlyArray<RecallCall>,
      room: number
    ) => Effect.Effect<ReadonlyArray<RecalledContent>>
    /** Writes the next request: the same, with the messages since. */
    readonly following: (sent: SentView, since: ReadonlyArray<string>) => string
    /** Stores the part of an answer that the client did not see, or that it has none. */
    readonly remember: (sent: SentView, exchange: HiddenExchange) => Effect.Effect<void>
    /** Whether a request of the Responses API refers only to items of answers that this owner got through here. */
    readonly knowsItems: (owner: string, text: string) => Effect.Effect<boolean>
    /** Keeps the items of an answer, to which later requests may refer. `isStored`: the provider stores them. */
    readonly keep: (owner: string, answer: ReadAnswer, isStored: boolean) => Effect.Effect<void>
    /** The prices by which the cost of answers is counted. */
    readonly prices: Prices
    /** Whether answers mention calls of the gateway's tool. */
    readonly showsRecalls: boolean
    /**
     * Learns from the provider's count of a request how accurate the estimates for its model are. Says so once when the
     * server seems to cut the prompts of a model.
     */
    readonly learn: (model: string, estimated: RequestTokens, counted: number) => Effect.Effect<void>
  }
>()("palimpsest/services/gateway/Gateway") {
  /** Provides the gateway. Its memory is its own; what outlives the process is in the store. */
  static readonly layer = (
    options: GatewayOptions
  ): Layer.Layer<Gateway, never, Compression | GatewayStore | TempStore | TokenCounter> =>
    Layer.effect(Gateway, make(options))
}

/** What the model is told where a recall fails in the gateway. */
const unavailable: RecalledContent = {
  text: "the removed content is temporarily unavailable",
  media: [],
  isError: true
}

const make = Effect.fnUntraced(function* (options: GatewayOptions) {
  const memory = yield* makeConversationMemory
  const { counts } = memory
  const prepared = yield* makeSnapshotPreparation(options, memory)
  const planning = planningWith({ options, memory, prepared })
  const withServices = Effect.provideContext(yield* Effect.context<Compression | TempStore | TokenCounter>())
  return {
    plan: (request) => {
      const unchanged: GatewayPlan = { _tag: "Unchanged", model: request.route.model ?? "", tokens: undefined }
      return orReported(unchangedRequest, unchanged)(withServices(plan(planning, request)))
    },
    prepare: ({ next }, ask) => (next === undefined ? Effect.void : withServices(prepared.prepare(next, ask))),
    recall: (sent, calls, room) =>
      withServices(recall(memory, sent, calls, room)).pipe(
        orReported(
          "the model is told that nothing can be recalled",
          calls.map(() => unavailable)
        )
      ),
    knowsItems: (owner, text) =>
      orReported("requests that refer to items are refused", false)(knowsItems(memory, owner, text)),
    keep: (owner, { calls, sent }, isStored) => {
      const own = new Set(calls.map(({ json }) => json))
      return keepItems(
        memory,
        owner,
        sent.filter((item) => !own.has(item)),
        isStored
      ).pipe(orReported("references to this answer are not known", undefined))
    },
    prices: options.prices ?? builtInPrices,
    showsRecalls: options.showRecalls === true,
    following: ({ body, declaration, messages }, since) => withMessages(body, [...messages, ...since], declaration),
    learn: (model, estimated, counted) =>
      Effect.flatMap(Work.run(estimated.features()), (features) => {
        const cut = counts.learn(model, features, counted)
        return cut?.isNew === true ? Effect.logWarning(`${model}: ${cutPromptText(cut)}`) : Effect.void
      }),
    remember: Effect.fn("Gateway.remember")(
      function* ({ names, owner }, exchange) {
        const name = names.at(-1)
        if (name !== undefined) yield* addHidden(memory, owner, name, exchange)
        // The provider's cache misses later, but the answer is complete.
      },
      orReported("later requests go without this recall", undefined)
    )
  } satisfies Gateway["Service"]
})
