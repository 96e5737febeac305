/**
 * Recognises conversations by their prefixes. Each prefix has a name: the hash of the previous prefix's name and the
 * bytes of the last message. A client that sends its whole history each time therefore names every earlier request of
 * the same conversation.
 */

import * as Hex from "effect/encoding/Hex"
import { digestOf } from "../content/Sha256.ts"
import { encode } from "../text/Bytes.ts"
import { withoutCacheMarks } from "../wire/anthropic/CacheMarks.ts"

/** The hash of a text, by which what is kept of conversations is named: SHA-256 in hexadecimal digits. */
export const hashText = (text: string): string => Hex.encode(digestOf(encode(text)))

/** Returns the names of all prefixes of a conversation, starting with the empty one. */
export const beginningsOf = (seed: string, messages: ReadonlyArray<string>): ReadonlyArray<string> => {
  let name = hashText(seed)
  const names = [name]
  for (const message of messages) {
    name = hashText(`${name}\n${withoutCacheMarks(message)}`)
    names.push(name)
  }
  return names
}
