/** The state of one chat session, which the chat loop and the slash commands share; the form of a slash command; and what they show. */

import { Effect, type FileSystem, type Path, Ref, type Stdio } from "effect"
import type { ChildProcessSpawner } from "effect/process"
import { type Part, plainText } from "../../../domain/content/Content.ts"
import { entries, entryId } from "../../../domain/conversation/Conversation.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import type { Model } from "../../../services/model/Model.ts"
import type { Environment } from "../../../services/platform/Environment.ts"
import type { AgentHost } from "../../../services/runtime/AgentHost.ts"
import type { RuntimePlatform } from "../../../services/runtime/RuntimePlatform.ts"
import type { OpenHandlers, OpenSession } from "../../../services/runtime/SessionOpening.ts"
import type { SessionFiles } from "../../../services/session/SessionFiles.ts"
import type { SessionStore } from "../../../services/session/SessionStore.ts"
import type { BlobFolder, TempStore } from "../../../services/session/TempStore.ts"
import type { Settings } from "../../../services/settings/Settings.ts"
import type { ChatTerminal } from "../../../services/terminal/ChatTerminal.ts"
import type { TokenCounter } from "../../../services/tokens/TokenCounter.ts"
import type { Transcripts } from "../../../services/transcripts/Transcripts.ts"
import * as Output from "../../output/Output.ts"
import { noticeLine } from "../../output/RuntimeText.ts"
import { headingOf } from "../../output/SessionTable.ts"

/** Recorded answers that replace a model. */
export interface Recording {
  /** The name shown in place of the model's name. */
  readonly name: string
  /** The recorded user message that the next answer belongs to; empty when there is none. */
  readonly prompt: Effect.Effect<string>
  /** The recorded tool results that were sent next; undefined when a user message comes next. */
  readonly results: Effect.Effect<ReadonlyArray<Part> | undefined>
  /** Whether all recorded answers were given. */
  readonly hasEnded: Effect.Effect<boolean>
}

/** What happens after a session of the chat ends. */
export type NextSession =
  /** The user leaves the chat. `isUnanswered`: the last message from a pipe got no answer. */
  | { readonly _tag: "Leave"; readonly isUnanswered: boolean }
  /** Another session follows. `resume` undefined starts a new one; `first` is a message that a hook sends in it. */
  | { readonly _tag: "Switch"; readonly resume: string | undefined; readonly first?: string | undefined }

/** The services that a session and its slash commands use. */
export type Requirements =
  | BlobFolder
  | ChatTerminal
  | ChildProcessSpawner.ChildProcessSpawner
  | Environment
  | FileSystem.FileSystem
  | Model
  | Path.Path
  | RuntimePlatform
  | SessionFiles
  | SessionStore
  | Settings
  | Stdio.Stdio
  | TempStore
  | TokenCounter
  | Transcripts

/** One session of a chat in the terminal. */
export interface ChatSession {
  readonly id: string
  /** The open conversation. */
  readonly chat: OpenSession["chat"]
  /** The agent that answers messages. */
  readonly agent: AgentHost
  /** The recording that replaces the model, if any. */
  readonly recording: Recording | undefined
  readonly terminal: ChatTerminal["Service"]
  /** Writes the page that `inspect` makes of a log. */
  readonly writePage: (log: string, file: string) => Effect.Effect<void, { readonly message: string }>
  /** Text styles of the terminal. */
  readonly style: Output.Style
  /** Title of the session; undefined until it has one. */
  readonly title: Ref.Ref<string | undefined>
  /** The first words of the conversation, read once; they replace a missing title. */
  readonly firstWords: Ref.Ref<string | undefined>
  /** Text for the next prompt line. */
  readonly prefill: Ref.Ref<string | undefined>
  /** Where the log stood after the last `/compress`; -1 when another compression may differ. */
  readonly compressedAt: Ref.Ref<number>
  /** Shares of the window at which the user compressed by hand; undefined once a threshold was offered. */
  readonly handShares: Ref.Ref<ReadonlyArray<number> | undefined>
  /** Whether the last message from a pipe got no answer. */
  readonly isUnanswered: Ref.Ref<boolean>
  /** What the answers since the session was opened cost, in US dollars. */
  readonly cost: Ref.Ref<number>
}

/** Makes the shared state of one session. */
export const make = Effect.fnUntraced(function* (
  parts: Pick<ChatSession, "agent" | "chat" | "id" | "recording" | "terminal" | "writePage">,
  title: string | undefined
) {
  return {
    ...parts,
    style: parts.terminal.canColor ? Output.coloured : Output.plain,
    title: yield* Ref.make(title),
    firstWords: yield* Ref.make<string | undefined>(undefined),
    prefill: yield* Ref.make<string | undefined>(undefined),
    compressedAt: yield* Ref.make(-1),
    handShares: yield* Ref.make<ReadonlyArray<number> | undefined>([]),
    isUnanswered: yield* Ref.make(false),
    cost: yield* Ref.make(0)
  }
})

/** What is said while a session opens, on the terminal of the chat. */
export const openHandlers = (terminal: ChatTerminal["Service"]) =>
  ({
    notify: (notice) => terminal.note(noticeLine(notice)),
    progress: (label, work) => terminal.during(label, () => work)
  }) satisfies OpenHandlers

/** Shows a line beside the answers. */
export const say = ({ terminal }: ChatSession, line: string): Effect.Effect<void> => terminal.note(printableLine(line))

/** Table width where the output has no width of its own. */
const defaultTableColumns = 100

/** Columns that a table may take. */
export const tableColumns = ({ terminal }: ChatSession): Effect.Effect<number> =>
  Effect.map(terminal.columns, (columns) => (Number.isFinite(columns) ? columns : defaultTableColumns))

/** The position that the next message of the conversation gets. */
export const nextPosition = ({ chat }: ChatSession): Effect.Effect<number> =>
  Effect.map(chat.conversation, ({ next }) => next)

/** The session's name for the user: its title, else the first words of the conversation. */
export const nameOf = Effect.fnUntraced(function* ({ chat, firstWords, id, title }: ChatSession) {
  const name = (yield* Ref.get(title)) ?? (yield* Ref.get(firstWords))
  if (name !== undefined) return name
  const all = entries(yield* chat.conversation)
  const first = all.find(({ author, content }) => author === undefined && content.role === "user")
  if (first === undefined) return "new session"
  const firstPrompt = all[0]?.id === entryId(1) ? plainText(first.content) : id
  const words = headingOf({ title: undefined, firstPrompt })
  yield* Ref.set(firstWords, words)
  return words
})

/** `argument` is the trimmed text after the name. A failure is shown to the user, and the session continues. */
type Run<A> = (session: ChatSession, argument: string) => Effect.Effect<A, { readonly message: string }, Requirements>

interface Named {
  /** The word after the slash. */
  readonly name: string
  readonly aliases?: ReadonlyArray<string> | undefined
  /** The arguments as `/help` shows them; absent when there are none. */
  readonly usage?: string | undefined
  /** One line for `/help`. */
  readonly help: string
}

/**
 * A command that the user types after a slash. `SlashCommands.ts` lists them all. One with `run` stays
 * in the session; one with `leave` returns the next session, or undefined to stay.
 *
 * *Details*: any effect fits `Effect<void>`, and one of type void may hold a value, as `Ref.set` does. Hence `void | undefined`,
 * which refuses a session that would be ignored, and no `void` in `leave`.
 */
export type SlashCommand = Named &
  (
    | { readonly run: Run<void | undefined>; readonly leave?: never }
    | { readonly leave: Run<NextSession | undefined>; readonly run?: never }
  )
