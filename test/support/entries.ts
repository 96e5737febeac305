import type { Content } from "../../src/domain/content/Content.ts"
import { Handle } from "../../src/domain/content/Handle.ts"
import { append, type Conversation, empty, type Entry, entryId } from "../../src/domain/conversation/Conversation.ts"

/** The handle of each part of these entries. */
export const handle = Handle.make("h_aaaaaaaaaa")

/** An entry whose parts have 20 tokens each. */
export const entryOf = (sequence: number, content: Content, more: Partial<Entry> = {}): Entry => ({
  id: entryId(sequence),
  content,
  tokens: content.parts.map(() => 20),
  handles: content.parts.map(() => handle),
  ...more
})

/** Entries from number 1 on. `tokens` are those of each first part; the others have none. */
export const entriesOf = (contents: ReadonlyArray<Content>, tokens?: number): ReadonlyArray<Entry> =>
  contents.map((content, at) => {
    const own = content.parts.map((_, part) => (part === 0 ? (tokens ?? 0) : 0))
    return entryOf(at + 1, content, tokens === undefined ? {} : { tokens: own })
  })

/** A conversation of these entries. */
export const conversationOf = (entries: ReadonlyArray<Entry>): Conversation => entries.reduce(append, empty)
