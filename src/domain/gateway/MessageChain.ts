/**
 * Recognises conversations by how they begin: each beginning has a name, the hash of the name before it and the bytes of its last
 * message. A client that sends all of its history each time so names every earlier request of the same conversation.
 */

/** Hashes a text. */
export type HashText = (text: string) => string

/** Cache marks, which clients move from request to request. White space is that of the client, so both sides are matched. */
const cacheMark = /,\s*"cache_control"\s*:\s*\{[^{}]*\}|"cache_control"\s*:\s*\{[^{}]*\}\s*,?/g

/** A message without its cache marks. */
export const withoutCacheMarks = (message: string): string =>
  message.includes('"cache_control"') ? message.replace(cacheMark, "") : message

/** The names of all beginnings of a conversation, from the empty one on. */
export const beginningsOf = (seed: string, messages: ReadonlyArray<string>, hash: HashText): ReadonlyArray<string> => {
  let name = hash(seed)
  const names = [name]
  for (const message of messages) {
    name = hash(`${name}\n${withoutCacheMarks(message)}`)
    names.push(name)
  }
  return names
}
