import { Effect, FileSystem, Layer, Option, Path, Schema, Semaphore } from "effect"
import { SessionRecord } from "../../domain/serve/SessionRecord.ts"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import { SessionRecords } from "../../services/serve/SessionRecords.ts"
import { withSessionErrors } from "../session/SessionStoreErrors.ts"

/** What clients set for sessions, in files of a tenant's folder. */

const encode = Schema.encodeSync(fromJson(SessionRecord))
const decode = Schema.decodeUnknownOption(fromJson(SessionRecord))

const readConcurrency = 16

/** The records in the folder `served` of a home. */
export const layer = (home: string) =>
  Layer.effect(
    SessionRecords,
    Effect.gen(function* () {
      const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const changing = yield* Semaphore.make(1)
      const fileOf = (id: string) => path.join(home, "served", `${id}.json`)
      const read = (id: string) =>
        Effect.map(
          Effect.catchIf(fs.readFileString(fileOf(id)), isNotFound, () => Effect.undefined),
          (text) => Option.toArray(Option.map(decode(text), (record) => [id, record] as const))
        )
      return SessionRecords.of({
        get: (ids) =>
          Effect.forEach(ids, read, { concurrency: readConcurrency }).pipe(
            Effect.map((records) => new Map(records.flat())),
            withSessionErrors("read")
          ),
        change: (id, to) =>
          Effect.flatMap(read(id), ([found]) => AtomicFile.writePrivate(fileOf(id), encode(to(found?.[1] ?? {})))).pipe(
            changing.withPermit,
            Effect.provideContext(platform),
            withSessionErrors("append", id)
          ),
        remove: (id) => withSessionErrors("remove", id)(fs.remove(fileOf(id), { force: true }))
      })
    })
  )
