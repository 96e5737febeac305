import type * as Prompt from "effect/ai/Prompt"
import type { Content } from "../../domain/content/Content.ts"
import type { Conversation, Entry, EntryId, ViewItem } from "../../domain/conversation/Conversation.ts"
import { projectMessages } from "../../domain/conversation/Projection.ts"
import { isPromptContent, systemBefore, type SpokenMessage, toContent } from "../../domain/effect-ai/PromptContent.ts"
import { arrange, viewMessage } from "../../domain/effect-ai/PromptView.ts"
import { toMessages } from "./LanguageModelBridge.ts"

/** Maps the history of an `effect/ai` chat to the view of a session: the places of its system messages, and the entry of each message. */

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
export const isSpoken = (message: Prompt.Message): message is SpokenMessage => message.role !== "system"

/** The number of system messages before all other messages. */
const frontOf = (history: ReadonlyArray<Prompt.Message>): number => {
  const first = history.findIndex(isSpoken)
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

/** The leading system messages, without those that were moved there. */
export const leadingOf = (
  history: ReadonlyArray<Prompt.Message>,
  heldMessages: ReadonlyArray<HistoryMessage>
): ReadonlyArray<Prompt.SystemMessage> => {
  const moved = movedIn(history, heldMessages)
  return history
    .slice(0, frontOf(history))
    .filter((_, at) => !moved.has(at))
    .filter(isSystem)
}

/** For each other message, the system messages right before it; none for the first, which follows the leading ones. */
export const systemsBetween = (
  history: ReadonlyArray<Prompt.Message>
): ReadonlyArray<ReadonlyArray<Prompt.SystemMessage>> => {
  const between: Array<ReadonlyArray<Prompt.SystemMessage>> = []
  let waiting: Array<Prompt.SystemMessage> = []
  for (const message of history) {
    if (isSystem(message)) waiting.push(message)
    else {
      between.push(between.length === 0 ? [] : waiting)
      waiting = []
    }
  }
  return between
}

/** The system messages after the last other message. */
export const trailingOf = (history: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.SystemMessage> => {
  const last = history.findLastIndex(isSpoken)
  return last < 0 ? [] : history.slice(last + 1).filter(isSystem)
}

/**
 * Makes the messages of a session's view. The same entry is the same object every time, as long as the session is held.
 */
export const makeHistory = () => {
  const spoken = new WeakMap<Content, ReadonlyArray<Prompt.Message>>()
  const systems = new WeakMap<Content, ReadonlyArray<Prompt.SystemMessage>>()

  const hold = (content: Content, before: ReadonlyArray<Prompt.SystemMessage>) => {
    systems.set(content, before)
    return before
  }
  const before = (content: Content) => systems.get(content) ?? hold(content, systemBefore(content))

  /** A message as the content of an entry to be made. */
  const take = (message: SpokenMessage, systemMessages: ReadonlyArray<Prompt.SystemMessage>): Content => {
    const content = toContent(message, systemMessages)
    spoken.set(content, [message])
    hold(content, systemMessages)
    return content
  }

  /** Contents that were not made from a prompt: content inserted by compressions, and sessions of other programs. */
  const foreign = (conversation: Conversation): ((item: ViewItem) => ReadonlyArray<Prompt.Message>) => {
    let made: ReadonlyMap<EntryId, ReadonlyArray<Prompt.Message>> | undefined
    const all = () => {
      const sent = projectMessages(conversation)
      const messages = toMessages(sent.map(({ content }) => content))
      return new Map(sent.map(({ entry }, index) => [entry, messages[index] ?? []]))
    }
    return ({ entry, shortened }) => {
      const cached = shortened.size === 0 ? spoken.get(entry.content) : undefined
      if (cached !== undefined) return cached
      made ??= all()
      const messages = made.get(entry.id) ?? []
      if (shortened.size === 0) spoken.set(entry.content, messages)
      return messages
    }
  }

  const own = (item: ViewItem): ReadonlyArray<Prompt.Message> => {
    const { content } = item.entry
    const cached = item.shortened.size === 0 ? spoken.get(content) : undefined
    if (cached !== undefined) return cached
    const message = viewMessage(item)
    const messages = message === undefined ? [] : [message]
    if (item.shortened.size === 0) spoken.set(content, messages)
    return messages
  }

  /** The view as a history, with the system messages for which `isWanted` holds. */
  const history = (
    conversation: Conversation,
    by: {
      readonly leading: ReadonlyArray<Prompt.SystemMessage>
      readonly isWanted: (message: Prompt.SystemMessage) => boolean
      readonly trailing: ReadonlyArray<Prompt.SystemMessage>
    }
  ): ReadonlyArray<HistoryMessage> => {
    const others = foreign(conversation)
    const plain = (isMoved: boolean) => (message: Prompt.Message) => ({ message, entry: undefined, isMoved })
    return arrange<HistoryMessage>(conversation, {
      leading: by.leading.map(plain(false)),
      before: ({ content }, isShown) => before(content).filter(by.isWanted).map(plain(!isShown)),
      shown: (item) =>
        (isPromptContent(item.entry.content) ? own(item) : others(item)).map((message) => ({
          message,
          entry: item.entry.id,
          isMoved: false
        })),
      trailing: by.trailing.map(plain(false))
    })
  }

  /** Forgets the system messages before an entry that the caller removed. Those that the caller kept stand where the caller put them. */
  const release = ({ content }: Entry) => {
    hold(content, [])
  }

  return { history, release, take }
}
