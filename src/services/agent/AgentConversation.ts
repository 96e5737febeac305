/** What an agent reads from its conversation, and the messages it appends outside its turns. */

import { Clock, Effect, Schedule } from "effect"
import { callId } from "../../domain/chat/Answer.ts"
import { type Content, isCall, type Part, plainText } from "../../domain/content/Content.ts"
import { itemParts } from "../../domain/conversation/Conversation.ts"
import { clipped } from "../../domain/text/Bytes.ts"
import type { Attachment } from "../chat/AppendMessages.ts"
import type { Chat } from "../chat/Chat.ts"
import type { PendingCall } from "./ToolAnswer.ts"

/** The unanswered calls at the end of the conversation. */
export const callsOf = (chat: Chat["Service"]): Effect.Effect<ReadonlyArray<PendingCall>> =>
  Effect.map(chat.conversation, ({ view }) => {
    const last = view?.value.entry
    if (last === undefined || last.content.role !== "model") return []
    return last.content.parts.flatMap((part, index) =>
      isCall(part) ? [{ call: part.functionCall, id: callId(part.functionCall, last.id, index) }] : []
    )
  })

/** Messages that loop checks may read; the largest window takes 20. */
const maxRecentMessages = 30

/** The last messages that the model sees, read without walking the whole conversation. */
export const recentContents = (chat: Chat["Service"]): Effect.Effect<ReadonlyArray<Content>> =>
  Effect.map(chat.conversation, ({ view }) => {
    const items: Array<Content> = []
    for (let node = view; node !== undefined && items.length < maxRecentMessages; node = node.before) {
      items.push({ ...node.value.entry.content, parts: itemParts(node.value) })
    }
    return items.reverse()
  })

/** Characters of one message in an intent. */
const maxIntentMessageChars = 400

/** What the agent is asked to do, followed by what was said before it, latest first: for a model that shortens a result. */
export const intentOf = (chat: Chat["Service"], prompt: string): Effect.Effect<string> =>
  Effect.map(recentContents(chat), (contents) => {
    const before = contents.toReversed().flatMap((content) => {
      const words = plainText(content).trim()
      const speaker = content.role === "user" ? "user" : "agent"
      return words === "" || words === prompt ? [] : [`${speaker}: ${clipped(words, maxIntentMessageChars)}`]
    })
    return before.length === 0 ? prompt : `${prompt}\n\nBefore that, latest first:\n${before.join("\n")}`
  })

/** The retry interval for results while something else changes the conversation, such as a compression that the user started. */
export const retryWhileBusy = Schedule.spaced("50 millis")

/** The message of one turn. */
export interface OutgoingMessage {
  readonly message: ReadonlyArray<Part>
  readonly author: "program" | undefined
  readonly messageId?: string | undefined
  readonly attached: ReadonlyArray<Attachment>
}

/** The share of the window that a message may fill if it stays in the conversation without being sent. */
const keptShare = 0.4

/** Bounds a message and its attachments that stay in the conversation without an answer, so that others fit beside them. */
export const keptOf = Effect.fnUntraced(function* (
  chat: Chat["Service"],
  { attached, author, message }: OutgoingMessage
) {
  const { limit } = yield* Effect.orElseSucceed(chat.usage, () => ({ limit: Infinity }))
  const room = limit * keptShare
  return [
    { parts: message, author, room },
    ...attached.map((one) => ({
      parts: one.parts,
      author: "program" as const,
      room: Math.min(room, one.room ?? room)
    }))
  ]
})

/** A message that is appended without being sent. */
interface Addition {
  readonly parts: ReadonlyArray<Part>
  readonly author?: "program" | undefined
  /** By part index: the text that the model sees in place of that part. */
  readonly instead?: Readonly<Record<string, string>> | undefined
  /** The maximum number of tokens that the model sees of it. */
  readonly room?: number | undefined
}

/** Appends messages. Waits while something else changes the conversation. */
export const append = Effect.fnUntraced(function* (chat: Chat["Service"], additions: ReadonlyArray<Addition>) {
  if (additions.length === 0) return
  const at = yield* Clock.currentTimeMillis
  yield* chat
    .append(
      additions.map(({ author, instead, parts, room }) => ({
        content: { role: "user", parts },
        at,
        room,
        ...(author === undefined ? {} : { author }),
        ...(instead === undefined ? {} : { instead })
      }))
    )
    .pipe(Effect.retry({ schedule: retryWhileBusy, while: ({ _tag }) => _tag === "ChatBusy" }))
})
