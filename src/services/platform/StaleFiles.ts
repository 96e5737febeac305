/**
 * Removes temporary files and locks that killed processes left. A file goes only when its owner has ended: a running process may be
 * about to rename its file. When the owner is unknown (another machine, a container, an old name), a file goes after a day.
 */

import { Clock, Effect, FileSystem, Option, Path } from "effect"
import { isTemporary, ownerOf } from "../../domain/platform/ProcessOwner.ts"
import * as FileLock from "./FileLock.ts"
import { processStatus } from "./ProcessIdentity.ts"

/** No temporary file stays unwritten for this long. */
const staleAgeMillis = 24 * 60 * 60_000

/** Whether a temporary file has no owner any more. Anything but a regular file stays. */
const isStale = Effect.fnUntraced(
  function* (place: string, name: string) {
    const owner = ownerOf(name)
    const standing = owner === undefined ? "unknown" : yield* processStatus(owner)
    if (standing === "running") return false
    const fs = yield* FileSystem.FileSystem
    const { mtime, type } = yield* fs.lstat(place)
    if (type !== "File") return false
    const written = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
    return standing === "gone" || (yield* Clock.currentTimeMillis) - written > staleAgeMillis
  },
  Effect.orElseSucceed(() => false)
)

/** What is removed besides temporary files of this program. */
interface SweepOptions {
  /** Recognizes temporary files whose name gives no owner. */
  readonly temporary?: (name: string) => boolean
  /** The lock that a name belongs to: as the lock itself, or as one under which it is broken. */
  readonly lock?: (name: string) => string | undefined
}

/** Sweeps a folder with these names. Never fails. */
export const sweepNames = Effect.fn("StaleFiles.sweepNames")(function* (
  folder: string,
  names: ReadonlyArray<string>,
  also: SweepOptions = {}
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const name of names) {
    if (isTemporary(name) || also.temporary?.(name) === true) {
      const place = path.join(folder, name)
      if (yield* isStale(place, name)) yield* Effect.ignore(fs.remove(place, { force: true }))
    } else {
      const base = also.lock?.(name)
      if (base !== undefined) yield* FileLock.sweep(folder, name, base)
    }
  }
})

/** Sweeps a folder, as far as it can be read. Never fails. */
export const sweep = Effect.fn("StaleFiles.sweep")(function* (folder: string, also: SweepOptions = {}) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), (): Array<string> => [])
  yield* sweepNames(folder, names, also)
})

/** Sweeps the folder of a lock: temporary files, and what is left of this lock. Never fails. */
export const sweepLock = Effect.fn("StaleFiles.sweepLock")(function* (lock: string) {
  const path = yield* Path.Path
  yield* sweep(path.dirname(lock), { lock: () => path.basename(lock) })
})
