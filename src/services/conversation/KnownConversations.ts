import { Semaphore } from "effect"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"

/** Finds which known conversation a caller continues, and keeps in memory what is known of each. */

/** Tokens of the first messages of a conversation, as its caller sends them. */
export interface CountedMessages {
  readonly messages: number
  /** Tokens of all messages that are not system messages. */
  readonly spoken: number
  readonly system: number
}

/** Before the first message. */
export const nothingCounted: CountedMessages = { messages: 0, spoken: 0, system: 0 }

/** What is known of a conversation at one of its beginnings. Mutable. */
export interface KnownBeginning<V, M> {
  readonly name: string
  /** The number of its messages. */
  readonly length: number
  /** As many of its messages as were counted, so that a continuation counts only what is new. */
  counted: CountedMessages
  /** What is sent in place of its first messages. */
  view: V | undefined
  /** The last measurement of a request with it. */
  measured: M | undefined
  /** Held during a compression. */
  readonly turn: Semaphore.Semaphore
}

/**
 * Conversations whose callers send them again from the first message. A conversation has no id: each of its beginnings has a name, made of the owner and
 * the messages, and a conversation is known by its longest beginning that was sent before. The names of all beginnings are given in order, that of no
 * messages first. Holds so many beginnings, and forgets those that were sent longest ago: the beginning at which conversations branch counts as sent with each new branch.
 */
export class KnownConversations<V extends CountedMessages, M = never> {
  private readonly held: BoundedMap<string, KnownBeginning<V, M>>

  constructor(size: number) {
    this.held = new BoundedMap(size)
  }

  /** Finds what is known of a conversation, and knows it from then on. */
  find(names: ReadonlyArray<string>): KnownBeginning<V, M> {
    const length = names.length - 1
    const from = this.longest(names)
    if (from?.length === length) return this.keep(from)
    const isBranch = from === undefined || from.view?.messages === from.length
    // A conversation that was continued is not looked up again. At a compression, conversations may branch.
    if (!isBranch) this.held.delete(from.name)
    else if (from !== undefined) this.keep(from)
    return this.keep({
      name: names[length] ?? "",
      length,
      counted: from?.counted ?? nothingCounted,
      view: from?.view,
      measured: from?.measured,
      turn: isBranch ? Semaphore.makeUnsafe(1) : from.turn
    })
  }

  /** Uses a compression by another caller if it stands for a longer beginning than the one that is known. */
  catchUp(names: ReadonlyArray<string>, known: KnownBeginning<V, M>): void {
    for (let at = names.length - 1; at > (known.view?.messages ?? 0); at -= 1) {
      const view = this.held.get(names[at] ?? "")?.view
      if (view?.messages !== at) continue
      known.view = view
      return
    }
  }

  /** Remembers a compression, for this conversation and for all with the same beginning. */
  remember(names: ReadonlyArray<string>, known: KnownBeginning<V, M>, view: V): void {
    known.view = view
    const { messages: length, spoken, system } = view
    const name = names[length] ?? ""
    const other = this.held.get(name)
    // A conversation that was continued meanwhile replaced this one. The continuation finds the compression here.
    if (name === known.name) this.keep(known)
    else if (other === undefined) {
      const counted = { messages: length, spoken, system }
      this.keep({ name, length, counted, view, measured: undefined, turn: Semaphore.makeUnsafe(1) })
    } else if ((other.view?.messages ?? 0) < length) other.view = view
  }

  private longest(names: ReadonlyArray<string>): KnownBeginning<V, M> | undefined {
    for (let at = names.length - 1; at > 0; at -= 1) {
      const known = this.held.get(names[at] ?? "")
      if (known !== undefined) return known
    }
    return undefined
  }

  private keep(known: KnownBeginning<V, M>): KnownBeginning<V, M> {
    if (known.length > 0) this.held.set(known.name, known)
    return known
  }
}
