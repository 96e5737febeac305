import { Clock, Effect, FileSystem, Option, Path } from "effect"
import { isTemporary, ownerOf } from "../domain/ProcessOwner.ts"
import * as FileLock from "./FileLock.ts"
import { standingOf } from "./Processes.ts"

/**
 * Temporary files and locks that processes left when they were killed. Only those go whose owner is gone: one that runs may be
 * about to rename its file. Where the owner cannot be told (another machine, a container, a name that says none) a file goes when
 * it has not been written for a day.
 */

/** Nothing is written into a temporary file for that long (milliseconds). */
const staleAge = 24 * 60 * 60_000

/** Whether a temporary file is nobody's any more. What is no file is none of ours. */
const isLeft = Effect.fnUntraced(
  function* (place: string, name: string) {
    const owner = ownerOf(name)
    const standing = owner === undefined ? "unknown" : yield* standingOf(owner)
    if (standing === "running") return false
    const fs = yield* FileSystem.FileSystem
    const { mtime, type } = yield* fs.lstat(place)
    if (type !== "File") return false
    const written = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
    return standing === "gone" || (yield* Clock.currentTimeMillis) - written > staleAge
  },
  Effect.orElseSucceed(() => false)
)

/** What else is swept than temporary files by their names. */
export interface Also {
  /** Temporary files that say no owner. */
  readonly temporary?: (name: string) => boolean
  /** The lock that the program makes there and to which this name belongs: its own, or one under which it is broken. */
  readonly lock?: (name: string) => string | undefined
}

/** Sweeps a folder whose names are known. Never fails. */
export const sweepNames = Effect.fn("Leftovers.sweepNames")(function* (
  folder: string,
  names: ReadonlyArray<string>,
  also: Also = {}
): Effect.fn.Return<void, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const name of names) {
    const place = path.join(folder, name)
    if (isTemporary(name) || also.temporary?.(name) === true) {
      if (yield* isLeft(place, name)) yield* Effect.ignore(fs.remove(place, { force: true }))
    } else {
      const base = also.lock?.(name)
      if (base !== undefined) yield* FileLock.sweep(folder, name, base)
    }
  }
})

/** Sweeps a folder, as far as it can be read. Never fails. */
export const sweep = Effect.fn("Leftovers.sweep")(function* (
  folder: string,
  also: Also = {}
): Effect.fn.Return<void, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), (): Array<string> => [])
  yield* sweepNames(folder, names, also)
})

/** Sweeps the folder of a lock: temporary files, and what is left of this lock. Never fails. */
export const sweepLock = Effect.fn("Leftovers.sweepLock")(function* (
  lock: string
): Effect.fn.Return<void, never, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  yield* sweep(path.dirname(lock), { lock: () => path.basename(lock) })
})
