/** How a message reaches the agent: with the files that it references, and with what changed since the last one. */

import { Effect, type FileSystem, type Path, Stream } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { type Part, text } from "../../domain/content/Content.ts"
import type { Settings } from "../../domain/settings/Settings.ts"
import { estimateText } from "../../domain/tokens/Tokens.ts"
import * as Agent from "../agent/Agent.ts"
import type { Profile } from "../agent/AgentRun.ts"
import type { Attachment } from "../chat/AppendMessages.ts"
import type { Chat } from "../chat/Chat.ts"
import * as AtReferences from "../references/AtReferences.ts"
import * as Expanded from "../references/ExpandedMessage.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { Approval } from "../tools/Approval.ts"
import { Workspace } from "../workspace/Workspace.ts"
import type { AgentContext } from "./AgentContext.ts"
import type { AgentHost } from "./AgentHost.ts"

/** How references are expanded. */
interface ReferenceOptions {
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
interface ExpandedMessage {
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

const notice = (source: string, message: string): ChatEvent => ({ _tag: "Notice", source, message })

const agentHint = (names: ReadonlyArray<string>): Attachment => ({
  parts: [
    {
      text: `The user names ${names.length === 1 ? "the agent" : "the agents"} ${names.join(", ")}: give the work to ${names.length === 1 ? "it" : "them"}.`
    }
  ]
})

/** Reads what a message references. `id` identifies the reading in the events. */
const expandReferences = Effect.fn("MessageReferences.expandReferences")(function* (
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
    ...notes.slice(0, maxNamedNotes).map((note) => notice("files", note.text)),
    ...(more > 0 ? [notice("files", `${more} more ${more === 1 ? "was" : "were"} not read, or only in part`)] : [])
  ]
  const hints = expanded.agents.length === 0 ? [] : [agentHint(expanded.agents)]
  if (expanded.parts.length === 0) return { text, attached: hints, events, isStopped: false }
  const room = yield* Effect.orElseSucceed(roomFor(chat, message), () => Infinity)
  const isWhole = expanded.tokens <= room
  if (!isWhole) {
    const sizes = Expanded.sizesText(expanded, room)
    events.push(notice("files", `This does not fit: ${sizes}`))
    if (confirmShortening !== undefined && !(yield* confirmShortening(sizes)))
      return stopped({ _tag: "UserCancelled" }, events)
    events.push(notice("files", "They are sent shortened; the full text of each can be recalled by its handle."))
  }
  return {
    text,
    attached: [{ parts: expanded.parts, ...(isWhole ? {} : { room }) }, ...hints],
    events,
    isStopped: false
  }
})

/** What sending needs. */
export interface MessageSenderOptions {
  readonly profile: Profile
  readonly approval: Approval["Service"]
  readonly context: AgentContext
  /** How referenced files are read. */
  readonly references: Omit<ReferenceOptions, "typed">
  /** What hooks add before the first message. */
  readonly opening: string | undefined
}

const wasCancelled: ChatEvent = { _tag: "UserCancelled" }

/** Makes the function that sends messages. What goes along once goes until a message with it was answered. */
export const make = Effect.fn("MessageSender.make")(function* ({
  approval,
  context,
  opening: openingText,
  profile,
  references
}: MessageSenderOptions): Effect.fn.Return<AgentHost["run"], never, FileSystem.FileSystem | Path.Path | TokenCounter> {
  const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path | TokenCounter>()
  let opening: ReadonlyArray<Attachment> = openingText === undefined ? [] : [{ parts: [text(openingText)] }]
  let count = 0

  /** A message with everything that goes along. */
  const prepare = Effect.fnUntraced(function* (message: string | ReadonlyArray<Part>, typed: string | undefined) {
    const refreshed = yield* Effect.result(context.refresh)
    const notices = refreshed._tag === "Success" ? refreshed.success : [refreshed.failure.message]
    const editor = yield* context.editorUpdates
    count += 1
    const sent =
      typeof message === "string"
        ? yield* expandReferences(message, `at-${count}`, { ...references, typed })
        : { text: message, attached: [], events: [], isStopped: false }
    const events = [
      ...notices.map((line) => notice("system prompt", line)),
      ...(editor.problem === undefined ? [] : [notice("editor", editor.problem)]),
      ...sent.events
    ]
    return { ...sent, editor, events }
  }, Effect.provideContext(platform))

  return (message, { typed, ...options } = {}) => {
    const { cancel = Effect.never } = options
    const working = Effect.map(prepare(message, typed), ({ attached, editor, events, isStopped, text: sent }) => {
      const before = Stream.fromIterable(events)
      if (isStopped) return before
      const markAnswered = Effect.suspend(() => {
        opening = []
        return editor.markSent
      })
      return Stream.concat(
        before,
        Agent.run(profile, sent, { ...options, attached: [...opening, ...editor.attached, ...attached] }).pipe(
          Stream.tap((event) => (event._tag === "Finished" ? markAnswered : Effect.void)),
          Stream.provideService(Approval, approval)
        )
      )
    })
    return Stream.unwrap(Effect.raceFirst(working, Effect.as(cancel, Stream.make(wasCancelled))))
  }
})
