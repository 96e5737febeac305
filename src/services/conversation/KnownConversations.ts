/** Finds which known conversation a caller continues, and keeps in memory what is known of each. */

import { Semaphore } from "effect"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"

/** Tokens of the first messages of a conversation, as its caller sends them. */
export interface CountedMessages {
  readonly messages: number
  /** Tokens of all messages that are not system messages. */
  readonly dialogue: number
  readonly system: number
}

/** Before the first message. */
export const nothingCounted: CountedMessages = { messages: 0, dialogue: 0, system: 0 }

/** The beginning of a conversation that its caller sent last. Mutable. */
export interface SentBeginning<V, M> {
  readonly name: string
  /** The number of its messages. */
  readonly length: number
  /** As many of its messages as were counted, so that a continuation counts only what is new. */
  counted: CountedMessages
  /** What was sent in place of its first messages. It stays the same, whoever compresses more of them, until this conversation has to be compressed. */
  view: V | undefined
  /** The last measurement of a request with it. */
  measured: M | undefined
  /** Held during a compression. */
  readonly turn: Semaphore.Semaphore
}

/** Returns what is held for the longest of these beginnings, but for the empty one. It counts as used now. */
const findLongest = <A>(held: BoundedMap<string, A>, names: ReadonlyArray<string>): A | undefined => {
  for (let at = names.length - 1; at > 0; at -= 1) {
    const name = names[at] ?? ""
    const value = held.get(name)
    if (value === undefined) continue
    held.set(name, value)
    return value
  }
  return undefined
}

/**
 * Conversations whose callers send them again from the first message. A conversation has no id: each of its beginnings has a name, made of the owner and
 * the messages, and a conversation is known by its longest beginning that was compressed or sent before. The names of all beginnings are given in order,
 * that of no messages first. Holds so many of both, and forgets those that were used longest ago.
 */
export class KnownConversations<V extends CountedMessages, M = never> {
  /** What is sent in place of beginnings. */
  private readonly views: BoundedMap<string, V>
  private readonly sent: BoundedMap<string, SentBeginning<V, M>>

  constructor(size: number) {
    this.views = new BoundedMap(size)
    this.sent = new BoundedMap(size)
  }

  /** Returns what is sent in place of the longest beginning that was compressed, by whatever conversation. */
  view(names: ReadonlyArray<string>): V | undefined {
    return findLongest(this.views, names)
  }

  /** Finds the beginning that was sent last, and knows the whole conversation from then on. */
  find(names: ReadonlyArray<string>): SentBeginning<V, M> {
    const length = names.length - 1
    const before = findLongest(this.sent, names)
    if (before?.length === length) return before
    const view = this.view(names)
    // A conversation that was continued is not looked up again. At a compression, conversations may branch.
    const continued = before !== undefined && before.length > (view?.messages ?? 0) ? before : undefined
    if (continued !== undefined) this.sent.delete(continued.name)
    const counted = before?.counted ?? nothingCounted
    const beginning: SentBeginning<V, M> = {
      name: names[length] ?? "",
      length,
      counted: view === undefined || view.messages < counted.messages ? counted : view,
      view: continued === undefined ? view : continued.view,
      measured: before?.measured,
      turn: continued?.turn ?? Semaphore.makeUnsafe(1)
    }
    if (length > 0) this.sent.set(beginning.name, beginning)
    return beginning
  }

  /** Remembers a compression for all conversations with the same beginning. `before` is the one that it replaces; any other that stands for as many messages stays. */
  remember(names: ReadonlyArray<string>, view: V, before?: V): void {
    const name = names[view.messages] ?? ""
    const known = this.views.get(name)
    if (view.messages > 0 && (known === undefined || known === before)) this.views.set(name, view)
  }
}
