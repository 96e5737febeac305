/**
 * Finds the programs that this program starts: in absolute parts of PATH, and never in the workspace or an untrusted folder, because the
 * author of that folder would choose what runs.
 */

import { Context, Effect, FileSystem, Path } from "effect"
import { absoluteParts } from "../../domain/platform/SearchPath.ts"
import { isWithin } from "../../domain/text/WorkspacePath.ts"
import { Environment } from "./Environment.ts"

/** Untrusted folders, in which no program is searched: absolute, with links followed. */
export const UntrustedFolders = Context.Reference<Effect.Effect<ReadonlyArray<string>>>(
  "palimpsest/services/platform/ProgramLookup/UntrustedFolders",
  { defaultValue: () => Effect.succeed([]) }
)

/** Where to search. */
interface ProgramSearch {
  /** The PATH. */
  readonly path: string
  /** Folders that are not searched: absolute, with links followed. */
  readonly excludedFolders: ReadonlyArray<string>
}

/** Links followed before giving up, as the system does. */
const maxLinks = 40

/** Returns whether no step to a path, link by link, is in these folders: a process that can change a step chooses where it leads. */
const isReachedOutside = Effect.fnUntraced(function* (place: string, folders: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const split = (text: string) => text.split(path.sep).filter((name) => name !== "" && name !== ".")
  const top = path.parse(place).root
  let at = top
  let rest = split(place.slice(top.length))
  for (let links = 0; rest.length > 0;) {
    const [name = "", ...others] = rest
    rest = others
    if (name === "..") {
      at = path.dirname(at)
      continue
    }
    const here = path.join(at, name)
    if (folders.some((folder) => isWithin(folder, here, path.sep))) return false
    const target = yield* Effect.orElseSucceed(fs.readLink(here), () => undefined)
    if (target === undefined) {
      at = here
      continue
    }
    links += 1
    if (links > maxLinks) return false
    const { root } = path.parse(target)
    if (root !== "") at = root
    rest = [...split(target.slice(root.length)), ...rest]
  }
  return true
})

/** Whether a name is not a path and has to be searched. */
const isBare = (name: string): boolean => !/[\\/]/.test(name)

/**
 * Finds the absolute path of a program; undefined when this PATH has none outside the excluded folders. A path is returned as it
 * is. Links in the result are not followed, as programs may act by the name under which they are called.
 */
export const findProgram = Effect.fn("ProgramLookup.findProgram")(function* (
  name: string,
  { excludedFolders: outside, path: searchPath }: ProgramSearch
): Effect.fn.Return<string | undefined, never, FileSystem.FileSystem | Path.Path> {
  if (!isBare(name)) return name
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folders = [...outside, ...(yield* yield* UntrustedFolders)]
  const isWindows = path.sep === "\\"
  for (const part of absoluteParts(searchPath, path.sep)) {
    const place = path.join(part, isWindows && path.extname(name) === "" ? `${name}.exe` : name)
    const info = yield* Effect.orElseSucceed(fs.stat(place), () => undefined)
    if (info?.type !== "File" || (!isWindows && (info.mode & 0o111) === 0)) continue
    if (yield* isReachedOutside(place, folders)) return place
  }
  return undefined
})

/**
 * Makes a finder of programs in this program's own PATH, which remembers what it found. A folder that is or contains the user's
 * home is not excluded: what is below it may be the user's own (`~/.nvm`), or the whole system's.
 */
export const makeProgramFinder = Effect.fn("ProgramLookup.makeProgramFinder")(function* (
  outside: ReadonlyArray<string>
): Effect.fn.Return<
  (name: string) => Effect.Effect<string | undefined>,
  never,
  Environment | FileSystem.FileSystem | Path.Path
> {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const fs = yield* FileSystem.FileSystem
  const { sep } = yield* Path.Path
  const { variables } = yield* Environment
  const cache = new Map<string, Effect.Effect<string | undefined>>()
  const look = Effect.fnUntraced(function* (name: string) {
    const { HOME = "", PATH = "", Path: windowsPath = "" } = yield* variables
    const home = HOME === "" ? undefined : yield* Effect.orElseSucceed(fs.realPath(HOME), () => HOME)
    const projects = outside.filter((folder) => home === undefined || !isWithin(folder, home, sep))
    return yield* findProgram(name, { path: PATH === "" ? windowsPath : PATH, excludedFolders: projects })
  }, Effect.provideContext(context))
  return (name) =>
    Effect.gen(function* () {
      const found = cache.get(name) ?? (yield* Effect.cached(look(name)))
      cache.set(name, found)
      return yield* found
    })
})
