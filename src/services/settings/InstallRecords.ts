import { Effect, FileSystem, Path, Schema } from "effect"
import { InstallRecord } from "../../domain/settings/InstalledFile.ts"
import { decode as decodeText } from "../../domain/text/Bytes.ts"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../platform/AtomicFile.ts"
import * as FileLock from "../platform/FileLock.ts"
import { read as readWhole } from "../platform/RegularFile.ts"
import * as StaleFiles from "../platform/StaleFiles.ts"

/** The records of what `install` did to the files of other agents: one private file in the home folder. */

/** A file cannot be installed into, or the records cannot be used. The message is one sentence that names the file. */
export class InstallError extends Schema.TaggedError<InstallError>()("InstallError", { message: Schema.String }) {}

/** The records by the path of the file, with links followed. */
export type InstallRecords = ReadonlyMap<string, InstallRecord>

const Stored = fromJson(
  Schema.Struct({ version: Schema.Literal(1), files: Schema.Record(Schema.String, InstallRecord) })
)
const decode = Schema.decodeEffect(Stored)
const encode = Schema.encodeEffect(Stored)

/** Reads the records; none when there is no file. */
export const readRecords = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const place = yield* fs.realPath(file).pipe(
    Effect.catchIf(isNotFound, () => Effect.undefined),
    Effect.mapError((error) => new InstallError({ message: diskErrorText(error) }))
  )
  if (place === undefined) return new Map()
  const bytes = yield* Effect.mapError(
    readWhole(place, quotedPath(file)),
    ({ message }) => new InstallError({ message })
  )
  const stored = yield* Effect.mapError(
    decode(decodeText(bytes).text),
    () =>
      new InstallError({
        message: `${quotedPath(file)} is damaged; delete it, and run uninstall again`
      })
  )
  return new Map(Object.entries(stored.files))
})

/** Runs `work` while no other process changes the records. `work` gets them, and a function that writes them. */
export const withRecords = Effect.fnUntraced(function* <A, R>(
  file: string,
  work: (
    records: InstallRecords,
    write: (records: InstallRecords) => Effect.Effect<void, InstallError, FileSystem.FileSystem | Path.Path>
  ) => Effect.Effect<A, InstallError, R>
) {
  const lock = FileLock.lockFileOf(yield* Path.Path, file)
  const write = Effect.fnUntraced(function* (records: InstallRecords) {
    const text = yield* Effect.orDie(encode({ version: 1, files: Object.fromEntries(records) }))
    yield* Effect.mapError(
      AtomicFile.writePrivate(file, `${text}\n`),
      (error) => new InstallError({ message: diskErrorText(error) })
    )
    yield* StaleFiles.sweepLock(lock)
  })
  const change = Effect.flatMap(readRecords(file), (records) => work(records, write))
  return yield* Effect.mapError(FileLock.withLock({ file, lock }, change), (error) =>
    error._tag === "PlatformError"
      ? new InstallError({ message: diskErrorText(error) })
      : error._tag === "FileLocked"
        ? new InstallError({ message: error.message })
        : error
  )
})
