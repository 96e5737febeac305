/** Builds the next request of a chat, estimates its size, and converts it to the model's tokens. */

import { Effect, Ref } from "effect"
import type { Content, Part } from "../../domain/content/Content.ts"
import {
  type Entry,
  type EntryId,
  entryId,
  itemParts,
  itemTokens,
  sum,
  type ViewItem,
  viewItem
} from "../../domain/conversation/Conversation.ts"
import { Outgoing, type OutgoingRequest } from "../../domain/conversation/Outgoing.ts"
import type { Session } from "../../domain/session/Session.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { isPlausibleCount } from "../../domain/tokens/CutPrompts.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import type { ChatState, RequestContext, ViewChain } from "./ChatState.ts"
import { askedModel, requestContext } from "./RequestContext.ts"
import type { SizedRequest } from "./WindowGuard.ts"

/** A part of a message that is not part of the conversation yet, in another form. */
export interface PendingPart {
  readonly at: number
  readonly part: number
  readonly replacement: Part
  readonly tokens: TokenCount
}

/** A message that is not part of the conversation yet. */
export interface PendingMessage {
  readonly content: Content
  readonly author?: "program" | undefined
  readonly messageId?: string | undefined
  readonly tokens: ReadonlyArray<number>
  /** What a program attached to it. The ids are placeholders; see `withIds`. */
  readonly attached: ReadonlyArray<Entry>
  /** Media that are shown in another form. `at` is 0 for the message, then the index of the attached entry. */
  readonly shown?: ReadonlyArray<PendingPart> | undefined
  /** Milliseconds since 1970. */
  readonly at: number
}

/** A request as it would be sent now. */
export interface ReadyRequest extends SizedRequest {
  readonly contents: OutgoingRequest["contents"]
  /** Estimated tokens of the environment changes within the conversation. */
  readonly environment: OutgoingRequest["environment"]
  /** The id that the answer will get. */
  readonly answer: EntryId
}

/** Attached entries with the ids that follow their message's. */
export const withIds = (attached: ReadonlyArray<Entry>, next: number): ReadonlyArray<Entry> =>
  attached.map((entry, index) => ({ ...entry, id: entryId(next + index) }))

/** A message and its attachments as they are shown, with the ids that they will have. */
export const pendingItems = (pending: PendingMessage | undefined, next = 1): ReadonlyArray<ViewItem> => {
  if (pending === undefined) return []
  const { attached, author, content, shown = [], tokens } = pending
  const message = {
    id: entryId(next),
    handles: [],
    content,
    tokens,
    ...(author === undefined ? {} : { author })
  }
  const items = [message, ...withIds(attached, next + 1)].map(viewItem)
  return items.map((item, index) => {
    const parts = shown.filter(({ at }) => at === index)
    if (parts.length === 0) return item
    const changed = parts.map(
      ({ part, replacement, tokens: count }) => [part, { part: replacement, tokens: count }] as const
    )
    return { ...item, shortened: new Map([...item.shortened, ...changed]) }
  })
}

/** Estimated tokens of a message and its attachments, as they are shown. */
export const pendingTokens = (pending: PendingMessage | undefined): number => sum(pendingItems(pending).map(itemTokens))

/** The parts of a message and its attachments, as they are shown. */
export const pendingParts = (pending: PendingMessage | undefined): ReadonlyArray<Part> =>
  pendingItems(pending).flatMap(itemParts)

/** Whether a view extends an earlier one, first of all by this message. */
export const continues = (view: ViewChain, earlier: ViewChain, message: Content | undefined): boolean => {
  let node = view
  let next: ViewChain
  while (node !== undefined && node.length > (earlier?.length ?? 0)) {
    next = node
    node = node.before
  }
  return node === earlier && (message === undefined || next?.value.entry.content === message)
}

/** Follows the view of the conversation, and reads the request of it. */
const followed = Effect.fnUntraced(function* <A>(chat: ChatState, read: (outgoing: Outgoing) => A) {
  const { conversation } = yield* Ref.get(chat.session)
  // A compression may have changed the other content of the request.
  const context = yield* requestContext(chat)
  const { following, isUnsigned, outgoing } = chat.requests
  const { model, opening } = context
  const follow = Work.run(outgoing.follow(conversation.view, model, opening.length > 0, isUnsigned))
  return { context, conversation, request: yield* following.withPermit(Effect.map(follow, () => read(outgoing))) }
})

/** Builds the request as it would be sent now. `share`: how much of the free window the message may take. */
export const buildRequest = Effect.fnUntraced(function* (
  chat: ChatState,
  pending: PendingMessage | undefined,
  share: number
) {
  const next = pendingItems(pending, (yield* Ref.get(chat.session)).conversation.next)
  const { context, conversation, request } = yield* followed(chat, (outgoing) => outgoing.request(next))
  const { opening, overheadParts, overheadTokens } = context
  const { contents, environment, parts, tokens } = request
  const ready: ReadyRequest = {
    contents: [...opening, ...contents],
    environment,
    answer: entryId(conversation.next + next.length),
    parts: () => [...overheadParts, ...parts()],
    tokens: overheadTokens + tokens,
    free: pendingTokens(pending) * (1 / share - 1)
  }
  return ready
})

/** Returns the size of the request as it would be sent now, without a message. */
const sizedRequest = (chat: ChatState) =>
  Effect.map(
    followed(chat, (outgoing) => outgoing.size()),
    ({ context: { overheadParts, overheadTokens }, request: { parts, tokens } }): SizedRequest => ({
      parts: () => [...overheadParts, ...parts()],
      tokens: overheadTokens + tokens
    })
  )

/** The messages that would be sent now, before the next message. */
export const nextContents = Effect.fnUntraced(function* (chat: ChatState) {
  const session = yield* Ref.get(chat.session)
  const outgoing = new Outgoing()
  const model = askedModel(session, yield* Ref.get(chat.settings))
  yield* Work.run(outgoing.follow(session.conversation.view, model))
  return outgoing.request().contents
})

const scaleIn = ({ requests }: ChatState, view: ViewChain, model: string): number | undefined => {
  for (let node = view; node !== undefined; node = node.before) {
    const scaled = requests.scales.get(node)
    if (scaled?.model === model) return scaled.scale
  }
  return undefined
}

/**
 * Returns the size of the next request without its message, in the model's tokens and in estimated ones, and the model's tokens for an
 * estimated one. The scale is undefined while no count of the model is known; with `ask`, the model is then asked for a count
 * (see `WindowGuard.scaleOf`).
 */
export const requestSize = Effect.fnUntraced(function* (chat: ChatState, ask: boolean) {
  const { requests } = chat
  const { model, window } = yield* requestContext(chat)
  const { conversation } = yield* Ref.get(chat.session)
  const before = requests.scaled
  const isNew = before === undefined || !continues(conversation.view, before.view, undefined)
  const request = yield* sizedRequest(chat)
  const reported = isNew ? scaleIn(chat, conversation.view, model) : undefined
  const scale = yield* window.scaleOf(request, isNew, ask && conversation.view !== undefined, reported)
  // A report that arrived meanwhile is newer.
  if (requests.scaled === before) requests.scaled = { view: conversation.view }
  const estimated = request.tokens
  return { estimated, scale, tokens: TokenCount.make(Math.round(estimated * (scale ?? 1))) }
})

/** Returns the count that the model will probably report for a request. `isNew`: it is not the last one measured. */
export const expectedTokens = ({ window }: RequestContext, request: ReadyRequest, isNew: boolean) =>
  Effect.map(window.scaleOf(request, isNew, false), (scale) =>
    TokenCount.make(Math.round(request.tokens * (scale ?? 1)))
  )

/** Returns the provider's count of the last request, as long as the view only grew at its end. */
export const reportedTokens = ({ requests }: ChatState, { conversation }: Session): number | undefined =>
  requests.reported !== undefined && continues(conversation.view, requests.reported.view, undefined)
    ? requests.reported.prompt
    : undefined

/**
 * Learns from the provider's count of a request, once its answer is in the conversation. Returns the prompt if the server seems to have cut it.
 */
export const learnCount = Effect.fnUntraced(function* (
  chat: ChatState,
  { window }: RequestContext,
  request: SizedRequest,
  prompt: number
) {
  const cut = yield* window.learn(request, prompt)
  const { view } = (yield* Ref.get(chat.session)).conversation
  if (cut !== undefined) {
    chat.requests.reported = undefined
    // The scales of earlier views may come from cut prompts too.
    if (view !== undefined) chat.requests.scales.set(view, { model: window.model, scale: 1 })
    return cut
  }
  chat.requests.scaled = { view }
  // A gateway may report only a part of the count. A strategy that uses counts then makes its own estimate.
  chat.requests.reported = isPlausibleCount(prompt, request.tokens) ? { view, prompt } : undefined
  const scale = yield* window.scaleOf(request, false, false)
  if (scale !== undefined && view !== undefined) chat.requests.scales.set(view, { model: window.model, scale })
  return undefined
})
