/**
 * File systems that follow no link: a caller that checked a path opens exactly that file, or nothing. By descriptors where these are
 * paths (DescriptorPaths.ts), else by checks before and after.
 */

import { Effect, FileSystem, Path } from "effect"
import { constants } from "node:fs"
import {
  checkedFiles,
  type Fallible,
  isSame,
  linked,
  type NoFollow,
  type OpenOptions,
  type PathAccess,
  unoffered
} from "./CheckedPaths.ts"
import { at, begin, byDescriptors, end, leadsTo, open } from "./DescriptorPaths.ts"

/** Attempts to open a file that is replaced meanwhile. */
const maxAttempts = 3

/** A file system whose paths are checked before and after each operation. */
interface Rechecked {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
}

const check = ({ fs, path }: Rechecked, method: string, place: string): Fallible<void> =>
  Effect.flatMap(fs.realPath(place), (real) => (real === path.resolve(place) ? Effect.void : linked(method, place)))

/** Runs an operation between two checks of a path. */
const between = <A, R>(base: Rechecked, method: string, place: string, work: Fallible<A, R>): Fallible<A, R> =>
  Effect.andThen(
    check(base, method, place),
    Effect.tap(work, () => check(base, method, place))
  )

/** Opens a file that may be replaced by another one meanwhile, as editors do. */
const openFile = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, place: string, options: OpenOptions) {
  for (let i = 0; i < maxAttempts; i += 1) {
    const file = yield* fs.open(place, options)
    if (isSame(yield* file.stat, yield* fs.stat(place))) return file
  }
  return yield* linked("open", place)
})

const accessByChecks = (base: Rechecked): PathAccess => {
  const below: PathAccess["below"] = (method, place, work) =>
    between(base, method, base.path.dirname(place), work(place))
  return {
    path: base.path,
    on: (method, place, work) => between(base, method, place, work(place)),
    below,
    open: (fs, place, options) => {
      const { flag = "r" } = options
      if (flag.includes("x")) return below("open", place, (held) => fs.open(held, options))
      return flag.startsWith("r") ? between(base, "open", place, openFile(fs, place, options)) : unoffered("open")()
    },
    info: (fs, method, place) => between(base, method, place, method === "lstat" ? fs.lstat(place) : fs.stat(place))
  }
}

/**
 * Without descriptors as paths, a path is checked before and after: the result counts only if no link was on the way both times. Two
 * exchanges of folders in between are not detected.
 */
const byChecks = (base: Rechecked): NoFollow => ({
  files: (fs) => checkedFiles(accessByChecks(base), fs),
  folder: (place) => Effect.as(check(base, "open", place), place)
})

/** Whether descriptors are paths in this file system. */
const areDescriptorsPaths = Effect.fnUntraced(
  function* ({ fs, path }: Rechecked) {
    const held = yield* Effect.acquireRelease(begin, end)
    const top = path.resolve("/")
    const descriptor = yield* open(held, top, constants.O_DIRECTORY)
    return isSame(yield* fs.stat(`${at(descriptor)}/.`), yield* fs.stat(top)) && (yield* leadsTo(descriptor)) === top
  },
  Effect.scoped,
  Effect.orElseSucceed(() => false)
)

/**
 * Makes the safest implementation that this file system supports. Descriptors are used where they are paths: not on macOS and Windows,
 * not without `/proc`, and not for files outside the machine's own file system.
 */
export const make = Effect.gen(function* () {
  const base: Rechecked = { fs: yield* FileSystem.FileSystem, path: yield* Path.Path }
  return (yield* areDescriptorsPaths(base)) ? byDescriptors(base.path) : byChecks(base)
})
