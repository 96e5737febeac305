import { Effect } from "effect"
import { createHash, hash as digestOf } from "node:crypto"
import { type Hash, hashOf } from "../../domain/content/Handle.ts"
import { encode } from "../../domain/text/Bytes.ts"

/** Bytes hashed between two points where the fiber can be interrupted: at most about 10 ms. */
const slice = 4 * 1024 * 1024

/** The hash of small data, computed at once: 8 KiB take microseconds. */
export const hashSync = (bytes: Uint8Array | string): Hash => hashOf(digestOf("sha256", bytes, "buffer"))

/** The hash of bytes or of a text. Large ones are hashed in slices, between which the fiber can be interrupted. */
export const hash = Effect.fnUntraced(function* (value: Uint8Array | string): Effect.fn.Return<Hash> {
  // A text that is not well-formed represents bytes that Node would replace.
  if (value.length <= slice && (typeof value !== "string" || value.isWellFormed())) return hashSync(value)
  const bytes = typeof value === "string" ? encode(value) : value
  const digest = createHash("sha256")
  for (let at = 0; at < bytes.length; at += slice) {
    digest.update(bytes.subarray(at, at + slice))
    yield* Effect.yieldNow
  }
  return hashOf(digest.digest())
})
