import { ByteSize, Effect, FileSystem, Path, type PlatformError, Result, Schema } from "effect"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import { TrustAnswer, TrustError } from "../../services/workspace/Trust.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

/** The file of the answers to whether folders are trusted: mode 0600, its folder 0700, replaced as a whole by one process at a time. */

/** The answers, by the folder without links. */
export type TrustAnswers = ReadonlyMap<string, TrustAnswer>

/** The only file format supported. */
const Stored = Schema.Struct({ version: Schema.Literal(1), folders: Schema.Record(Schema.String, TrustAnswer) })
const decode = Schema.decodeUnknownResult(fromJson(Stored))

/** Largest file of answers: thousands of folders. */
const maxFileSize = ByteSize.mebibytes(1)

const nothingTrusted = "correct the file or delete it; until then no folder is trusted"

const unreadable = (error: PlatformError.PlatformError) =>
  new TrustError({ message: `${diskErrorText(error)}; until that is fixed no folder is trusted` })

const notKept = (error: PlatformError.PlatformError) =>
  new TrustError({ message: `${diskErrorText(error)}; the answer was not kept` })

/** Reads the answers; none when there is no file. */
export const readAnswers = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const wrong = (why: string) => new TrustError({ message: `${quotedPath(file)}: ${why}; ${nothingTrusted}` })
  const info = yield* fs.stat(file).pipe(
    Effect.catchIf(isNotFound, () => Effect.undefined),
    Effect.mapError(unreadable)
  )
  if (info === undefined) return new Map<string, TrustAnswer>()
  // Reading a pipe would never end.
  if (info.type !== "File") return yield* wrong("expected a file")
  if (ByteSize.isGreaterThan(info.size, maxFileSize)) return yield* wrong("expected at most 1 MiB")
  const stored = decode(yield* Effect.mapError(fs.readFileString(file), unreadable))
  return Result.isFailure(stored)
    ? yield* wrong('expected {"version": 1, "folders": {"/a/folder": "trusted"}}')
    : new Map(Object.entries(stored.success.folders))
})

/** Writes the answers in the order of their folders. */
const writeAnswers = Effect.fnUntraced(function* (file: string, answers: TrustAnswers) {
  const fs = yield* FileSystem.FileSystem
  const folders = Object.fromEntries([...answers].toSorted(([one], [other]) => (one < other ? -1 : 1)))
  const text = `${JSON.stringify({ version: 1, folders }, undefined, 2)}\n`
  // A user who links to the file finds the change at its target.
  const place = yield* Effect.orElseSucceed(fs.realPath(file), () => file)
  yield* AtomicFile.writePrivate(place, text)
  yield* StaleFiles.sweepLock(FileLock.lockFileOf(yield* Path.Path, file))
}, Effect.mapError(notKept))

/** Replaces the stored answer of a folder unless someone else changes the file at the same time. */
export const replaceAnswer = Effect.fnUntraced(function* (
  file: string,
  folder: string,
  answer: TrustAnswer | "forgotten"
) {
  const change = Effect.gen(function* () {
    const answers = new Map(yield* readAnswers(file))
    const before = answers.get(folder)
    if (answer === "forgotten") answers.delete(folder)
    else answers.set(folder, answer)
    if (before !== answers.get(folder)) yield* writeAnswers(file, answers)
  })
  yield* FileLock.withLock({ file, lock: FileLock.lockFileOf(yield* Path.Path, file) }, change).pipe(
    ThisProcess.provide,
    Effect.mapError((error) =>
      error._tag === "FileLocked"
        ? new TrustError({ message: `${error.message}; the answer was not kept` })
        : error._tag === "PlatformError"
          ? notKept(error)
          : error
    )
  )
})
