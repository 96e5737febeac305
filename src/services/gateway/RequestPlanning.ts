import { Effect, Metric } from "effect"
import { compactedBy } from "../../domain/gateway/ClientCompaction.ts"
import { type CompressedView, type SentMessage, sentMessages } from "../../domain/gateway/CompressedView.ts"
import { requestLimit } from "../../domain/gateway/GatewayLimits.ts"
import { beginningsOf } from "../../domain/gateway/MessageChain.ts"
import { recallDeclaration } from "../../domain/gateway/RecallDeclaration.ts"
import { headOf, readBody, type RequestBody, withMessages as bodyWith } from "../../domain/gateway/RequestBody.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import type { Compression } from "../compression/Compression.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import type { ConversationMemory } from "./ConversationMemory.ts"
import { clientCompactions } from "./GatewayMetrics.ts"
import type { GatewayError, GatewayOptions, GatewayPlan, GatewayRequest, Preparable } from "./GatewayPlan.ts"
import type { MessageCounts } from "./MessageCounts.ts"
import { prepareAt, type SnapshotPreparation } from "./SnapshotPreparation.ts"
import { type MadeView, makeView, sentTokens, viewTokens } from "./ViewMaking.ts"

/** What goes out for a request. */

/** Requests below this size are never compressed, nor part of a conversation that was. */
const minBytes = 4_000
/** Share of the window by which a request grows between two compressions at least, as long as it fits at all. */
const minGrowth = 0.1
const maxFill = 0.95
/** A request that the provider refused as too long has this many times the estimated tokens at least. */
const refusedFactor = 1.3
/** Share of the threshold that a request has at most with what was prepared for it; else it is compressed anew. */
const maxPrepared = 0.85
/** How much of the names of conversations that were seen is kept. */
const maxBegun = 10_000
/** Beginnings at which a compression found nothing to do that are remembered. */
const maxInVain = 100_000

/** Decides over what is known of conversations. */
export const makePlanning = Effect.fnUntraced(function* (
  options: GatewayOptions,
  memory: ConversationMemory,
  counts: MessageCounts,
  prepared: SnapshotPreparation
) {
  const context = yield* Effect.context<Compression | TempStore | TokenCounter>()
  const provide = Effect.provideContext(context)
  /** Tokens at which a compression found nothing to do, by the beginning that it went on from. */
  const inVain = new BoundedMap<string, number>(maxInVain)
  const begun = new BoundedMap<string, true>(maxBegun)

  /** Counts a conversation that begins with a summary of the client's own, once. */
  const noteCompaction = Effect.fnUntraced(function* ({ messages }: RequestBody, names: ReadonlyArray<string>) {
    const name = names[Math.min(names.length - 1, 1)] ?? ""
    if (begun.get(name) !== undefined) return
    begun.set(name, true)
    const client = compactedBy(messages)
    if (client !== undefined) yield* Metric.update(Metric.withAttributes(clientCompactions, { client }), 1)
  })

  const plan = Effect.fn("Gateway.plan")(function* (
    request: GatewayRequest
  ): Effect.fn.Return<GatewayPlan, GatewayError> {
    const { isTooLong = false, owner, route, session = "", text } = request
    const body = text.length < minBytes ? undefined : readBody(route, text)
    if (body === undefined) return { _tag: "Unchanged", model: route.model ?? "", tokens: undefined }
    const { dialect, messages, model } = body
    const factor = Math.max(counts.factor(model), isTooLong ? refusedFactor : 0)
    const limit = Math.floor(requestLimit(options, model, body.maxAnswer) / factor)
    const trigger = isTooLong ? 0 : limit * options.threshold
    const isSmall = text.length < trigger
    const known = yield* memory.knownOf(owner, !isSmall)
    if (isSmall && known.views.size === 0) return { _tag: "Unchanged", model, tokens: undefined }
    const names = beginningsOf(`${dialect} ${session}`, messages, memory.hash)
    yield* noteCompaction(body, names)
    let view = yield* memory.deepest(owner, names)
    if (view === undefined && isSmall) return { _tag: "Unchanged", model, tokens: undefined }
    const headTokens = counts.head(headOf(body))
    const before =
      headTokens + messages.reduce((sum, json, at) => sum + counts.message(dialect, json, names[at + 1]), 0)
    if (view === undefined && (before < trigger * prepareAt || route.asks === "count")) {
      return { _tag: "Unchanged", model, tokens: before }
    }
    const from = view?.messages ?? 0
    let rest = sentMessages(dialect, messages, from, yield* memory.hiddenOf(owner, names, from))
    const declaration =
      body.canRecall && options.recall !== false && route.asks === "answer"
        ? recallDeclaration(dialect, body.tools === undefined ? "" : text.slice(body.tools.start, body.tools.end))
        : undefined
    const overhead = headTokens + (declaration === undefined ? 0 : counts.head(declaration.inDialect))
    const tokensWith = (view: CompressedView | undefined, rest: ReadonlyArray<SentMessage>) =>
      overhead + viewTokens(counts, dialect, view) + sentTokens(counts, body, names, rest)
    let tokens = tokensWith(view, rest)
    const place = `${owner}/${view?.name ?? names[1] ?? ""}`
    // A head that fills the window must not lead to a compression in every turn.
    const grown = Math.min(maxFill * limit, (view?.tokens.after ?? 0) + minGrowth * limit)
    const due = isTooLong ? 0 : Math.max(trigger, grown, inVain.get(place) ?? 0)
    const next: Preparable = { owner, place, body, names, view, rest, declaration, overhead, limit, tokens }
    let made: MadeView | undefined
    if (tokens >= due && route.asks === "answer") {
      const sentAfter = Effect.fnUntraced(function* ({ messages: from }: CompressedView) {
        return sentMessages(dialect, messages, from, yield* memory.hiddenOf(owner, names, from))
      })
      const room = maxPrepared * limit * options.threshold
      made = yield* prepared.take(next)
      if (made !== undefined && tokensWith(made.view, yield* sentAfter(made.view)) > room) made = undefined
      made ??= yield* provide(makeView(memory, options.threshold, next, "code"))
      if (made === undefined) inVain.set(place, tokens * (1 + minGrowth))
      else {
        rest = yield* sentAfter(made.view)
        const after = tokensWith(made.view, rest)
        view = { ...made.view, tokens: { before: Math.round(tokens), after: Math.round(after) } }
        tokens = after
        yield* memory.addView(owner, view, made.original, made.log)
      }
    }
    const isNear = made === undefined && tokens >= prepareAt * due && route.asks === "answer"
    const soon = isNear ? { next } : {}
    if (view === undefined) return { _tag: "Unchanged", model, tokens: before, ...soon }
    const all = [...view.sent, ...rest.map(({ json }) => json)]
    return {
      _tag: "Changed",
      model,
      text: bodyWith(body, all, declaration),
      sent: { owner, body, names, view, rest, messages: all, declaration, limit, tokens },
      before,
      after: tokens,
      isNew: made !== undefined,
      by: made?.by ?? "code",
      ...soon
    }
  })

  return { plan }
})
