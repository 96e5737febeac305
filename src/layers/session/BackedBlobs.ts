import { Effect } from "effect"
import { isHandle } from "../../domain/content/Handle.ts"
import type { SessionBacking } from "../../services/session/SessionBacking.ts"
import type { SessionStoreError } from "../../services/session/SessionStore.ts"
import {
  BlobDamaged,
  BlobMissing,
  BlobUnavailable,
  HandleAmbiguous,
  type TempStore,
  TempStoreError
} from "../../services/session/TempStore.ts"
import * as Sha256 from "../platform/Sha256.ts"

const missing = (name: string) => new TempStoreError({ reason: new BlobMissing({ name }) })

const blobUnavailable = (operation: string) => (cause: SessionStoreError) =>
  new TempStoreError({ reason: new BlobUnavailable({ operation, message: cause.message, cause }) })

/** The blobs of one session. */
export const blobsOf = (backing: SessionBacking["Service"], id: string): TempStore["Service"] => ({
  hash: Sha256.hash,
  put: Effect.fn("TempStore.put")(function* (bytes) {
    const hash = yield* Sha256.hash(bytes)
    yield* Effect.mapError(backing.putBlob(id, hash, bytes), blobUnavailable("put"))
    return hash
  }),
  get: Effect.fn("TempStore.get")(function* (hash) {
    const bytes = yield* Effect.mapError(backing.getBlob(id, hash), blobUnavailable("get"))
    if (bytes === undefined) return yield* missing(hash)
    if ((yield* Sha256.hash(bytes)) !== hash) {
      return yield* new TempStoreError({ reason: new BlobDamaged({ name: hash }) })
    }
    return bytes
  }),
  resolve: Effect.fn("TempStore.resolve")(function* (handle) {
    if (!isHandle(handle)) return yield* missing(String(handle))
    const prefix = handle.slice("h_".length)
    const [found, another] = yield* Effect.mapError(backing.findBlobs(id, prefix), blobUnavailable("resolve"))
    if (found === undefined) return yield* missing(handle)
    if (another !== undefined) return yield* new TempStoreError({ reason: new HandleAmbiguous({ name: handle }) })
    return found
  })
})
