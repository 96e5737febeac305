import { Context, Effect, FileSystem, Path } from "effect"
import { absoluteParts } from "../domain/SearchPath.ts"
import { isWithin } from "../domain/WorkspacePath.ts"
import { Environment } from "./Environment.ts"

/**
 * Where the programs are that this one starts. All are looked for here: in absolute parts of PATH, and never in the workspace or
 * in a folder that a person does not trust, because whoever made that folder would choose what runs.
 */

/** Folders in which no program is looked for wherever one works, absolute with links followed: those that are not trusted. */
export const UntrustedFolders = Context.Reference<Effect.Effect<ReadonlyArray<string>>>(
  "palimpsest/services/Programs/UntrustedFolders",
  { defaultValue: () => Effect.succeed([]) }
)

/** Where to look. */
export interface Lookup {
  /** The PATH. */
  readonly path: string
  /** Folders that hold no program, absolute with links followed. */
  readonly outside: ReadonlyArray<string>
}

/** More links than this in a row lead nowhere (as the system counts them). */
const mostLinks = 40

/** Whether no step to a place, link by link, lies in these folders: who may change a step chooses where it leads. */
const isOutside = Effect.fnUntraced(function* (place: string, folders: ReadonlyArray<string>) {
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
    if (links > mostLinks) return false
    const { root } = path.parse(target)
    if (root !== "") at = root
    rest = [...split(target.slice(root.length)), ...rest]
  }
  return true
})

/** Whether a name is one that is looked for, and not a path. */
const isBare = (name: string): boolean => !/[\\/]/.test(name)

/**
 * The absolute path of a program; undefined: there is none in this PATH outside of these folders. What is a path already is
 * given back as it is. The path is the one in PATH, links not followed: programs may go by the name that they are called by.
 */
export const lookup = Effect.fn("Programs.lookup")(function* (
  name: string,
  { outside, path: searchPath }: Lookup
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
    if (yield* isOutside(place, folders)) return place
  }
  return undefined
})

/**
 * Finds programs by this program's own PATH; each is looked for once, and remembered. A folder that holds the person's home, or
 * is it, is no project: what is below it may be theirs as well (`~/.nvm`), or the whole system's.
 */
export const finder = Effect.fn("Programs.finder")(function* (
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
  const known = new Map<string, Effect.Effect<string | undefined>>()
  const look = Effect.fnUntraced(function* (name: string) {
    const { HOME = "", PATH = "", Path: windowsPath = "" } = yield* variables
    const home = HOME === "" ? undefined : yield* Effect.orElseSucceed(fs.realPath(HOME), () => HOME)
    const projects = outside.filter((folder) => home === undefined || !isWithin(folder, home, sep))
    return yield* lookup(name, { path: PATH === "" ? windowsPath : PATH, outside: projects })
  }, Effect.provideContext(context))
  return (name) =>
    Effect.gen(function* () {
      const found = known.get(name) ?? (yield* Effect.cached(look(name)))
      known.set(name, found)
      return yield* found
    })
})
