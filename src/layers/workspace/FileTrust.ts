import {
  ByteSize,
  Effect,
  FileSystem,
  Layer,
  Option,
  Path,
  type PlatformError,
  Result,
  Schema,
  Semaphore
} from "effect"
import { homedir } from "node:os"
import { env } from "node:process"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as FileVersion from "../../services/platform/FileVersion.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import { standing, Trust, TrustAnswer, TrustError, withParents } from "../../services/workspace/Trust.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

/** The only file format supported. */
const Stored = Schema.Struct({ version: Schema.Literal(1), folders: Schema.Record(Schema.String, TrustAnswer) })
const decode = Schema.decodeUnknownResult(fromJson(Stored))

/** Largest file of answers: thousands of folders. */
const maxFileSize = ByteSize.mebibytes(1)

/** What the answers depend on besides the file. */
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

/**
 * Stores answers in one JSON file (mode 0600, its folder 0700). The file is looked at on every request, read when it has changed, and replaced
 * as a whole by one process at a time. A file that cannot be read or parsed is kept, and nothing is trusted.
 */
export const layer = (
  file: string,
  { environment = env, isOff = Effect.succeed(false), user = homedir() }: FileTrustOptions = {}
): Layer.Layer<Trust, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Trust,
    Effect.gen(function* () {
      const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const one = yield* Semaphore.make(1)
      const wrong = (why: string) => new TrustError({ message: `${quotedPath(file)}: ${why}` })
      const nothingTrusted = "correct the file or delete it; until then no folder is trusted"

      const readFile = Effect.gen(function* () {
        const unreadable = (error: PlatformError.PlatformError) =>
          new TrustError({ message: `${diskErrorText(error)}; until that is mended no folder is trusted` })
        const info = yield* fs.stat(file).pipe(
          Effect.catchIf(isNotFound, () => Effect.undefined),
          Effect.mapError(unreadable)
        )
        if (info === undefined) return new Map<string, TrustAnswer>()
        // Reading a pipe would never end.
        if (info.type !== "File") return yield* wrong(`expected a file; ${nothingTrusted}`)
        if (ByteSize.isGreaterThan(info.size, maxFileSize)) {
          return yield* wrong(`expected at most 1 MiB; ${nothingTrusted}`)
        }
        const text = yield* Effect.mapError(fs.readFileString(file), unreadable)
        const stored = decode(text)
        return Result.isFailure(stored)
          ? yield* wrong(`expected {"version": 1, "folders": {"/a/folder": "trusted"}}; ${nothingTrusted}`)
          : new Map(Object.entries(stored.success.folders))
      })

      const unchanged = Effect.provideContext(FileVersion.whileSame(file, readFile), context)
      const read = Effect.map(unchanged, (answers) => new Map(answers))

      const notKept = (error: PlatformError.PlatformError) =>
        new TrustError({ message: `${diskErrorText(error)}; the answer was not kept` })

      const write = Effect.fnUntraced(function* (answers: ReadonlyMap<string, TrustAnswer>) {
        const folders = Object.fromEntries([...answers].toSorted(([one], [other]) => (one < other ? -1 : 1)))
        const text = `${JSON.stringify({ version: 1, folders }, undefined, 2)}\n`
        // A user who links to the file finds the change at its target.
        const place = yield* Effect.orElseSucceed(fs.realPath(file), () => file)
        yield* AtomicFile.writePrivate(place, text)
        yield* StaleFiles.sweepLock(lock)
      }, Effect.mapError(notKept))

      /** Replaces the stored answer unless someone else changes the file at the same time. */
      const answered = Effect.fnUntraced(function* (place: string, answer: TrustAnswer | "forgotten") {
        const answers = yield* read
        const before = answers.get(place)
        if (answer === "forgotten") answers.delete(place)
        else answers.set(place, answer)
        if (before !== answers.get(place)) yield* write(answers)
      })

      const lock = FileLock.lockFileOf(path, file)

      /** A folder with links resolved as far as it exists. */
      const realOf = Effect.fnUntraced(function* (folder: string) {
        const chain = withParents(path.resolve(folder), path.dirname)
        for (const above of chain) {
          const real = yield* Effect.option(fs.realPath(above))
          if (Option.isSome(real)) return path.join(real.value, path.relative(above, chain[0] ?? above))
        }
        return path.resolve(folder)
      })

      const home = yield* realOf(user)
      const isAbove = (folder: string) => withParents(home, path.dirname).includes(folder)

      /** Trusts the working folder for this run only. */
      const forThisRun = Effect.suspend(() =>
        environment["GEMINI_CLI_TRUST_WORKSPACE"]?.trim().toLowerCase() === "true" ? realOf(".") : Effect.undefined
      )

      return {
        of: Effect.fn("Trust.of")(function* (folder) {
          const answers = yield* read
          const here = yield* forThisRun
          if (here !== undefined) answers.set(here, "trusted")
          const place = yield* realOf(folder)
          const state = standing(answers, withParents(place, path.dirname), isAbove(place))
          return state === "unknown" && (yield* isOff) ? "trusted" : state
        }),
        set: Effect.fn("Trust.set")(function* (folder, answer) {
          const place = yield* realOf(folder)
          const info = yield* Effect.option(fs.stat(place))
          if (answer !== "forgotten" && Option.getOrUndefined(info)?.type !== "Directory") {
            return yield* new TrustError({ message: `there is no folder ${quotedPath(place)}` })
          }
          yield* FileLock.withLock({ file, lock }, answered(place, answer)).pipe(
            Effect.provideContext(context),
            ThisProcess.provide,
            Effect.mapError((error) =>
              error._tag === "FileLocked"
                ? new TrustError({ message: `${error.message}; the answer was not kept` })
                : error._tag === "PlatformError"
                  ? notKept(error)
                  : error
            )
          )
          return place
        }, one.withPermit),
        list: Effect.map(read, (answers) =>
          [...answers]
            .map(([folder, answer]) => ({ folder, answer }))
            .toSorted((one, other) => (one.folder < other.folder ? -1 : 1))
        ),
        isWide: Effect.fn("Trust.isWide")((folder) => Effect.map(realOf(folder), isAbove))
      }
    })
  )
