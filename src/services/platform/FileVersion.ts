/** Caches what was read from a file until the file changes. */

import { Clock, Effect, FileSystem, Option } from "effect"
import { isNotFound } from "../../domain/text/DiskErrors.ts"

/** A file modified less than this before it was read may change again with the same modification time. */
const settlingMillis = 2_000

interface Version {
  /** Empty when there is no file. */
  readonly text: string
  readonly changedAt: number
}

const absent: Version = { text: "", changedAt: 0 }

const versionOf = ({ dev, ino, mode, mtime, size, type }: FileSystem.File.Info): Version => {
  const changedAt = Option.match(mtime, { onNone: () => Number.NaN, onSome: (time) => time.getTime() })
  return { text: [type, dev, Option.getOrElse(ino, () => "?"), mode, size, changedAt].join(" "), changedAt }
}

/**
 * Returns an effect that runs `read` only if the file has changed since the last run, which one stat decides. A file
 * without a readable state is always read. Failures are not cached.
 */
export const whileSame = <A, E, R>(file: string, read: Effect.Effect<A, E, R>) => {
  let kept: { readonly version: string; readonly value: A } | undefined
  return Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const version = yield* fs.stat(file).pipe(
      Effect.map(versionOf),
      Effect.catchIf(isNotFound, () => Effect.succeed(absent)),
      Effect.orElseSucceed(() => undefined)
    )
    if (version !== undefined && kept?.version === version.text) return kept.value
    const startedAt = yield* Clock.currentTimeMillis
    const value = yield* read
    kept =
      version !== undefined && startedAt - version.changedAt > settlingMillis
        ? { version: version.text, value }
        : undefined
    return value
  })
}
