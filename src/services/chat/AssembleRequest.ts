/** Asks the strategy which parts of the next request to shorten or leave out, and commits its answer. */

import { Clock, Effect, Exit, Ref, Scope } from "effect"
import { bytesOf } from "../../domain/content/Base64Bytes.ts"
import { type Part, text } from "../../domain/content/Content.ts"
import { imageSize } from "../../domain/content/ImageTokens.ts"
import {
  entryId,
  itemParts,
  itemTokens,
  type Patch,
  sum,
  view,
  viewTokens
} from "../../domain/conversation/Conversation.ts"
import { droppedEntries } from "../../domain/conversation/Recall.ts"
import { runtimeMark } from "../../domain/text/RuntimeMark.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { Compression } from "../compression/Compression.ts"
import type { Assembled } from "../compression/strategies/StrategyRunner.ts"
import { makeEntry, rangeHandle } from "../session/EntryBuilder.ts"
import { type TokenCountError, type TokenCounter, withTokens } from "../tokens/TokenCounter.ts"
import type { ChatState, Emit, RequestContext } from "./ChatState.ts"
import { commit } from "./Commit.ts"
import { fitImages, fittedImages } from "./FitImages.ts"
import { pendingItems, type PendingMessage, type PendingPart, requestSize } from "./RequestSize.ts"

/**
 * The session of the chat's strategy. It opens on first use, and is replaced when the settings name another strategy.
 */
const strategySession = Effect.fnUntraced(function* (chat: ChatState, { strategy }: RequestContext) {
  const present = chat.strategy
  if (present?.name === strategy.name) return present.session
  yield* closeStrategy(chat)
  const compression = yield* Compression
  const { conversation } = yield* Ref.get(chat.session)
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const scope = yield* Scope.fork(chat.scope)
      const session = yield* restore(Scope.provide(compression.open(strategy.name, conversation), scope)).pipe(
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
      chat.strategy = { name: strategy.name, session, scope }
      return session
    })
  )
})

/** Closes the session of the chat's strategy, if it is open. */
export const closeStrategy = (chat: ChatState): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { strategy } = chat
    chat.strategy = undefined
    return strategy === undefined ? Effect.void : Scope.close(strategy.scope, Exit.void)
  }).pipe(Effect.uninterruptible)

/** Asks the strategy before a request, and commits its answer as one event. */
export const assembleRequest = Effect.fnUntraced(function* (chat: ChatState, context: RequestContext, emit: Emit) {
  yield* fitImages(chat, context, emit)
  const { assemble } = yield* strategySession(chat, context)
  if (assemble === undefined) return
  const { masking, policy, unmaskedTools = [] } = yield* Ref.get(chat.settings)
  const { conversation } = yield* Ref.get(chat.session)
  const { scale = 1 } = yield* requestSize(chat, false)
  const at = yield* Clock.currentTimeMillis
  const { window } = context.window
  const assembled = yield* assemble({ conversation, window, scale, at, policy, masking, unmaskedTools })
  if (assembled === undefined) return
  const shorten = yield* smaller(assembled, chat)
  const dropped = yield* dropOldest(chat, context, assembled, shorten)
  if (!dropped && shorten.length > 0) yield* commit(chat, { _tag: "Masked", at, shorten })
  if (shorten.length === 0) return
  yield* emit({
    _tag: "ToolOutputMasked",
    parts: shorten.length,
    before: TokenCount.make(Math.round(viewTokens(conversation) * scale)),
    after: TokenCount.make(Math.round(viewTokens((yield* Ref.get(chat.session)).conversation) * scale))
  })
})

/** Asks the strategy which media of a message and its attachments are shown in another form. */
export const ingestMessage = Effect.fnUntraced(function* (
  chat: ChatState,
  context: RequestContext,
  pending: PendingMessage
) {
  const { ingest } = yield* strategySession(chat, context)
  const items = pendingItems(pending)
  const ofStrategy = ingest === undefined ? [] : yield* ingest(items)
  const isTaken = new Set(ofStrategy.map(({ entry, part }) => `${entry}:${part}`))
  const ofProvider = yield* fittedImages(chat, context, items)
  const all = [...ofStrategy, ...ofProvider.filter(({ entry, part }) => !isTaken.has(`${entry}:${part}`))]
  if (all.length === 0) return pending
  const shown = (yield* withTokens(all)).map(({ entry, ...each }): PendingPart => ({
    ...each,
    at: items.findIndex((item) => item.entry.id === entry)
  }))
  return { ...pending, shown }
})

/** Returns the parts that are smaller in their new form, with their tokens. */
const smaller = Effect.fnUntraced(function* (
  { shorten }: Assembled,
  chat: ChatState
): Effect.fn.Return<Patch["shorten"], TokenCountError, TokenCounter> {
  if (shorten.length === 0) return []
  const items = new Map(view((yield* Ref.get(chat.session)).conversation).map((item) => [item.entry.id, item]))
  return (yield* withTokens(shorten)).filter(({ entry, part, replacement, tokens }) => {
    const item = items.get(entry)
    if (item === undefined) return false
    const before = item.shortened.get(part)?.tokens ?? item.entry.tokens[part] ?? 0
    // A smaller image may be estimated at the same number of tiles.
    return tokens < before || isReduced(itemParts(item)[part], replacement)
  })
})

const pixelsOf = ({ inlineData }: Part): number => {
  const size = inlineData?.data === undefined ? undefined : imageSize(bytesOf(inlineData.data))
  return size === undefined ? 0 : size.width * size.height
}

/** Whether a part is the same image with fewer pixels. The estimate of its tokens may be the same. */
const isReduced = (before: Part | undefined, after: Part): boolean =>
  before !== undefined && pixelsOf(after) > 0 && pixelsOf(after) < pixelsOf(before)

/**
 * Removes the oldest messages from the window and leaves a note with their handle. Returns false if nothing is
 * removed.
 */
const dropOldest = Effect.fnUntraced(function* (
  chat: ChatState,
  { strategy }: RequestContext,
  { dropThrough }: Assembled,
  shorten: Patch["shorten"]
) {
  if (dropThrough === undefined) return false
  const { conversation } = yield* Ref.get(chat.session)
  const items = view(conversation).filter(({ entry }) => entry.author !== "environment")
  const to = items.findIndex(({ entry }) => entry.id === dropThrough)
  const [first] = items
  if (first === undefined || to < 0) return false
  const drop = { from: first.entry.id, to: dropThrough }
  const gone = droppedEntries(view(conversation), drop)
  const handle = yield* rangeHandle(gone)
  const note = `${runtimeMark} ${to + 1} older messages left the window. Recall ${handle} to read them.`
  const draft = { content: { role: "user" as const, parts: [text(note)] }, author: "summary" as const }
  const entry = yield* makeEntry(draft, entryId(conversation.next), chat.handles)
  const before = viewTokens(conversation)
  const after = before - sum(items.slice(0, to + 1).map(itemTokens)) + sum(entry.tokens)
  yield* commit(chat, {
    _tag: "Compressed",
    at: yield* Clock.currentTimeMillis,
    status: "LIMITED",
    strategy: strategy.name,
    trigger: "auto",
    before: TokenCount.make(before),
    after: TokenCount.make(Math.max(0, after)),
    patch: { drop, insert: [entry], shorten: shorten.filter((one) => !gone.some(({ id }) => id === one.entry)) },
    dropped: handle
  })
  return true
})

/** Tells the strategy that a turn has ended. */
export const afterTurn = Effect.fnUntraced(function* (
  chat: ChatState,
  context: RequestContext
): Effect.fn.Return<void, never, Compression> {
  const { afterTurn: notify } = yield* strategySession(chat, context)
  if (notify !== undefined) yield* notify((yield* Ref.get(chat.session)).conversation)
})
