/** Keeps in a file which folders the user trusts. */

import { ByteSize, Effect, FileSystem, Layer, Option, Path, type PlatformError, Result, Schema } from "effect"
import { homedir } from "node:os"
import { env } from "node:process"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as FileVersion from "../../services/platform/FileVersion.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import { Trust, TrustAnswer, TrustError, standing, withParents } from "../../services/workspace/Trust.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

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

const notKept = (error: FileLock.FileLocked | PlatformError.PlatformError) =>
  new TrustError({ message: `${FileLock.lockErrorText(error)}; the answer was not kept` })

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
})

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
    Effect.mapError((error) => (error._tag === "TrustError" ? error : notKept(error)))
  )
})

/** Options that the answers depend on besides the file. */
export interface FileTrustOptions {
  /** The user's home folder. */
  readonly user?: string
  /**
   * The environment of this process, where `GEMINI_CLI_TRUST_WORKSPACE=true` trusts the working folder for this run.
   * Never the content of a `.env` file: the folder it is in would trust itself.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Whether folder trust is disabled (`folderTrust: false` at home): folders without an answer are then trusted. */
  readonly isOff?: Effect.Effect<boolean>
}

/** Returns a folder with its links resolved as far as it exists. */
const realOf = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const chain = withParents(path.resolve(folder), path.dirname)
  for (const above of chain) {
    const real = yield* Effect.option(fs.realPath(above))
    if (Option.isSome(real)) return path.join(real.value, path.relative(above, chain[0] ?? above))
  }
  return path.resolve(folder)
})

/** Returns a folder that exists, with its links resolved. */
const realFolder = Effect.fnUntraced(function* (folder: string, mayBeGone: boolean) {
  const fs = yield* FileSystem.FileSystem
  const place = yield* realOf(folder)
  const info = yield* Effect.option(fs.stat(place))
  return mayBeGone || Option.getOrUndefined(info)?.type === "Directory"
    ? place
    : yield* new TrustError({ message: `there is no folder ${quotedPath(place)}` })
})

/** Whether the environment trusts the working folder for this run. */
const isTrustedNow = (environment: Readonly<Record<string, string | undefined>>): boolean =>
  environment["GEMINI_CLI_TRUST_WORKSPACE"]?.trim().toLowerCase() === "true"

/**
 * Stores answers in one JSON file. The file is looked at on every request, and read when it has changed. A file that cannot be read or
 * parsed is kept, and nothing is trusted.
 */
export const layer = (
  file: string,
  { environment = env, isOff = Effect.succeed(false), user = homedir() }: FileTrustOptions = {}
): Layer.Layer<Trust, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Trust,
    Effect.gen(function* () {
      const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      const { dirname } = yield* Path.Path
      const answers = FileVersion.whileSame(file, readAnswers(file))
      const home = withParents(yield* realOf(user), dirname)
      return {
        of: Effect.fn("Trust.of")(function* (folder) {
          const allAnswers = new Map(yield* answers)
          if (isTrustedNow(environment)) allAnswers.set(yield* realOf("."), "trusted")
          const place = yield* realOf(folder)
          const state = standing(allAnswers, withParents(place, dirname), home.includes(place))
          return state === "unknown" && (yield* isOff) ? "trusted" : state
        }, Effect.provideContext(context)),
        set: Effect.fn("Trust.set")(function* (folder, answer) {
          const place = yield* realFolder(folder, answer === "forgotten")
          yield* replaceAnswer(file, place, answer)
          return place
        }, Effect.provideContext(context)),
        list: Effect.map(answers, (all) =>
          [...all]
            .map(([folder, answer]) => ({ folder, answer }))
            .toSorted((one, other) => (one.folder < other.folder ? -1 : 1))
        ).pipe(Effect.provideContext(context)),
        isWide: Effect.fn("Trust.isWide")(
          (folder) => Effect.map(realOf(folder), (place) => home.includes(place)),
          Effect.provideContext(context)
        )
      }
    })
  )
