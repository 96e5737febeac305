import { Effect, FileSystem, Layer, Option, Path, Semaphore } from "effect"
import { homedir } from "node:os"
import { env } from "node:process"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as FileVersion from "../../services/platform/FileVersion.ts"
import { standing, Trust, TrustError, withParents } from "../../services/workspace/Trust.ts"
import { readAnswers, replaceAnswer } from "./TrustFile.ts"

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
      const one = yield* Semaphore.make(1)
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
        set: Effect.fn("Trust.set")(
          function* (folder, answer) {
            const place = yield* realFolder(folder, answer === "forgotten")
            yield* replaceAnswer(file, place, answer)
            return place
          },
          one.withPermit,
          Effect.provideContext(context)
        ),
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
