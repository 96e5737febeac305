import { Effect, FileSystem, Layer, Path, PlatformError } from "effect"

/** A file as it is on the disk: the content that was synced. */
interface Inode {
  synced: Uint8Array
  /** The path where its content can be read now. */
  path: string
}

/** What a power cut leaves: only synced names, or all names; in both cases only synced contents. */
export type Names = "synced" | "all"

/** A file system that loses power, and what its disk holds then. */
export interface Forgetful {
  readonly layer: Layer.Layer<FileSystem.FileSystem>
  /** How many calls changed something so far. */
  readonly changes: Effect.Effect<number>
  /** Writes the content of the disk into another folder. */
  readonly restore: (folder: string, names: Names) => Effect.Effect<void, PlatformError.PlatformError>
}

const dead = (method: string) =>
  PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method, description: "the power is gone" })

/**
 * Wraps the file system of the context for paths in `root`. The n-th call that changes something, and all calls after it, have
 * no effect; what was not synced until then is lost: bytes of a file until the file is synced, names in a folder until the
 * folder is. Only folders directly in `root` are durable at once. Supports the calls that the stores make.
 */
export const make = Effect.fnUntraced(function* (
  root: string,
  diesAt: number
): Effect.fn.Return<Forgetful, never, FileSystem.FileSystem | Path.Path> {
  const real = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const live = new Map<string, Inode>()
  const synced = new Map<string, Inode>()
  const folders = new Set<string>()
  const syncedFolders = new Set<string>()
  let changes = 0

  const change = <A, R>(
    name: string,
    call: Effect.Effect<A, PlatformError.PlatformError, R>
  ): Effect.Effect<A, PlatformError.PlatformError, R> =>
    Effect.suspend(() => {
      changes += 1
      return changes >= diesAt ? Effect.fail(dead(name)) : call
    })
  const noted = <A, R>(call: Effect.Effect<A, PlatformError.PlatformError, R>, note: (found: A) => void) =>
    Effect.tap(call, (found) => Effect.sync(() => note(found)))

  const inside = (folder: string, file: string) => file.startsWith(`${folder}${path.sep}`)

  const syncFolder = (folder: string) =>
    Effect.sync(() => {
      for (const file of synced.keys()) if (path.dirname(file) === folder && !live.has(file)) synced.delete(file)
      for (const [file, inode] of live) if (path.dirname(file) === folder) synced.set(file, inode)
      for (const each of folders) if (path.dirname(each) === folder) syncedFolders.add(each)
    })
  const syncFile = (inode: Inode) =>
    Effect.flatMap(real.readFile(inode.path), (bytes) =>
      Effect.sync(() => {
        inode.synced = Uint8Array.from(bytes)
      })
    )

  const opened = (file: FileSystem.File, name: string): FileSystem.File => {
    const inode = live.get(name)
    return {
      [FileSystem.FileTypeId]: FileSystem.FileTypeId,
      stat: file.stat,
      seek: (offset, from) => file.seek(offset, from),
      read: (buffer, options) => file.read(buffer, options),
      readAlloc: (size, options) => file.readAlloc(size, options),
      sync: change("File.sync", inode === undefined ? syncFolder(name) : Effect.andThen(file.sync, syncFile(inode))),
      truncate: (length) => change("File.truncate", file.truncate(length)),
      write: (buffer) => change("File.write", file.write(buffer)),
      writeAll: (buffer) => change("File.writeAll", file.writeAll(buffer))
    }
  }

  const layer = Layer.succeed(FileSystem.FileSystem, {
    ...real,
    open: (file, options) => {
      const open = real.open(file, options)
      if (!inside(root, file)) return open
      const isReading = (options?.flag ?? "r") === "r"
      const making = noted(open, () => {
        if (!folders.has(file) && !live.has(file)) live.set(file, { synced: new Uint8Array(), path: file })
      })
      return Effect.map(isReading ? open : change("open", making), (handle) => opened(handle, file))
    },
    makeDirectory: (folder, options) =>
      change(
        "makeDirectory",
        noted(real.makeDirectory(folder, options), () => {
          folders.add(folder)
          if (path.dirname(folder) === root) syncedFolders.add(folder)
        })
      ),
    rename: (from, to) =>
      change(
        "rename",
        noted(real.rename(from, to), () => {
          const inode = live.get(from)
          live.delete(from)
          if (inode !== undefined) {
            inode.path = to
            live.set(to, inode)
          }
        })
      ),
    remove: (file, options) =>
      change(
        "remove",
        noted(real.remove(file, options), () => {
          live.delete(file)
          for (const each of live.keys()) if (inside(file, each)) live.delete(each)
        })
      )
  })

  return {
    layer,
    changes: Effect.sync(() => changes),
    restore: Effect.fnUntraced(function* (folder, names) {
      for (const [file, inode] of names === "all" ? live : synced) {
        if (names === "synced" && !syncedFolders.has(path.dirname(file))) continue
        const place = path.join(folder, path.relative(root, file))
        yield* real.makeDirectory(path.dirname(place), { recursive: true })
        yield* real.writeFile(place, inode.synced)
      }
    })
  }
})
