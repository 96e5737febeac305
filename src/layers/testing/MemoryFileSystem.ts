import { ByteSize, Clock, Effect, FileSystem, Layer, Option, PlatformError, Stream } from "effect"
import { posix } from "node:path"

/** One file: a single implementation of the FileSystem service. */

/** A file. An open handle keeps it, even when its name is given to another file. */
interface MemoryFile {
  readonly type: "File"
  readonly ino: number
  bytes: Uint8Array
  mode: number
  modified: number
}

interface MemoryFolder {
  readonly type: "Directory"
  readonly ino: number
  readonly entries: Map<string, MemoryFile | MemoryFolder>
  mode: number
  modified: number
}

type MemoryNode = MemoryFile | MemoryFolder

const codes = {
  NotFound: "ENOENT",
  AlreadyExists: "EEXIST",
  PermissionDenied: "EPERM",
  Unknown: "ENOSYS",
  IsFolder: "EISDIR",
  NotFolder: "ENOTDIR",
  NotEmpty: "ENOTEMPTY"
} as const

/** Makes an error like the platform's file system does, so that callers can check its code. */
const trouble = (method: string, place: string, what: keyof typeof codes): PlatformError.PlatformError =>
  PlatformError.systemError({
    module: "FileSystem",
    method,
    _tag: what === "IsFolder" || what === "NotFolder" ? "BadResource" : what === "NotEmpty" ? "Unknown" : what,
    pathOrDescriptor: place,
    cause: Object.assign(new Error(`${codes[what]}: ${method} ${place}`), { code: codes[what] })
  })

/** Returns the segments of a path. A relative path begins at the root. */
const namesOf = (place: string): ReadonlyArray<string> =>
  posix
    .resolve("/", place)
    .split("/")
    .filter((name) => name !== "")

const infoOf = (node: MemoryNode): FileSystem.File.Info => {
  const when = Option.some(new Date(node.modified))
  return {
    type: node.type,
    mtime: when,
    atime: when,
    birthtime: Option.none(),
    dev: 0n,
    ino: Option.some(BigInt(node.ino)),
    mode: (node.type === "File" ? 0o100_000 : 0o040_000) | node.mode,
    nlink: Option.some(1n),
    uid: Option.none(),
    gid: Option.none(),
    rdev: Option.none(),
    size: ByteSize.bytes(node.type === "File" ? node.bytes.length : 0),
    blksize: Option.none(),
    blocks: Option.none()
  }
}

const millis = (time: Date | number): number => (typeof time === "number" ? time * 1_000 : time.getTime())

/**
 * Makes a file system in memory. Files, folders and open files behave as on a disk; times come from the Clock. There are no links, pipes
 * or owners, and modes refuse nothing. Paths are POSIX; relative ones begin at `/`. A given file name that ends with `/` makes an empty
 * folder.
 */
export const make = (files: Readonly<Record<string, string | Uint8Array>> = {}): Effect.Effect<FileSystem.FileSystem> =>
  Effect.gen(function* () {
    let inodes = 0
    const born = yield* Clock.currentTimeMillis
    const folder = (now: number, mode = 0o777): MemoryFolder => ({
      type: "Directory",
      ino: (inodes += 1),
      entries: new Map(),
      mode,
      modified: now
    })
    const file = (now: number, bytes: Uint8Array, mode = 0o666): MemoryFile => ({
      type: "File",
      ino: (inodes += 1),
      bytes,
      mode,
      modified: now
    })
    const top = folder(born)

    /** Runs an uninterruptible operation in one step. An error that it returns becomes the failure. */
    const step = <A>(
      body: (now: number) => A | PlatformError.PlatformError
    ): Effect.Effect<A, PlatformError.PlatformError> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const result = body(now)
        return PlatformError.isPlatformError(result) ? Effect.fail(result) : Effect.succeed(result)
      })

    const find = (method: string, place: string): MemoryNode | PlatformError.PlatformError => {
      let node: MemoryNode = top
      for (const name of namesOf(place)) {
        if (node.type === "File") return trouble(method, place, "NotFolder")
        const next: MemoryNode | undefined = node.entries.get(name)
        if (next === undefined) return trouble(method, place, "NotFound")
        node = next
      }
      return node
    }

    const findFolder = (method: string, place: string): MemoryFolder | PlatformError.PlatformError => {
      const node = find(method, place)
      return PlatformError.isPlatformError(node) || node.type === "Directory"
        ? node
        : trouble(method, place, "NotFolder")
    }

    const findFile = (method: string, place: string): MemoryFile | PlatformError.PlatformError => {
      const node = find(method, place)
      return PlatformError.isPlatformError(node) || node.type === "File" ? node : trouble(method, place, "IsFolder")
    }

    /** Returns the folder that contains a path, and the name in it. */
    const holder = (
      method: string,
      place: string
    ): { readonly parent: MemoryFolder; readonly name: string } | PlatformError.PlatformError => {
      const name = namesOf(place).at(-1)
      if (name === undefined) return trouble(method, place, "PermissionDenied")
      const parent = findFolder(method, posix.dirname(posix.resolve("/", place)))
      return PlatformError.isPlatformError(parent) ? parent : { parent, name }
    }

    const makeFolders = (now: number, place: string, mode?: number): MemoryFolder | PlatformError.PlatformError => {
      let node = top
      for (const name of namesOf(place)) {
        let next = node.entries.get(name)
        if (next === undefined) {
          next = folder(now, mode)
          node.entries.set(name, next)
          node.modified = now
        }
        if (next.type === "File") return trouble("makeDirectory", place, "NotFolder")
        node = next
      }
      return node
    }

    /** Returns the file to open for writing: an existing one or a new one. */
    const claim = (
      method: string,
      now: number,
      place: string,
      flag: FileSystem.OpenFlag,
      mode?: number
    ): MemoryFile | PlatformError.PlatformError => {
      if (flag.startsWith("r")) return findFile(method, place)
      const held = holder(method, place)
      if (PlatformError.isPlatformError(held)) return held
      const there = held.parent.entries.get(held.name)
      if (there?.type === "Directory") return trouble(method, place, "IsFolder")
      if (there !== undefined && flag.includes("x")) return trouble(method, place, "AlreadyExists")
      if (there !== undefined) {
        if (flag.startsWith("w")) {
          there.bytes = new Uint8Array()
          there.modified = now
        }
        return there
      }
      const made = file(now, new Uint8Array(), mode)
      held.parent.entries.set(held.name, made)
      held.parent.modified = now
      return made
    }

    /** Writes bytes into a file at an offset. A gap after its end is filled with zeros. */
    const put = (node: MemoryFile, now: number, at: number, bytes: Uint8Array): void => {
      const whole = new Uint8Array(Math.max(node.bytes.length, at + bytes.length))
      whole.set(node.bytes)
      whole.set(bytes, at)
      node.bytes = whole
      node.modified = now
    }

    const cut = (node: MemoryFile, now: number, length: number): void => {
      const whole = new Uint8Array(length)
      whole.set(node.bytes.subarray(0, length))
      node.bytes = whole
      node.modified = now
    }

    const opened = (node: MemoryFile, place: string, flag: FileSystem.OpenFlag): FileSystem.File => {
      let position = 0n
      const isReadable = flag.startsWith("r") || flag.endsWith("+")
      const isWritable = flag !== "r"
      const refuse = (method: string) => trouble(method, place, "PermissionDenied")
      const take = (method: string, size: number, options?: FileSystem.File.ReadOptions) =>
        step(() => {
          if (!isReadable) return refuse(method)
          const at = options?.position ?? position
          if (at < 0n || size < 0) {
            return PlatformError.badArgument({
              module: "FileSystem",
              method,
              description: "Cannot read before the start of the file"
            })
          }
          const found = node.bytes.slice(Number(at), Number(at) + size)
          if (options?.position === undefined) position += BigInt(found.length)
          return found
        })
      const give = (method: string, bytes: Uint8Array) =>
        step((now) => {
          if (!isWritable) return refuse(method)
          const at = flag.startsWith("a") ? node.bytes.length : Number(position)
          put(node, now, at, bytes)
          if (!flag.startsWith("a")) position += BigInt(bytes.length)
          return bytes.length
        })
      return {
        [FileSystem.FileTypeId]: FileSystem.FileTypeId,
        stat: Effect.sync(() => infoOf(node)),
        seek: (offset, from) =>
          step(() => {
            const to = from === "start" ? offset : position + offset
            if (to < 0n) {
              return PlatformError.badArgument({
                module: "FileSystem",
                method: "seek",
                description: "Cannot seek before the start of the file"
              })
            }
            return (position = to)
          }),
        sync: Effect.void,
        read: (buffer, options) =>
          Effect.map(take("read", buffer.length, options), (bytes) => {
            buffer.set(bytes)
            return bytes.length
          }),
        readAlloc: (size, options) =>
          Effect.map(take("readAlloc", size, options), (bytes) =>
            bytes.length === 0 ? Option.none() : Option.some(bytes)
          ),
        truncate: (length = 0) =>
          step((now) => {
            if (!isWritable) return refuse("truncate")
            cut(node, now, length)
            if (position > BigInt(length)) position = BigInt(length)
            return undefined
          }),
        write: (bytes) => give("write", bytes),
        writeAll: (bytes) => Effect.asVoid(give("writeAll", bytes))
      }
    }

    const removeNode = (
      place: string,
      {
        force = false,
        recursive = false
      }: { readonly force?: boolean | undefined; readonly recursive?: boolean | undefined },
      now: number
    ): undefined | PlatformError.PlatformError => {
      const node = find("remove", place)
      if (PlatformError.isPlatformError(node)) return force && node.reason._tag === "NotFound" ? undefined : node
      const held = holder("remove", place)
      if (PlatformError.isPlatformError(held)) return held
      if (node.type === "Directory" && !recursive) return trouble("remove", place, "IsFolder")
      held.parent.entries.delete(held.name)
      held.parent.modified = now
      return undefined
    }

    const copyNode = (node: MemoryNode, now: number): MemoryNode => {
      if (node.type === "File") return file(now, node.bytes, node.mode)
      const copy = folder(now, node.mode)
      for (const [name, entry] of node.entries) copy.entries.set(name, copyNode(entry, now))
      return copy
    }

    const copyTo = (method: string, from: string, to: string, overwrite: boolean) =>
      step((now) => {
        const node = find(method, from)
        if (PlatformError.isPlatformError(node)) return node
        const held = holder(method, to)
        if (PlatformError.isPlatformError(held)) return held
        if (held.parent.entries.has(held.name) && !overwrite) return undefined
        held.parent.entries.set(held.name, copyNode(node, now))
        held.parent.modified = now
        return undefined
      })

    const below = (node: MemoryFolder, before: string): Array<string> =>
      [...node.entries].flatMap(([name, entry]) => [
        `${before}${name}`,
        ...(entry.type === "Directory" ? below(entry, `${before}${name}/`) : [])
      ])

    const info = (method: string) => (place: string) =>
      step(() => {
        const node = find(method, place)
        return PlatformError.isPlatformError(node) ? node : infoOf(node)
      })

    const change = (method: string, place: string, body: (node: MemoryNode) => void) =>
      step(() => {
        const node = find(method, place)
        if (PlatformError.isPlatformError(node)) return node
        body(node)
        return undefined
      })

    let temporaries = 0
    const temporary = (directory = "/tmp", prefix = "") => `${directory}/${prefix}${(temporaries += 1)}`
    const makeTempDirectory: FileSystem.FileSystem["makeTempDirectory"] = ({ directory, prefix } = {}) =>
      step((now) => {
        const place = temporary(directory, prefix)
        const made = makeFolders(now, place, 0o700)
        return PlatformError.isPlatformError(made) ? made : place
      })
    const makeTempFile: FileSystem.FileSystem["makeTempFile"] = ({ directory, prefix, suffix = "" } = {}) =>
      Effect.flatMap(makeTempDirectory({ directory, prefix }), (inside) =>
        step((now) => {
          const place = `${inside}/file${suffix}`
          const made = claim("makeTempFile", now, place, "wx")
          return PlatformError.isPlatformError(made) ? made : place
        })
      )
    const discard = (place: string) =>
      Effect.orDie(step((now) => removeNode(place, { force: true, recursive: true }, now)))

    for (const [place, content] of Object.entries(files)) {
      yield* Effect.orDie(
        step((now) => {
          const isFolder = place.endsWith("/")
          const made = makeFolders(now, isFolder ? place : posix.dirname(posix.resolve("/", place)))
          if (isFolder || PlatformError.isPlatformError(made)) return made
          const node = claim("writeFile", now, place, "w")
          if (PlatformError.isPlatformError(node)) return node
          put(node, now, 0, typeof content === "string" ? new TextEncoder().encode(content) : content)
          return undefined
        })
      )
    }

    return FileSystem.make({
      access: (place) => Effect.asVoid(info("access")(place)),
      chmod: (place, mode) =>
        change("chmod", place, (node) => {
          node.mode = mode
        }),
      chown: (place) => change("chown", place, () => undefined),
      copy: (from, to, options) => copyTo("copy", from, to, options?.overwrite ?? false),
      copyFile: (from, to) => copyTo("copyFile", from, to, true),
      link: (from) => Effect.fail(trouble("link", from, "Unknown")),
      lstat: info("lstat"),
      makeDirectory: (place, options) =>
        step((now) => {
          const there = find("makeDirectory", place)
          if (options?.recursive === true) {
            const made = makeFolders(now, place, options.mode)
            return PlatformError.isPlatformError(made) ? made : undefined
          }
          if (!PlatformError.isPlatformError(there)) return trouble("makeDirectory", place, "AlreadyExists")
          const held = holder("makeDirectory", place)
          if (PlatformError.isPlatformError(held)) return held
          held.parent.entries.set(held.name, folder(now, options?.mode))
          held.parent.modified = now
          return undefined
        }),
      makeTempDirectory,
      makeTempDirectoryScoped: (options) => Effect.acquireRelease(makeTempDirectory(options), discard),
      makeTempFile,
      makeTempFileScoped: (options) =>
        Effect.acquireRelease(makeTempFile(options), (place) => discard(posix.dirname(place))),
      open: (place, options) =>
        step((now) => {
          const flag = options?.flag ?? "r"
          const node = claim("open", now, place, flag, options?.mode)
          return PlatformError.isPlatformError(node) ? node : opened(node, place, flag)
        }),
      readDirectory: (place, options) =>
        step(() => {
          const node = findFolder("readDirectory", place)
          if (PlatformError.isPlatformError(node)) return node
          return options?.recursive === true ? below(node, "") : [...node.entries.keys()]
        }),
      readDirectoryEntries: (place) =>
        step(() => {
          const node = findFolder("readDirectoryEntries", place)
          if (PlatformError.isPlatformError(node)) return node
          return [...node.entries].map(([name, { type }]) => ({ name, type }))
        }),
      readFile: (place) =>
        step(() => {
          const node = findFile("readFile", place)
          return PlatformError.isPlatformError(node) ? node : node.bytes.slice()
        }),
      readLink: (place) => Effect.fail(trouble("readLink", place, "Unknown")),
      realPath: (place) =>
        step(() => {
          const node = find("realPath", place)
          return PlatformError.isPlatformError(node) ? node : posix.resolve("/", place)
        }),
      remove: (place, options) => step((now) => removeNode(place, options ?? {}, now)),
      rename: (from, to) =>
        step((now) => {
          const source = holder("rename", from)
          if (PlatformError.isPlatformError(source)) return source
          const node = source.parent.entries.get(source.name)
          if (node === undefined) return trouble("rename", from, "NotFound")
          const target = holder("rename", to)
          if (PlatformError.isPlatformError(target)) return target
          const there = target.parent.entries.get(target.name)
          if (there === node) return undefined
          if (`${posix.resolve("/", to)}/`.startsWith(`${posix.resolve("/", from)}/`)) {
            return trouble("rename", to, "PermissionDenied")
          }
          if (there?.type === "Directory" && node.type === "File") return trouble("rename", to, "IsFolder")
          if (there?.type === "File" && node.type === "Directory") return trouble("rename", to, "NotFolder")
          if (there?.type === "Directory" && there.entries.size > 0) return trouble("rename", to, "NotEmpty")
          source.parent.entries.delete(source.name)
          target.parent.entries.set(target.name, node)
          source.parent.modified = now
          target.parent.modified = now
          return undefined
        }),
      stat: info("stat"),
      symlink: (_, place) => Effect.fail(trouble("symlink", place, "Unknown")),
      truncate: (place, length = 0) =>
        step((now) => {
          const node = findFile("truncate", place)
          if (PlatformError.isPlatformError(node)) return node
          cut(node, now, length)
          return undefined
        }),
      utimes: (place, _, mtime) =>
        change("utimes", place, (node) => {
          node.modified = millis(mtime)
        }),
      watch: (place) => Stream.fail(trouble("watch", place, "Unknown")),
      writeFile: (place, data, options) =>
        step((now) => {
          const flag = options?.flag ?? "w"
          const node = claim("writeFile", now, place, flag, options?.mode)
          if (PlatformError.isPlatformError(node)) return node
          put(node, now, flag.startsWith("a") ? node.bytes.length : 0, data)
          return undefined
        })
    })
  })

/** `make` as a layer: a file system with these files and their parent folders. */
export const layer = (files: Readonly<Record<string, string | Uint8Array>> = {}): Layer.Layer<FileSystem.FileSystem> =>
  Layer.effect(FileSystem.FileSystem, make(files))
