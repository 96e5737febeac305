/** What clients set for sessions, in files of a tenant's folder. */

import { Effect, FileSystem, Layer, type Path, Semaphore } from "effect"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import { changedText, decode, SessionRecords } from "../../services/serve/SessionRecords.ts"
import { recordFile, recordFolder } from "../platform/HomeFolder.ts"
import { withSessionErrors } from "../session/SessionStoreErrors.ts"

const readConcurrency = 16

/** The records in the folder `served` of a home. */
export const layer = (home: string) =>
  Layer.effect(
    SessionRecords,
    Effect.gen(function* () {
      const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      const fs = yield* FileSystem.FileSystem
      const changing = yield* Semaphore.make(1)
      const fileOf = (id: string) => recordFile(home, id)
      const all = Effect.map(
        Effect.catchIf(fs.readDirectory(recordFolder(home)), isNotFound, () => Effect.succeed([])),
        (names) => names.flatMap((name) => (name.endsWith(".json") ? [name.slice(0, -".json".length)] : []))
      )
      const read = (id: string) =>
        Effect.map(
          Effect.catchIf(fs.readFileString(fileOf(id)), isNotFound, () => Effect.undefined),
          (text) => (text === undefined ? [] : [[id, decode(text)] as const])
        )
      return SessionRecords.of({
        get: (ids) =>
          Effect.flatMap(ids === undefined ? all : Effect.succeed(ids), (wanted: ReadonlyArray<string>) =>
            Effect.forEach(wanted, read, { concurrency: readConcurrency })
          ).pipe(
            Effect.map((records) => new Map(records.flat())),
            withSessionErrors("read")
          ),
        change: (id, to) =>
          Effect.flatMap(read(id), ([found]) => changedText(id, found?.[1], to)).pipe(
            Effect.flatMap((text) => AtomicFile.writePrivate(fileOf(id), text)),
            changing.withPermit,
            Effect.provideContext(platform),
            withSessionErrors("append", id)
          ),
        remove: (id) => withSessionErrors("remove", id)(fs.remove(fileOf(id), { force: true }))
      })
    })
  )
