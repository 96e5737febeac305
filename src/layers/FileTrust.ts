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
import { fromJson } from "../domain/JsonText.ts"
import { diskTrouble, isNotFound } from "../domain/DiskTrouble.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import * as FileLock from "../services/FileLock.ts"
import * as Leftovers from "../services/Leftovers.ts"
import { standing, Trust, TrustAnswer, TrustError, withParents } from "../services/Trust.ts"
import * as WholeFile from "../services/WholeFile.ts"
import * as ThisProcess from "./ThisProcess.ts"

/** The one form of the file that is known. */
const Stored = Schema.Struct({ version: Schema.Literal(1), folders: Schema.Record(Schema.String, TrustAnswer) })
const decode = Schema.decodeUnknownResult(fromJson(Stored))

/** Thousands of folders; what is larger is something else. */
const mostBytes = ByteSize.mebibytes(1)

/** What the answers are judged beside. */
export interface FileTrustOptions {
  /** The person's own folder. */
  readonly user?: string
  /**
   * The environment of this process, where `GEMINI_CLI_TRUST_WORKSPACE=true` trusts the working folder for this run (spec
   * 15). Never what a `.env` says: the folder it lies in would trust itself.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Whether the person wants no such questions (`folderTrust: false` at home): what was not answered is trusted then. */
  readonly isOff?: Effect.Effect<boolean>
}

/**
 * Answers in one JSON file (mode 0600, its folder 0700), read whenever somebody asks and replaced as a whole, by one process at a
 * time. A file that cannot be read or understood stays as it is, and nothing is trusted.
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
      const wrong = (why: string) => new TrustError({ message: `${quoted(file)}: ${why}` })
      const nothingTrusted = "correct the file or delete it; until then no folder is trusted"

      const read = Effect.gen(function* () {
        const unreadable = (error: PlatformError.PlatformError) =>
          new TrustError({ message: `${diskTrouble(error)}; until that is mended no folder is trusted` })
        const info = yield* fs.stat(file).pipe(
          Effect.catchIf(isNotFound, () => Effect.undefined),
          Effect.mapError(unreadable)
        )
        if (info === undefined) return new Map<string, TrustAnswer>()
        // Reading a pipe would never end.
        if (info.type !== "File") return yield* wrong(`expected a file; ${nothingTrusted}`)
        if (ByteSize.isGreaterThan(info.size, mostBytes)) {
          return yield* wrong(`expected at most 1 MiB; ${nothingTrusted}`)
        }
        const text = yield* Effect.mapError(fs.readFileString(file), unreadable)
        const stored = decode(text)
        return Result.isFailure(stored)
          ? yield* wrong(`expected {"version": 1, "folders": {"/a/folder": "trusted"}}; ${nothingTrusted}`)
          : new Map(Object.entries(stored.success.folders))
      })

      const notKept = (error: PlatformError.PlatformError) =>
        new TrustError({ message: `${diskTrouble(error)}; the answer was not kept` })

      const write = Effect.fnUntraced(function* (answers: ReadonlyMap<string, TrustAnswer>) {
        const folders = Object.fromEntries([...answers].toSorted(([one], [other]) => (one < other ? -1 : 1)))
        const text = `${JSON.stringify({ version: 1, folders }, undefined, 2)}\n`
        // Who keeps the file elsewhere and links to it finds it changed there.
        const place = yield* Effect.orElseSucceed(fs.realPath(file), () => file)
        yield* WholeFile.writePrivate(place, text)
        yield* Leftovers.sweepLock(lock)
      }, Effect.mapError(notKept))

      /** The answer in place of the one that stands there when nobody else changes the file. */
      const answered = Effect.fnUntraced(function* (place: string, answer: TrustAnswer | "forgotten") {
        const answers = yield* read
        const before = answers.get(place)
        if (answer === "forgotten") answers.delete(place)
        else answers.set(place, answer)
        if (before !== answers.get(place)) yield* write(answers)
      })

      const lock = FileLock.besides(path, file)

      /** A folder with its links followed, as far as it is there. */
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

      /** What is trusted for this run only. */
      const forThisRun = Effect.suspend(() =>
        environment["GEMINI_CLI_TRUST_WORKSPACE"]?.trim().toLowerCase() === "true" ? realOf(".") : Effect.undefined
      )

      return {
        of: Effect.fn("Trust.of")(function* (folder) {
          const answers = yield* read
          const here = yield* forThisRun
          if (here !== undefined) answers.set(here, "trusted")
          const place = yield* realOf(folder)
          const found = standing(answers, withParents(place, path.dirname), isAbove(place))
          return found === "unknown" && (yield* isOff) ? "trusted" : found
        }),
        set: Effect.fn("Trust.set")(function* (folder, answer) {
          const place = yield* realOf(folder)
          const info = yield* Effect.option(fs.stat(place))
          if (answer !== "forgotten" && Option.getOrUndefined(info)?.type !== "Directory") {
            return yield* new TrustError({ message: `there is no folder ${quoted(place)}` })
          }
          yield* FileLock.locked({ file, lock }, answered(place, answer)).pipe(
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
