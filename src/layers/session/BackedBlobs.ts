import type { SessionBacking } from "../../services/session/SessionBacking.ts"
import { TempStore } from "../../services/session/TempStore.ts"

/** The blobs of one session. */
export const blobsOf = (backing: SessionBacking["Service"], id: string): TempStore["Service"] =>
  TempStore.fromBlobs({
    put: (hash, bytes) => backing.putBlob(id, hash, bytes),
    get: (hash) => backing.getBlob(id, hash),
    find: (prefix) => backing.findBlobs(id, prefix)
  })
