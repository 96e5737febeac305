import { Effect, type FileSystem, type Path } from "effect"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import type { Settings } from "../domain/Settings.ts"
import { estimateText } from "../domain/Tokens.ts"
import * as AtReferences from "../services/AtReferences.ts"
import type { Attachment, Chat } from "../services/Chat.ts"
import type { TokenCounter } from "../services/TokenCounter.ts"
import { Workspace } from "../services/Workspace.ts"
import { plural } from "./Output.ts"

/** A message of the command line that names files with `@`: they are read, weighed and sent along (spec 13). */

/** How that is done. */
export interface MentionOptions {
  readonly chat: Chat["Service"]
  readonly workspace: Workspace["Service"]
  readonly files: Settings["files"]
  /** Agents that can be named in the same way. */
  readonly agents: ReadonlyArray<string>
  /** The beginning of the message that the person typed; nothing else is searched or changed. Absent: all of it. */
  readonly typed?: string | undefined
  /** Whether what is not found under its path is looked for by its name; absent: it is. */
  readonly search?: boolean | undefined
  /** Whether what does not fit may be sent shortened; absent: it is. */
  readonly shorten?: ((sizes: string) => Effect.Effect<boolean>) | undefined
}

/** A message as it is sent. */
export interface Mentioned {
  readonly text: string
  readonly attached: ReadonlyArray<Attachment>
  /** What is shown before. */
  readonly events: ReadonlyArray<ChatEvent>
  /** Nothing is sent: it went wrong, or the person does not want it shortened. The last event says so. */
  readonly isStopped: boolean
}

/** Of the window, what files may fill: the rest is for what was said, and for what is not known exactly. */
const most = 0.9
/** What a compression can make free at least. */
const least = 0.4

/** What was not read as it was meant is told one by one up to so many. */
const mostNamed = 5

/** Tokens that files of the next message may have. */
const roomFor = Effect.fnUntraced(function* (chat: Chat["Service"], message: string) {
  const { limit, scale = 1, tokens } = yield* chat.usage
  const room = Math.max(limit * most - tokens, limit * least)
  return Math.max(0, Math.floor(room / scale - estimateText(message)))
})

const stopped = (event: ChatEvent, before: ReadonlyArray<ChatEvent> = []): Mentioned => ({
  text: "",
  attached: [],
  events: [...before, event],
  isStopped: true
})

const notice = (message: string): ChatEvent => ({ _tag: "Notice", source: "files", message })

const agentHint = (names: ReadonlyArray<string>): Attachment => ({
  parts: [
    {
      text: `The person names ${names.length === 1 ? "the agent" : "the agents"} ${names.join(", ")}: give the work to ${names.length === 1 ? "it" : "them"}.`
    }
  ]
})

/** Reads what a message names. `id` stands for the reading where it is shown. */
export const mentioned = Effect.fn("Mentions.mentioned")(function* (
  message: string,
  id: string,
  { agents, chat, files, search, shorten, typed = message, workspace }: MentionOptions
): Effect.fn.Return<Mentioned, never, FileSystem.FileSystem | Path.Path | TokenCounter> {
  // What was piped in or made by the program says nothing for the person (law 6).
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
  const more = notes.length - mostNamed
  const events = [
    ...AtReferences.events(expanded, id),
    ...notes.slice(0, mostNamed).map((note) => notice(note.text)),
    ...(more > 0 ? [notice(`${plural(more, "more was", "more were")} not read, or only in part`)] : [])
  ]
  const hints = expanded.agents.length === 0 ? [] : [agentHint(expanded.agents)]
  if (expanded.parts.length === 0) return { text, attached: hints, events, isStopped: false }
  const room = yield* Effect.orElseSucceed(roomFor(chat, message), () => Infinity)
  const isWhole = expanded.tokens <= room
  if (!isWhole) {
    const told = AtReferences.sizes(expanded, room)
    events.push(notice(`This does not fit: ${told}`))
    if (shorten !== undefined && !(yield* shorten(told))) return stopped({ _tag: "UserCancelled" }, events)
    events.push(notice("They are sent shortened; what was read of each can be recalled by its handle."))
  }
  return {
    text,
    attached: [{ parts: expanded.parts, ...(isWhole ? {} : { room }) }, ...hints],
    events,
    isStopped: false
  }
})
