import { Effect, type FileSystem, type Path } from "effect"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import type { Settings } from "../domain/Settings.ts"
import { estimateText } from "../domain/Tokens.ts"
import * as AtReferences from "../services/AtReferences.ts"
import type { Attachment, Chat } from "../services/Chat.ts"
import type { TokenCounter } from "../services/TokenCounter.ts"
import { Workspace } from "../services/Workspace.ts"

/** A message of the command line that names files with `@`: they are read, weighed and sent along (spec 13). */

/** How that is done. */
export interface MentionOptions {
  readonly chat: Chat["Service"]
  readonly workspace: Workspace["Service"]
  readonly files: Settings["files"]
  /** Agents that can be named in the same way. */
  readonly agents: ReadonlyArray<string>
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

/** What was left out is told one by one up to so many. */
const mostNamed = 5

/** Tokens that files of the next message may have. */
const roomFor = Effect.fnUntraced(function* (chat: Chat["Service"], message: string) {
  const { limit, tokens } = yield* chat.usage
  return Math.max(0, Math.floor(Math.max(limit * most - tokens, limit * least) - estimateText(message)))
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
  { agents, chat, files, shorten, workspace }: MentionOptions
): Effect.fn.Return<Mentioned, never, FileSystem.FileSystem | Path.Path | TokenCounter> {
  const read = yield* Effect.result(
    AtReferences.expand(message, { ...files, agents }).pipe(Effect.provideService(Workspace, workspace))
  )
  if (read._tag === "Failure") {
    return stopped({ _tag: "Error", reason: read.failure._tag, message: read.failure.message })
  }
  const expanded = read.success
  // The last one stands in the line of the reading itself.
  const skipped = expanded.skipped.slice(0, -1)
  const events = [
    ...AtReferences.events(expanded, id),
    ...skipped.slice(0, mostNamed).map(({ path, why }) => notice(`${path} was left out: ${why}`)),
    ...(skipped.length > mostNamed ? [notice(`${skipped.length - mostNamed} more were left out`)] : [])
  ]
  const hints = expanded.agents.length === 0 ? [] : [agentHint(expanded.agents)]
  if (expanded.parts.length === 0) return { text: expanded.text, attached: hints, events, isStopped: false }
  const room = yield* Effect.orElseSucceed(roomFor(chat, message), () => Infinity)
  const isWhole = expanded.tokens <= room
  if (!isWhole) {
    const told = AtReferences.sizes(expanded, room)
    events.push(notice(`This does not fit: ${told}`))
    if (shorten !== undefined && !(yield* shorten(told))) return stopped({ _tag: "UserCancelled" }, events)
    events.push(notice("They are sent shortened; the whole of each can be recalled by its handle."))
  }
  return {
    text: expanded.text,
    attached: [{ parts: expanded.parts, ...(isWhole ? {} : { room }) }, ...hints],
    events,
    isStopped: false
  }
})
