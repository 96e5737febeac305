import { Effect, FileSystem, Layer } from "effect"
import { readlinkSync } from "node:fs"
import path from "node:path"

/** Resolves a path that begins with an open descriptor to its place on the disk; leaves other paths unchanged. */
export const placeOf = (given: string): string => {
  const [descriptor] = /^\/proc\/self\/fd\/\d+/.exec(given) ?? []
  return descriptor === undefined ? given : path.join(readlinkSync(descriptor), given.slice(descriptor.length))
}

/** The accesses to a file system. */
export interface Watched {
  /** Files that were opened or read, in order, under the names used. */
  readonly opened: Array<string>
  /** Folders that were listed. */
  readonly folders: Array<string>
}

/** The file system of the context, and a list of the files opened in it. */
export const watchedFiles = Effect.gen(function* () {
  const real = yield* FileSystem.FileSystem
  const watched: Watched = { opened: [], folders: [] }
  const layer = Layer.succeed(
    FileSystem.FileSystem,
    FileSystem.make({
      ...real,
      open: (path, options) => Effect.suspend(() => (watched.opened.push(placeOf(path)), real.open(path, options))),
      readFile: (path) => Effect.suspend(() => (watched.opened.push(placeOf(path)), real.readFile(path))),
      readDirectory: (path, options) =>
        Effect.suspend(() => (watched.folders.push(placeOf(path)), real.readDirectory(path, options))),
      readDirectoryEntries: (path) =>
        Effect.suspend(() => (watched.folders.push(placeOf(path)), real.readDirectoryEntries(path)))
    })
  )
  return { layer, watched }
})
