import { Effect, type FileSystem, type Path } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { Settings } from "../../domain/settings/Settings.ts"
import { estimateText } from "../../domain/tokens/Tokens.ts"
import type { Attachment } from "../chat/AppendMessages.ts"
import type { Chat } from "../chat/Chat.ts"
import * as AtReferences from "../references/AtReferences.ts"
import * as Expanded from "../references/ExpandedMessage.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { Workspace } from "../workspace/Workspace.ts"

/** Expands the `@` references of a message: files are read, measured against the window and sent along. */

/** How references are expanded. */
export interface ReferenceOptions {
  readonly chat: Chat["Service"]
  readonly workspace: Workspace["Service"]
  readonly files: Settings["files"]
  /** Agents that can be referenced in the same way. */
  readonly agents: ReadonlyArray<string>
  /** The start of the message that the user typed; nothing else is searched or changed. Absent: all of it. */
  readonly typed?: string | undefined
  /** Whether a file that is not under its path is looked for by name. Absent: it is. */
  readonly search?: boolean | undefined
  /** Whether files that do not fit are sent shortened. Absent: they are. */
  readonly confirmShortening?: ((sizes: string) => Effect.Effect<boolean>) | undefined
}

/** A message as it is sent. */
export interface ExpandedMessage {
  readonly text: string
  readonly attached: ReadonlyArray<Attachment>
  /** Shown before the answer. */
  readonly events: ReadonlyArray<ChatEvent>
  /** Nothing is sent: reading failed, or the user does not want files shortened. The last event says which. */
  readonly isStopped: boolean
}

/** The share of the window that files and conversation may fill; the rest absorbs errors of the estimate. */
const maxFilledShare = 0.9
/** The share of the window that a compression frees at least. */
const minFreedShare = 0.4

/** References that were not read in full and are named one by one. */
const maxNamedNotes = 5

/** Tokens that the files of the next message may have. */
const roomFor = Effect.fnUntraced(function* (chat: Chat["Service"], message: string) {
  const { limit, scale = 1, tokens } = yield* chat.usage
  const room = Math.max(limit * maxFilledShare - tokens, limit * minFreedShare)
  return Math.max(0, Math.floor(room / scale - estimateText(message)))
})

const stopped = (event: ChatEvent, before: ReadonlyArray<ChatEvent> = []): ExpandedMessage => ({
  text: "",
  attached: [],
  events: [...before, event],
  isStopped: true
})

const notice = (message: string): ChatEvent => ({ _tag: "Notice", source: "files", message })

const agentHint = (names: ReadonlyArray<string>): Attachment => ({
  parts: [
    {
      text: `The user names ${names.length === 1 ? "the agent" : "the agents"} ${names.join(", ")}: give the work to ${names.length === 1 ? "it" : "them"}.`
    }
  ]
})

/** Reads what a message references. `id` identifies the reading in the events. */
export const expandReferences = Effect.fn("MessageReferences.expandReferences")(function* (
  message: string,
  id: string,
  { agents, chat, confirmShortening, files, search, typed = message, workspace }: ReferenceOptions
): Effect.fn.Return<ExpandedMessage, never, FileSystem.FileSystem | Path.Path | TokenCounter> {
  // Text that was piped in or made by the program does not speak for the user: an "@" in it reads nothing.
  const words = message.startsWith(typed) ? typed : ""
  const read = yield* Effect.result(
    AtReferences.expand(words, { ...files, agents, search }).pipe(Effect.provideService(Workspace, workspace))
  )
  if (read._tag === "Failure") {
    return stopped({ _tag: "Error", reason: read.failure._tag, message: read.failure.message })
  }
  const expanded = read.success
  const text = `${expanded.text}${message.slice(words.length)}`
  const { notes } = expanded
  const more = notes.length - maxNamedNotes
  const events = [
    ...Expanded.events(expanded, id),
    ...notes.slice(0, maxNamedNotes).map((note) => notice(note.text)),
    ...(more > 0 ? [notice(`${more} more ${more === 1 ? "was" : "were"} not read, or only in part`)] : [])
  ]
  const hints = expanded.agents.length === 0 ? [] : [agentHint(expanded.agents)]
  if (expanded.parts.length === 0) return { text, attached: hints, events, isStopped: false }
  const room = yield* Effect.orElseSucceed(roomFor(chat, message), () => Infinity)
  const isWhole = expanded.tokens <= room
  if (!isWhole) {
    const sizes = Expanded.sizesText(expanded, room)
    events.push(notice(`This does not fit: ${sizes}`))
    if (confirmShortening !== undefined && !(yield* confirmShortening(sizes)))
      return stopped({ _tag: "UserCancelled" }, events)
    events.push(notice("They are sent shortened; the full text of each can be recalled by its handle."))
  }
  return {
    text,
    attached: [{ parts: expanded.parts, ...(isWhole ? {} : { room }) }, ...hints],
    events,
    isStopped: false
  }
})
