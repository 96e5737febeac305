/** Maps the history of an `effect/ai` chat to the view of a session: the places of its system messages, and the entry of each message. */

import type * as Prompt from "effect/ai/Prompt"
import type { Content } from "../../domain/content/Content.ts"
import { arrange } from "../../domain/conversation/ArrangedMessages.ts"
import type { Conversation, Entry, EntryId, ViewItem } from "../../domain/conversation/Conversation.ts"
import { projectMessages } from "../../domain/conversation/Projection.ts"
import { isPromptContent, systemBefore, type DialogueMessage, toContent } from "../../domain/effect-ai/PromptContent.ts"
import { toMessages, viewMessage } from "./LanguageModelBridge.ts"
import { sharedMessages } from "./PromptNames.ts"

/** A message of the history, and the entry of the session that holds it. System messages have none. */
export interface HistoryMessage {
  readonly message: Prompt.Message
  readonly entry: EntryId | undefined
  /** Whether it is a system message whose neighbors left the view. It follows the leading ones now. */
  readonly isMoved: boolean
}

/** Whether a message is a system message. */
export const isSystem = (message: Prompt.Message): message is Prompt.SystemMessage => message.role === "system"
/** Whether a message is any but a system message. */
export const isDialogue = (message: Prompt.Message): message is DialogueMessage => message.role !== "system"

/** The number of system messages before all other messages. */
const frontOf = (history: ReadonlyArray<Prompt.Message>): number => {
  const first = history.findIndex(isDialogue)
  return first < 0 ? history.length : first
}

/** The positions of the system messages that were moved to the front of a history, as far as they are still there. */
export const movedIn = (
  history: ReadonlyArray<Prompt.Message>,
  heldMessages: ReadonlyArray<HistoryMessage>
): ReadonlySet<number> => {
  const moved = heldMessages.filter(({ isMoved }) => isMoved).map(({ message }) => message)
  const positions = new Set<number>()
  for (let at = frontOf(history) - 1; at >= 0; at -= 1) {
    if (moved.length === 0 || history[at] !== moved.at(-1)) continue
    moved.pop()
    positions.add(at)
  }
  return positions
}

/** The system messages of a history. */
export interface SystemMessages {
  /** Before all other messages, without those that were moved there. */
  readonly leading: ReadonlyArray<Prompt.SystemMessage>
  /** For each other message, those right before it; none for the first, which follows the leading ones. */
  readonly between: ReadonlyArray<ReadonlyArray<Prompt.SystemMessage>>
  /** After the last other message. */
  readonly trailing: ReadonlyArray<Prompt.SystemMessage>
}

/** Finds the system messages of a history. */
export const systemsOf = (
  history: ReadonlyArray<Prompt.Message>,
  heldMessages: ReadonlyArray<HistoryMessage>
): SystemMessages => {
  const moved = movedIn(history, heldMessages)
  const before: Array<ReadonlyArray<Prompt.SystemMessage>> = []
  let waiting: Array<Prompt.SystemMessage> = []
  for (const [at, message] of history.entries()) {
    if (!isSystem(message)) {
      before.push(waiting)
      waiting = []
    } else if (!moved.has(at)) waiting.push(message)
  }
  const [leading = waiting, ...others] = before
  return { leading, between: [[], ...others], trailing: before.length === 0 ? [] : waiting }
}

/** The number of recorded messages that a history still begins with. Messages of one entry are kept or removed together. */
export const recordedPrefix = (
  recorded: ReadonlyArray<HistoryMessage>,
  dialogue: ReadonlyArray<Prompt.Message>
): number => {
  let shared = sharedMessages(
    recorded.map(({ message }) => message),
    dialogue
  )
  while (shared > 0 && recorded[shared]?.entry === recorded[shared - 1]?.entry) shared -= 1
  return shared
}

/** The messages made for the entries of a session. The same entry is the same object every time, as long as the session is held. */
export interface EntryMessages {
  readonly dialogue: WeakMap<Content, ReadonlyArray<Prompt.Message>>
  /** The system messages before an entry. */
  readonly systems: WeakMap<Content, ReadonlyArray<Prompt.SystemMessage>>
}

/** No messages. */
export const makeEntryMessages = (): EntryMessages => ({ dialogue: new WeakMap(), systems: new WeakMap() })

/** Converts a message to the content of an entry to be made. */
export const takeMessage = (
  { dialogue, systems }: EntryMessages,
  message: DialogueMessage,
  before: ReadonlyArray<Prompt.SystemMessage>
): Content => {
  const content = toContent(message, before)
  dialogue.set(content, [message])
  systems.set(content, before)
  return content
}

/** Forgets the system messages before an entry that the caller removed. Those that the caller kept stand where the caller put them. */
export const releaseEntry = ({ systems }: EntryMessages, { content }: Entry): void => void systems.set(content, [])

const systemsBefore = ({ systems }: EntryMessages, content: Content): ReadonlyArray<Prompt.SystemMessage> => {
  const before = systems.get(content) ?? systemBefore(content)
  systems.set(content, before)
  return before
}

/** Contents that were not made from a prompt: content inserted by compressions, and sessions of other programs. */
const foreignMessages = (conversation: Conversation): ReadonlyMap<EntryId, ReadonlyArray<Prompt.Message>> => {
  const sent = projectMessages(conversation)
  const messages = toMessages(sent.map(({ content }) => content))
  return new Map(sent.map(({ entry }, index) => [entry, messages[index] ?? []]))
}

/** The messages of an entry as the view shows it, made at most once for a whole entry. */
const shownMessages = (
  { dialogue }: EntryMessages,
  item: ViewItem,
  foreign: () => ReadonlyMap<EntryId, ReadonlyArray<Prompt.Message>>
): ReadonlyArray<Prompt.Message> => {
  const { content, id } = item.entry
  const isWhole = item.shortened.size === 0
  const cached = isWhole ? dialogue.get(content) : undefined
  if (cached !== undefined) return cached
  const own = isPromptContent(content) ? viewMessage(item) : undefined
  const messages = isPromptContent(content) ? (own === undefined ? [] : [own]) : (foreign().get(id) ?? [])
  if (isWhole) dialogue.set(content, messages)
  return messages
}

/** Returns the view of a session as a history, with the system messages for which `keeps` holds. */
export const historyOf = (
  made: EntryMessages,
  conversation: Conversation,
  by: Pick<SystemMessages, "leading" | "trailing"> & { readonly keeps: (message: Prompt.SystemMessage) => boolean }
): ReadonlyArray<HistoryMessage> => {
  let messages: ReturnType<typeof foreignMessages> | undefined
  const foreign = () => (messages ??= foreignMessages(conversation))
  const plain = (isMoved: boolean) => (message: Prompt.Message) => ({ message, entry: undefined, isMoved })
  return arrange<HistoryMessage>(conversation, {
    leading: by.leading.map(plain(false)),
    before: ({ content }, isShown) => systemsBefore(made, content).filter(by.keeps).map(plain(!isShown)),
    shown: (item) =>
      shownMessages(made, item, foreign).map((message) => ({ message, entry: item.entry.id, isMoved: false })),
    trailing: by.trailing.map(plain(false))
  })
}
