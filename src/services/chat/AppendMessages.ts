/** Appends messages to a conversation, and pins words of the user. */

import { Clock, Effect, Ref } from "effect"
import { isMedia, isText, hasResponses, type Part, text, user, isResponse } from "../../domain/content/Content.ts"
import { type Draft, entries, type Entry, entryId, type Pin, sum } from "../../domain/conversation/Conversation.ts"
import {
  defaultBound,
  type BoundedResult,
  boundedPart,
  fairShare,
  type OutputBound,
  type BoundedForm,
  resultText,
  omittedMediaNote
} from "../../domain/conversation/ToolOutputBound.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { type IncomingMessage, makeEntry } from "../session/EntryBuilder.ts"
import { TokenCounter, type TokenCountError } from "../tokens/TokenCounter.ts"
import type { ChatState } from "./ChatState.ts"
import { commit, readWhole } from "./Commit.ts"
import { requestContext } from "./RequestContext.ts"
import { type PendingMessage, requestSize, withIds } from "./RequestSize.ts"

/** Attempts to make results fit their share of the window. Each reduces the shares by the remaining excess. */
const maxFitAttempts = 4
/** Characters of a result that are shown however small the window is. */
const minShownChars = 400

/**
 * Bounds how the results of an entry are shown: none longer than `bound` allows, and all together within `room` tokens. Each
 * is stored whole. Nothing is bounded when `bound.most` is 0. `isBoundable` selects the parts; default: results and their
 * media.
 */
export const withBounds = Effect.fnUntraced(function* (
  entry: Entry,
  instead: Readonly<Record<string, string>>,
  bound: OutputBound,
  room: number,
  isBoundable: (part: Part) => boolean = (part) => isResponse(part) || isMedia(part)
): Effect.fn.Return<Entry, TokenCountError, TokenCounter> {
  const results = entry.content.parts.flatMap((part, index) => (isBoundable(part) ? [{ part, index }] : []))
  if (results.length === 0 || bound.most <= 0) return entry
  const counter = yield* TokenCounter
  const bounded: Record<string, BoundedResult> = {}
  const tokensOf = (index: number) => bounded[String(index)]?.tokens ?? entry.tokens[index] ?? 0
  const show = Effect.fnUntraced(function* ({ index, part }: (typeof results)[number], recipe: BoundedForm) {
    const handle = entry.handles[index]
    if (handle === undefined) return
    const tokens = sum(yield* counter.count([boundedPart(part, handle, recipe)]))
    if (tokens < tokensOf(index)) bounded[String(index)] = { ...recipe, tokens: TokenCount.make(tokens) }
  })
  const { form, lines, most } = bound
  for (const result of results) {
    if (!isResponse(result.part)) continue
    const summary = instead[String(result.index)]
    const { length } = resultText(result.part) ?? ""
    if (summary !== undefined) yield* show(result, { text: summary })
    else if (length > most) yield* show(result, { form, size: form === "head-tail-lines" ? lines : most })
  }
  for (let attempt = 0; attempt < maxFitAttempts; attempt += 1) {
    const sizes = results.map(({ index }) => tokensOf(index))
    if (sum(sizes) <= room) break
    const share = fairShare(sizes, room)
    for (const result of results) {
      const tokens = tokensOf(result.index)
      if (tokens <= share) continue
      if (isMedia(result.part)) {
        yield* show(result, { text: omittedMediaNote(result.part) })
        continue
      }
      const known = bounded[String(result.index)]
      const handle = entry.handles[result.index]
      const shown = known === undefined || handle === undefined ? result.part : boundedPart(result.part, handle, known)
      const { length } = resultText(shown) ?? shown.text ?? ""
      const size = Math.max(minShownChars, Math.floor((length * share * 0.9) / tokens))
      yield* show(result, { form: "head-tail-chars", size })
    }
  }
  return Object.keys(bounded).length === 0 ? entry : { ...entry, bounded }
})

/**
 * Something that a program adds to a message: the content of files it names, or text from a hook. Not the user's own
 * words.
 */
export interface Attachment {
  readonly parts: ReadonlyArray<Part>
  /**
   * The maximum number of tokens shown of its texts and media; the rest stays behind their handles. Default: no
   * limit.
   */
  readonly room?: number | undefined
}

/** The share of the window that the results of one answer's calls may take together, or that of what is free, if that is more. */
const resultShare = { ofWindow: 0.4, ofFree: 0.75 }

/** Estimated tokens that the results of one answer's calls may take together. */
const resultRoom = Effect.fnUntraced(function* (chat: ChatState) {
  const { maxRequestTokens } = (yield* requestContext(chat)).window
  const { scale = 1, tokens } = yield* requestSize(chat, false)
  const free = maxRequestTokens - tokens
  return Math.max(maxRequestTokens * resultShare.ofWindow, free * resultShare.ofFree) / scale
})

/** No limit for a single part: only all parts together have one. */
const unbounded = { ...defaultBound, most: Infinity }
const isShortened = (part: Part): boolean => isText(part) || isMedia(part)

const inRoom = (entry: Entry, room: number | undefined) =>
  room === undefined ? Effect.succeed(entry) : withBounds(entry, {}, unbounded, room, isShortened)

/** Appends one message. Tool results are bounded; their whole text stays behind handles. */
export const appendMessage = Effect.fnUntraced(function* (
  chat: ChatState,
  { instead = {}, room, ...draft }: IncomingMessage
) {
  const { conversation } = yield* Ref.get(chat.session)
  const whole = yield* makeEntry(draft, entryId(conversation.next), chat.handles)
  const { toolOutput } = yield* Ref.get(chat.settings)
  const entry = hasResponses(draft.content)
    ? yield* withBounds(whole, instead, { ...defaultBound, ...toolOutput }, yield* resultRoom(chat))
    : yield* inRoom(whole, room)
  yield* commit(chat, { _tag: "Appended", entry })
  return entry
})

/** Returns attachments as they will be shown. They are not part of the conversation yet. */
export const attachedEntries = Effect.fnUntraced(function* (
  chat: ChatState,
  attachments: ReadonlyArray<Attachment>,
  at: number
) {
  const { next } = (yield* Ref.get(chat.session)).conversation
  return yield* Effect.forEach(
    attachments,
    Effect.fnUntraced(function* ({ parts, room }) {
      const draft: Draft = { content: { role: "user", parts }, at, author: "program" }
      return yield* inRoom(yield* makeEntry(draft, entryId(next + 1), chat.handles), room)
    })
  )
})

/** Commits an answer, together with its message if that is not in the conversation yet. */
export const appendAnswer = Effect.fnUntraced(function* (
  chat: ChatState,
  pending: PendingMessage | undefined,
  answer: Draft
) {
  const { next } = (yield* Ref.get(chat.session)).conversation
  if (pending === undefined) {
    const entry = yield* makeEntry(answer, entryId(next), chat.handles)
    yield* commit(chat, { _tag: "Appended", entry })
    return entry
  }
  const { at, author, content, messageId, tokens } = pending
  const draft = {
    content,
    at,
    ...(author === undefined ? {} : { author }),
    ...(messageId === undefined ? {} : { messageId })
  }
  const message = yield* makeEntry(draft, entryId(next), chat.handles, tokens)
  const attached = withIds(pending.attached, next + 1)
  const entry = yield* makeEntry(answer, entryId(next + 1 + attached.length), chat.handles)
  yield* commit(chat, { _tag: "Answered", message, ...(attached.length === 0 ? {} : { attached }), answer: entry })
  // If the program ends before this commit, the strategy changes these parts before the next request.
  const shorten = (pending.shown ?? []).map(({ at: place, ...shown }) => ({ ...shown, entry: entryId(next + place) }))
  if (shorten.length > 0) yield* commit(chat, { _tag: "Masked", at, shorten })
  return entry
})

/** Returns the latest place of these words of the user. Without words, the latest message of the user. */
const latestPin = (log: ReadonlyArray<Entry>, words: string | undefined): Pin | undefined => {
  if (words?.trim() === "") return undefined
  for (const entry of [...log].reverse()) {
    if (entry.content.role !== "user" || entry.author !== undefined) continue
    for (const [part, each] of entry.content.parts.entries()) {
      if (!isText(each) || each.text.trim() === "") continue
      const start = words === undefined ? 0 : each.text.indexOf(words)
      if (start >= 0) return { entry: entry.id, part, start, end: start + (words ?? each.text).length }
    }
  }
  return undefined
}

/** Pins words of the user. Words that no message holds are appended first; both go into the log together. */
export const pin = Effect.fnUntraced(function* (chat: ChatState, words: string | undefined) {
  const at = yield* Clock.currentTimeMillis
  const present = latestPin(entries((yield* readWhole(chat)).conversation), words)
  const isNew = present === undefined && words !== undefined && words.trim() !== ""
  const pinned = isNew ? latestPin([yield* appendMessage(chat, { content: user(text(words)), at })], words) : present
  if (pinned !== undefined) yield* commit(chat, { _tag: "Pinned", at, pin: pinned })
  return pinned
}, Effect.uninterruptible)
