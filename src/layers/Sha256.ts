import { Effect } from "effect"
import { createHash } from "node:crypto"
import { type Hash, hashOf } from "../domain/Handle.ts"

/** Bytes hashed between two pauses: at most some 10 ms (law 2). */
const slice = 4 * 1024 * 1024

/** The name of some bytes, computed at once: for small ones, a text of 8 KiB takes microseconds. */
export const hashSync = (bytes: Uint8Array): Hash => hashOf(createHash("sha256").update(bytes).digest())

/** The name of some bytes. Large ones are hashed in slices, with a chance for an interruption between any two. */
export const hash = Effect.fnUntraced(function* (bytes: Uint8Array): Effect.fn.Return<Hash> {
  if (bytes.length <= slice) return hashSync(bytes)
  const digest = createHash("sha256")
  for (let at = 0; at < bytes.length; at += slice) {
    digest.update(bytes.subarray(at, at + slice))
    yield* Effect.yieldNow
  }
  return hashOf(digest.digest())
})
