/** Decides what goes out for a request. */

import { Effect, Metric } from "effect"
import { retryFrom } from "../../domain/conversation/FailureMemory.ts"
import type { CompressedView } from "../../domain/gateway/CompressedView.ts"
import { dueFrom, requestLimit, triggerOf } from "../../domain/gateway/GatewayLimits.ts"
import { beginningsOf } from "../../domain/gateway/MessageChain.ts"
import { recallDeclaration } from "../../domain/gateway/RecallDeclaration.ts"
import {
  headOf,
  modelOf,
  readBody,
  type RequestBody,
  toolsOf,
  withMessages as bodyWith
} from "../../domain/gateway/RequestBody.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import { compactedBy } from "../../domain/wire/ClientCompaction.ts"
import type { Compression } from "../compression/Compression.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { withItems } from "./AnsweredItems.ts"
import type { CountedMessage } from "./ConversationLog.ts"
import { addView, type ConversationMemory, deepestView, messagesBetween, namesOf } from "./ConversationMemory.ts"
import { clientCompactions } from "./GatewayMetrics.ts"
import type { GatewayError, GatewayOptions, GatewayPlan, GatewayRequest, Preparable } from "./GatewayPlan.ts"
import { RequestTokens } from "./MessageCounts.ts"
import { prepareAt, type SnapshotPreparation } from "./SnapshotPreparation.ts"
import { type MadeView, makeView } from "./ViewMaking.ts"

/** Size of a request below which it is passed on without a look at its messages. */
const minBytes = 4_000
/** Least factor between the estimate and the real tokens of a request that the provider refused as too long. */
const refusedFactor = 1.3
/** Most that a prepared compression may leave, as a share of the threshold. Beyond it, the request is compressed anew. */
const maxPrepared = 0.85
/** Conversations kept in `Planning.checked`. */
const maxChecked = 10_000
/** Places kept in `Planning.retryAt`. */
const maxRetryPlaces = 100_000

/** What requests are planned with. */
export interface Planning {
  readonly options: GatewayOptions
  readonly memory: ConversationMemory
  readonly prepared: SnapshotPreparation
  /** Tokens from which a compression that found nothing to do is tried again, by place. */
  readonly retryAt: BoundedMap<string, number>
  /** The conversations in which a compaction by the client was looked for. */
  readonly checked: BoundedMap<string, true>
}

/** Counts a conversation that starts with a summary by the client, once. */
const countClientCompaction = Effect.fnUntraced(function* (
  { checked }: Planning,
  { messages }: RequestBody,
  names: ReadonlyArray<string>
) {
  const name = names[Math.min(names.length - 1, 1)] ?? ""
  if (checked.get(name) !== undefined) return
  checked.set(name, true)
  const client = compactedBy(messages)
  if (client !== undefined) yield* Metric.update(Metric.withAttributes(clientCompactions, { client }), 1)
})

/** Returns the tokens of a request with a view and the messages after it. */
const tokensWith = (
  { counts }: ConversationMemory,
  { body: { dialect }, overhead }: Pick<Preparable, "body" | "overhead">,
  view: CompressedView | undefined,
  rest: ReadonlyArray<CountedMessage>
): RequestTokens => {
  const ofView = (view?.sent ?? []).map((json) => counts.message(dialect, json))
  return overhead.and([...ofView, ...rest.flatMap(({ text }) => text ?? [])])
}

/** Returns what requests are planned with. */
export const planningWith = (known: Omit<Planning, "checked" | "retryAt">): Planning => ({
  ...known,
  retryAt: new BoundedMap(maxRetryPlaces),
  checked: new BoundedMap(maxChecked)
})

/** A compression as it goes out: with the messages after it. */
const sentWith = Effect.fnUntraced(function* ({ memory }: Planning, next: Preparable, made: MadeView | undefined) {
  if (made === undefined) return undefined
  const rest = yield* messagesBetween(memory, next, made.view.messages)
  return { made, rest, tokens: tokensWith(memory, next, made.view, rest) }
})

/** Compresses a conversation, with what was prepared if it is small enough. Returns undefined if there is nothing to do. */
const compress = Effect.fnUntraced(function* (planning: Planning, next: Preparable) {
  const { memory, prepared, retryAt } = planning
  const ready = yield* sentWith(planning, next, yield* prepared.take(next))
  const isSmall = ready !== undefined && ready.tokens.total <= maxPrepared * next.trigger
  const sent = isSmall ? ready : yield* sentWith(planning, next, yield* makeView(memory, next, "code"))
  if (sent === undefined) {
    retryAt.set(next.place, retryFrom(next.tokens.total))
    return undefined
  }
  const { made, rest, tokens } = sent
  const view = { ...made.view, tokens: { before: made.view.tokens.before, after: Math.round(tokens.total) } }
  yield* addView(memory, next.owner, view, made.original, made.log)
  return { view, rest, tokens, by: made.by }
})

const declarationFor = ({ recall }: GatewayOptions, { route }: GatewayRequest, body: RequestBody) =>
  body.canRecall && recall !== false && route.asks === "answer"
    ? recallDeclaration(body.dialect, toolsOf(body))
    : undefined

/** Decides what goes out for a request. */
export const plan = Effect.fn("Gateway.plan")(function* (
  planning: Planning,
  request: GatewayRequest
): Effect.fn.Return<GatewayPlan, GatewayError, Compression | TempStore | TokenCounter> {
  const { memory, options } = planning
  const { counts } = memory
  const { isTooLong = false, owner, route, text } = request
  const read = text.length < minBytes ? undefined : readBody(route, text)
  const body = read === undefined ? undefined : yield* withItems(memory, owner, read)
  if (body === undefined) return { _tag: "Unchanged", model: modelOf(route, text), tokens: undefined }
  const { dialect, messages, model } = body
  const window = requestLimit(options, model, body.maxAnswer)
  const isSmall = !isTooLong && text.length < triggerOf(options, window / counts.factor(model))
  const { views } = yield* namesOf(memory, owner, !isSmall)
  if (isSmall && views.size === 0) return { _tag: "Unchanged", model, tokens: undefined }
  const names = beginningsOf(dialect, messages)
  yield* countClientCompaction(planning, body, names)
  const last = yield* deepestView(memory, owner, names)
  if (last === undefined && isSmall) return { _tag: "Unchanged", model, tokens: undefined }
  const head = counts.head(headOf(body))
  const before = new RequestTokens([head, ...messages.map((json, at) => counts.message(dialect, json, names[at + 1]))])
  const factor = Math.max(counts.factor(model, before), isTooLong ? refusedFactor : 0)
  const limit = Math.floor(window / factor)
  const trigger = triggerOf(options, limit)
  if (last === undefined && ((!isTooLong && before.total < trigger * prepareAt) || route.asks === "count")) {
    return { _tag: "Unchanged", model, tokens: before }
  }
  const declaration = declarationFor(options, request, body)
  const overhead = new RequestTokens(declaration === undefined ? [head] : [head, counts.head(declaration.inDialect)])
  const place = `${owner}/${last?.name ?? names[1] ?? ""}`
  const conversation = { owner, place, body, names, view: last, declaration, overhead, limit, trigger }
  const restNow = yield* messagesBetween(memory, conversation, last?.messages ?? 0)
  const next: Preparable = {
    ...conversation,
    rest: restNow,
    tokens: tokensWith(memory, conversation, last, restNow)
  }
  const tokensNow = next.tokens.total
  const due = isTooLong ? 0 : dueFrom(limit, trigger, last?.tokens.after, planning.retryAt.get(place))
  const made = tokensNow >= due && route.asks === "answer" ? yield* compress(planning, next) : undefined
  const isNear = made === undefined && tokensNow >= prepareAt * due && route.asks === "answer"
  const soon = isNear ? { next } : {}
  const { rest, tokens, view } = made ?? next
  if (view === undefined) return { _tag: "Unchanged", model, tokens: before, ...soon }
  const all = [...view.sent, ...rest.map(({ json }) => json)]
  return {
    _tag: "Changed",
    model,
    text: bodyWith(body, all, declaration),
    sent: { ...next, view, rest, messages: all, tokens },
    before,
    isNew: made !== undefined,
    by: made?.by ?? "code",
    ...soon
  }
})
