import { Effect } from "effect"
import { createHash, hash as digestOf } from "node:crypto"
import { encode } from "../domain/Bytes.ts"
import { type Hash, hashOf } from "../domain/Handle.ts"

/** Bytes hashed between two pauses: at most some 10 ms (law 2). */
const slice = 4 * 1024 * 1024

/** The name of some bytes, computed at once: for small ones, a text of 8 KiB takes microseconds. */
export const hashSync = (bytes: Uint8Array | string): Hash => hashOf(digestOf("sha256", bytes, "buffer"))

/**
 * The name of some bytes, or of a text's. Large ones are hashed in slices, with a chance for an interruption between any
 * two.
 */
export const hash = Effect.fnUntraced(function* (value: Uint8Array | string): Effect.fn.Return<Hash> {
  // A text that is not well-formed stands for bytes that Node would replace.
  if (value.length <= slice && (typeof value !== "string" || value.isWellFormed())) return hashSync(value)
  const bytes = typeof value === "string" ? encode(value) : value
  const digest = createHash("sha256")
  for (let at = 0; at < bytes.length; at += slice) {
    digest.update(bytes.subarray(at, at + slice))
    yield* Effect.yieldNow
  }
  return hashOf(digest.digest())
})
