import type { Content } from "../../domain/content/Content.ts"
import type { Hash } from "../../domain/content/Handle.ts"
import type { Draft } from "../../domain/conversation/Conversation.ts"

/** The hashes that handles were made of, so that storing a part does not hash it again. */

interface Known {
  readonly source: Draft["source"]
  readonly hashes: ReadonlyArray<Hash>
}

const known = new WeakMap<Content, Known>()

/** Remembers the hashes of a message's parts for as long as the message is in memory. */
export const rememberHashes = ({ content, source }: Draft, hashes: ReadonlyArray<Hash>): void => {
  known.set(content, { source, hashes })
}

/** The hash of a part, if it was computed before: of the same message, read from the same JSON texts. */
export const hashOfPart = ({ content, source }: Draft, part: number): Hash | undefined => {
  const found = known.get(content)
  return found !== undefined && found.source === source ? found.hashes[part] : undefined
}
