import { Effect, Layer } from "effect"
import type { Hash } from "../../domain/content/Handle.ts"
import { TempStore } from "../../services/session/TempStore.ts"

/** Blobs in memory, for the lifetime of the layer. Fails only with `BlobMissing` and `HandleAmbiguous`. */
export const layer: Layer.Layer<TempStore> = Layer.sync(TempStore, () => {
  const blobs = new Map<Hash, Uint8Array>()
  return TempStore.fromBlobs({
    put: (hash, bytes) => Effect.sync(() => blobs.has(hash) || blobs.set(hash, bytes)),
    get: (hash) => Effect.sync(() => blobs.get(hash)),
    find: (prefix) => Effect.sync(() => [...blobs.keys()].filter((hash) => hash.startsWith(prefix)))
  })
})
