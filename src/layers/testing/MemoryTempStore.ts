import { Effect, Layer } from "effect"
import { type Hash, matches } from "../../domain/content/Handle.ts"
import { BlobMissing, HandleAmbiguous, TempStore, TempStoreError } from "../../services/session/TempStore.ts"
import * as Sha256 from "../platform/Sha256.ts"

const missing = (name: string) => new TempStoreError({ reason: new BlobMissing({ name }) })

/**
 * Blobs in memory, for the lifetime of the layer. Bytes are copied in and out, so that callers cannot change stored ones. Fails only with
 * BlobMissing and HandleAmbiguous.
 */
export const layer: Layer.Layer<TempStore> = Layer.sync(TempStore, () => {
  const blobs = new Map<Hash, Uint8Array>()
  return {
    hash: Sha256.hash,
    put: Effect.fn("TempStore.put")(function* (bytes) {
      const hash = yield* Sha256.hash(bytes)
      if (!blobs.has(hash)) blobs.set(hash, Uint8Array.from(bytes))
      return hash
    }),
    get: Effect.fn("TempStore.get")(function* (hash) {
      const bytes = blobs.get(hash)
      return bytes === undefined ? yield* missing(hash) : Uint8Array.from(bytes)
    }),
    resolve: Effect.fn("TempStore.resolve")(function* (handle) {
      const [found, another] = [...blobs.keys()].filter((hash) => matches(handle, hash))
      if (found === undefined) return yield* missing(handle)
      if (another !== undefined) {
        return yield* new TempStoreError({ reason: new HandleAmbiguous({ name: handle }) })
      }
      return found
    })
  }
})
