/** Hashes bytes and texts, large ones in slices between which the fiber can be interrupted. */

import { Effect } from "effect"
import { type Hash, hashOf } from "../../domain/content/Handle.ts"
import * as Sha256 from "../../domain/content/Sha256.ts"
import { encode } from "../../domain/text/Bytes.ts"

/** Bytes hashed between two points where the fiber can be interrupted: at most about 10 ms in Node. */
const slice = 4 * 1024 * 1024

const bytesOf = (value: Uint8Array | string): Uint8Array => (typeof value === "string" ? encode(value) : value)

/** The hash of small data, computed at once: 8 KiB take microseconds. */
export const hashSync = (value: Uint8Array | string): Hash => hashOf(Sha256.digestOf(bytesOf(value)))

/**
 * The hash of bytes or of a text (in UTF-8): what names a blob. Large ones are hashed in slices, between which the fiber can be interrupted.
 *
 * **Example** (Naming content by its hash)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Content, Session } from "palimpsest"
 *
 * const name = await Effect.runPromise(Session.hash("a long output"))
 * console.log(Content.matches(Content.handleOf(name), name)) // => true
 * ```
 */
export const hash = Effect.fnUntraced(function* (value: Uint8Array | string): Effect.fn.Return<Hash> {
  if (value.length <= slice) return hashSync(value)
  const bytes = bytesOf(value)
  const digest = Sha256.begin()
  for (let at = 0; at < bytes.length; at += slice) {
    digest.update(bytes.subarray(at, at + slice))
    yield* Effect.yieldNow
  }
  return hashOf(digest.digest())
})
