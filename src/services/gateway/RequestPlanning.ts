import { Clock, Effect, Metric } from "effect"
import { patchOf } from "../../domain/compression/Compression.ts"
import { entries } from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { compactedBy } from "../../domain/gateway/ClientCompaction.ts"
import { type CompressedView, type SentMessage, sentMessages } from "../../domain/gateway/CompressedView.ts"
import { gatewayPolicy, requestLimit } from "../../domain/gateway/GatewayLimits.ts"
import { beginningsOf } from "../../domain/gateway/MessageChain.ts"
import { recallDeclaration } from "../../domain/gateway/RecallDeclaration.ts"
import { headOf, readBody, type RequestBody, withMessages as bodyWith } from "../../domain/gateway/RequestBody.ts"
import { Compression } from "../compression/Compression.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { BoundedMap } from "./BoundedMap.ts"
import {
  addedSince,
  changedEnd,
  cutAt,
  isWithinGroup,
  viewMessages,
  withMessages,
  withPatch
} from "./ConversationLog.ts"
import { type ConversationMemory, isOwnTool } from "./ConversationMemory.ts"
import { clientCompactions } from "./GatewayMetrics.ts"
import type { GatewayError, GatewayOptions, GatewayPlan, GatewayRequest } from "./GatewayPlan.ts"
import type { MessageCounts } from "./MessageCounts.ts"

/** What goes out for a request. */

/** Requests below this size are never compressed, nor part of a conversation that was. */
const minBytes = 4_000
/** Share of the window by which a request grows between two compressions at least, as long as it fits at all. */
const minGrowth = 0.1
const maxFill = 0.95
/** A request that the provider refused as too long has this many times the estimated tokens at least. */
const refusedFactor = 1.3
/** How much of the names of conversations that were seen is kept. */
const maxBegun = 10_000
/** Beginnings at which a compression found nothing to do that are remembered. */
const maxInVain = 100_000

/** Decides over what is known of conversations. */
export const makePlanning = Effect.fnUntraced(function* (
  options: GatewayOptions,
  memory: ConversationMemory,
  counts: MessageCounts
) {
  const context = yield* Effect.context<Compression | TempStore | TokenCounter>()
  const compression = yield* Compression
  const provide = Effect.provideContext(context)
  /** Tokens at which a compression found nothing to do, by the beginning that it went on from. */
  const inVain = new BoundedMap<number>(maxInVain)
  const begun = new BoundedMap<true>(maxBegun)

  /** Compresses; undefined where nothing could be made smaller. */
  const compress = Effect.fnUntraced(function* (
    { owner }: GatewayRequest,
    body: RequestBody,
    names: ReadonlyArray<string>,
    parent: CompressedView | undefined,
    rest: ReadonlyArray<SentMessage>,
    size: { readonly overhead: number; readonly limit: number; readonly before: number }
  ) {
    const base = yield* memory.logOf(owner, body, names, parent)
    const whole = yield* withMessages(base, rest, isOwnTool)
    const { dropped, outcome } = yield* compression.compress({
      conversation: whole.conversation,
      policy: gatewayPolicy(size.limit, options.threshold, size.overhead),
      forced: true,
      mustFit: true,
      memory: freshMemory,
      held: whole.handles,
      family: body.model
    })
    const patch = patchOf(outcome)
    if (patch === undefined) return undefined
    const added = addedSince(whole, base)
    let end = Math.max(1, changedEnd(whole, patch, added))
    while (end < rest.length && (rest[end - 1]?.isEnd !== true || isWithinGroup(whole, added, end))) end += 1
    const messages = rest[end - 1]?.upTo
    const name = messages === undefined ? undefined : names[messages]
    if (messages === undefined || name === undefined) return undefined
    const begun = cutAt(whole, base, rest, end)
    const log = withPatch(begun, { patch, dropped: dropped ?? null })
    const sent = viewMessages(log)
    const after = size.overhead + counts.messages(body.dialect, [...sent, ...rest.slice(end).map(({ json }) => json)])
    const view: CompressedView = {
      version: 1,
      name,
      messages,
      parent: parent?.name ?? null,
      sent,
      patch,
      dropped: dropped ?? null,
      handles: entries(begun.conversation).flatMap(({ handles, id }) => (base.sources.has(id) ? [] : handles)),
      model: body.model,
      at: yield* Clock.currentTimeMillis,
      tokens: { before: Math.round(size.before), after: Math.round(after) }
    }
    const own = rest.slice(0, end).map(({ json }) => json)
    yield* memory.addView(owner, view, `[${own.join()}]`, log)
    return { view, rest: rest.slice(end) }
  })

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
    if (view === undefined && (before < trigger || route.asks === "count")) {
      return { _tag: "Unchanged", model, tokens: before }
    }
    const from = view?.messages ?? 0
    let rest = sentMessages(dialect, messages, from, yield* memory.hiddenOf(owner, names, from))
    const declaration =
      body.canRecall && options.recall !== false && route.asks === "answer"
        ? recallDeclaration(dialect, body.tools === undefined ? "" : text.slice(body.tools.start, body.tools.end))
        : undefined
    const overhead = headTokens + (declaration === undefined ? 0 : counts.head(declaration.inDialect))
    const tokensOf = () => overhead + counts.messages(dialect, [...(view?.sent ?? []), ...rest.map(({ json }) => json)])
    let tokens = tokensOf()
    let isNew = false
    const place = `${owner}/${view?.name ?? names[1] ?? ""}`
    // A head that fills the window must not lead to a compression in every turn.
    const grown = Math.min(maxFill * limit, (view?.tokens.after ?? 0) + minGrowth * limit)
    const due = isTooLong ? 0 : Math.max(trigger, grown, inVain.get(place) ?? 0)
    if (tokens >= due && route.asks === "answer") {
      const made = yield* provide(compress(request, body, names, view, rest, { overhead, limit, before: tokens }))
      if (made === undefined) inVain.set(place, tokens * (1 + minGrowth))
      else {
        view = made.view
        rest = made.rest
        tokens = tokensOf()
        isNew = true
      }
    }
    if (view === undefined) return { _tag: "Unchanged", model, tokens: before }
    const all = [...view.sent, ...rest.map(({ json }) => json)]
    return {
      _tag: "Changed",
      model,
      text: bodyWith(body, all, declaration),
      sent: { owner, body, names, view, rest, messages: all, declaration, limit, tokens },
      before,
      after: tokens,
      isNew
    }
  })

  return { plan }
})
