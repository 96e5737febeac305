import { Clock, Effect, FileSystem, Option } from "effect"
import { isNotFound } from "../../domain/text/DiskErrors.ts"

/** Keeps what was read from a file for as long as the file stays the same. */

/** A file that changed this short a time before it was read may change again without another time of change. */
const settlingMillis = 2_000

interface Version {
  /** Empty: there is no file. */
  readonly text: string
  readonly changedAt: number
}

const absent: Version = { text: "", changedAt: 0 }

const versionOf = ({ dev, ino, mode, mtime, size, type }: FileSystem.File.Info): Version => {
  const changedAt = Option.match(mtime, { onNone: () => Number.NaN, onSome: (time) => time.getTime() })
  return { text: [type, dev, Option.getOrElse(ino, () => "?"), mode, size, changedAt].join(" "), changedAt }
}

/**
 * Returns an effect that runs `read` only if the file has changed since: one look at the file decides. A file that cannot be looked at is
 * always read. Failures are not kept.
 */
export const whileSame = <A, E, R>(
  file: string,
  read: Effect.Effect<A, E, R>
): Effect.Effect<A, E, FileSystem.FileSystem | R> => {
  let kept: { readonly version: string; readonly value: A } | undefined
  return Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const version = yield* fs.stat(file).pipe(
      Effect.map(versionOf),
      Effect.catchIf(isNotFound, () => Effect.succeed(absent)),
      Effect.orElseSucceed(() => undefined)
    )
    if (version !== undefined && kept?.version === version.text) return kept.value
    const begun = yield* Clock.currentTimeMillis
    const value = yield* read
    kept =
      version !== undefined && begun - version.changedAt > settlingMillis ? { version: version.text, value } : undefined
    return value
  })
}
