/** Makes the next request of a chat fit the model's window by compressing before it is sent. */

import { Effect, Ref, Schema } from "effect"
import { Overflowing, type ChatEvent, Stubborn } from "../../domain/chat/ChatEvent.ts"
import { type Outcome, patchOf, statusOf, tokensOf } from "../../domain/compression/Compression.ts"
import { unshrinkable } from "../../domain/compression/Unshrinkable.ts"
import { hasResponses, plainText } from "../../domain/content/Content.ts"
import { itemTokens, sum, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { requestMark } from "../../domain/conversation/FailureMemory.ts"
import type { HookOutcome } from "../../domain/hooks/Hook.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import type { ChatSettings } from "./ChatSettings.ts"
import type { ChatState, Emit, RequestContext } from "./ChatState.ts"
import { compressBefore } from "./Compress.ts"
import { inStrategyTerms, isDueByReport } from "./CompressPolicy.ts"
import {
  buildRequest,
  continues,
  expectedTokens,
  type PendingMessage,
  pendingParts,
  pendingTokens,
  requestSize
} from "./RequestSize.ts"
import type { WindowOverflow } from "./WindowGuard.ts"

/** The name of the fixed content of every request, in the list of content that cannot be made smaller. */
const overheadName = "system instruction and tools"

/**
 * A message, or tool results, that do not fit even after compression. Nothing was sent, and the conversation did not
 * change. All counts are the model's tokens: its own count, or a calibrated estimate.
 */
export class ContextOverflow extends Schema.TaggedError<ContextOverflow>()("ContextOverflow", {
  what: Overflowing,
  /** Tokens of the message to send, or of the tool results to answer. */
  estimated: TokenCount,
  /** Tokens that remained for it; always fewer. */
  remaining: TokenCount,
  limit: TokenCount,
  /** The content that takes the room and cannot be made smaller, largest first. */
  stubborn: Schema.Array(Stubborn),
  /** The message's plain text. */
  text: Schema.String
}) {
  override get message() {
    const fixed = this.stubborn.find(({ what }) => what === overheadName)?.tokens ?? 0
    if (fixed >= this.limit) {
      return `the system instruction and the tools alone take about ${fixed} tokens, and the window has ${this.limit}; offer fewer tools, or use a model with a larger window`
    }
    const what =
      this.what === "tool results"
        ? "the tools' results do not fit: they have"
        : `${this.estimated > this.limit ? "this message alone" : "the message"} does not fit: it has`
    const mend = this.what === "tool results" ? "ask for less at once" : "shorten it"
    return `${what} about ${this.estimated} tokens, and ${this.remaining} of the window of ${this.limit} remain; ${mend}, or use a model with a larger window`
  }
}

/** Returns the share of the free window that a message may take. Zero or less counts as unset. */
const messageShare = ({ overflowFactor = 1 }: ChatSettings): number =>
  overflowFactor > 0 ? Math.min(1, overflowFactor) : 1

/**
 * Returns a request that fits, after as many compressions as necessary. `hookDecision`: the decision of the
 * PreCompress hooks.
 */
export const fitRequest = Effect.fnUntraced(function* (
  chat: ChatState,
  context: RequestContext,
  pending: PendingMessage | undefined,
  hookDecision: HookOutcome | undefined,
  emit: Emit
) {
  const { requests } = chat
  const next = buildRequest(chat, pending, messageShare(yield* Ref.get(chat.settings)))
  const first = yield* next
  const { conversation, memory } = yield* Ref.get(chat.session)
  // A measurement is void if the request lacks a part of what was measured, as after an undo or a failed turn.
  if (requests.last === undefined || !continues(conversation.view, requests.last.view, requests.last.message)) {
    requests.measured = undefined
  }
  requests.last = { view: conversation.view, message: pending?.content }
  yield* requestSize(chat, false)
  const isDue = yield* isDueByReport(chat, context)
  if (isDue !== true && context.window.isSmall(first.tokens + (first.free ?? 0), requests.measured)) return first
  const overhead = TokenCount.make(Math.ceil(context.overheadTokens + first.environment + pendingTokens(pending)))
  let current = first
  // From here on, the request contains the message too.
  requests.scaled = undefined
  const fitting = yield* context.window
    .fit(
      {
        request: next,
        isDue,
        compress: Effect.fnUntraced(function* (policy, forced) {
          const before = yield* expectedTokens(context, current, false)
          const outcome = yield* compressBefore(
            chat,
            { ...(yield* inStrategyTerms(chat, context, policy)), overhead },
            forced && !(context.strategy.countsByReport && context.strategy.name === policy.strategy),
            { mustFit: forced, hookDecision, emit }
          )
          const isPatched = patchOf(outcome) !== undefined
          if (isPatched) current = yield* next
          const after = isPatched ? yield* expectedTokens(context, current, true) : before
          yield* report(outcome, { before, after, limit: context.window.requestLimit }, emit)
          chat.unreported = undefined
          return outcome
        })
      },
      {
        parts: () => [...context.overheadParts, ...pendingParts(pending)],
        tokens: context.overheadTokens + pendingTokens(pending),
        free: first.free ?? 0,
        what: "what remains after compression does not fit"
      },
      requestMark(memory, first.tokens - viewTokens(conversation))
    )
    .pipe(
      Effect.catchTag("WindowOverflow", (over) => Effect.flatMap(overflow(chat, context, pending, over), Effect.fail))
    )
  requests.measured = fitting.measured
  requests.last = { view: (yield* Ref.get(chat.session)).conversation.view, message: pending?.content }
  return fitting.request
})

const report = (
  outcome: Outcome,
  counts: { readonly before: TokenCount; readonly after: TokenCount; readonly limit: number },
  emit: Emit
) => {
  if (outcome._tag !== "Noop")
    return emit({ ...compressedEvent(outcome, counts.limit), ...counts, limit: TokenCount.make(counts.limit) })
  if (outcome.reason !== "vetoed by a hook") return Effect.void
  const why = outcome.detail === undefined ? "" : `: ${outcome.detail}`
  return emit({ _tag: "Notice", source: "hook", message: `a hook vetoed the compression${why}` })
}

/** The event that reports a compression, with the outcome's own counts. */
export const compressedEvent = (outcome: Outcome, limit: number): Extract<ChatEvent, { _tag: "ChatCompressed" }> => {
  const { after, before } = tokensOf(outcome)
  return {
    _tag: "ChatCompressed",
    trigger: "auto",
    status: statusOf(outcome),
    before: TokenCount.make(before),
    after: TokenCount.make(after),
    limit: TokenCount.make(limit),
    message: "degraded" in outcome ? (outcome.degraded?.message ?? null) : "message" in outcome ? outcome.message : null
  }
}

/**
 * Makes the error from the same numbers that decided it, so that what did not fit is always larger than the remaining
 * room.
 */
const overflow = Effect.fnUntraced(function* (
  chat: ChatState,
  { overheadTokens }: RequestContext,
  pending: PendingMessage | undefined,
  { estimated, maxRequestTokens: limit, tokens }: WindowOverflow
) {
  const { conversation } = yield* Ref.get(chat.session)
  const items = view(conversation)
  const scale = tokens / Math.max(1, estimated)
  const counted = (size: number) => TokenCount.make(Math.max(0, Math.round(size * scale)))
  const answers = items.slice(items.findLastIndex(({ entry }) => entry.content.role === "model") + 1)
  const own = pending === undefined ? sum(answers.map(itemTokens)) : pendingTokens(pending)
  const isResults = pending === undefined && answers.some(({ entry }) => hasResponses(entry.content))
  const kept = new Set<string>(items.map(({ entry }) => entry.id))
  const others: ReadonlyArray<Stubborn> = [
    ...(pending === undefined ? [] : [{ entry: null, what: "this message", tokens: counted(own) }]),
    ...(overheadTokens === 0 ? [] : [{ entry: null, what: overheadName, tokens: counted(overheadTokens) }]),
    ...unshrinkable(conversation, kept).map((one) => ({ ...one, tokens: counted(one.tokens) }))
  ]
  const size = Math.min(tokens, counted(own))
  const share = messageShare(yield* Ref.get(chat.settings))
  return new ContextOverflow({
    what: isResults ? "tool results" : "message",
    estimated: TokenCount.make(size),
    remaining: TokenCount.make(Math.max(0, Math.min(Math.floor((limit - (tokens - size)) * share), size - 1))),
    limit: TokenCount.make(limit),
    stubborn: [...others].sort((one, other) => other.tokens - one.tokens).slice(0, 5),
    text: pending === undefined ? "" : plainText(pending.content)
  })
})
