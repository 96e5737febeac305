import { withoutCacheMarks } from "../wire/anthropic/CacheMarks.ts"

/**
 * Recognises conversations by their prefixes. Each prefix has a name: the hash of the previous prefix's name and the
 * bytes of the last message. A client that sends its whole history each time therefore names every earlier request of
 * the same conversation.
 */

/** A function that hashes a text. */
export type HashText = (text: string) => string

/** Returns the names of all prefixes of a conversation, starting with the empty one. */
export const beginningsOf = (seed: string, messages: ReadonlyArray<string>, hash: HashText): ReadonlyArray<string> => {
  let name = hash(seed)
  const names = [name]
  for (const message of messages) {
    name = hash(`${name}\n${withoutCacheMarks(message)}`)
    names.push(name)
  }
  return names
}
