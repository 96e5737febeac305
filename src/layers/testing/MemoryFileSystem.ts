/**
 * A file system in memory, for tests.
 *
 * One file: a single implementation of the FileSystem service.
 */

import { ByteSize, Clock, Effect, FileSystem, Layer, Option, PlatformError, Result, Stream } from "effect"
import { posix } from "node:path"

/** A file. An open handle keeps it, even when its name goes to another file. */
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
const diskError = (method: string, place: string, what: keyof typeof codes): PlatformError.PlatformError =>
  PlatformError.systemError({
    module: "FileSystem",
    method,
    _tag: what === "IsFolder" || what === "NotFolder" ? "BadResource" : what === "NotEmpty" ? "Unknown" : what,
    pathOrDescriptor: place,
    cause: Object.assign(new Error(`${codes[what]}: ${method} ${place}`), { code: codes[what] })
  })

/** The result of an operation. */
type Answer<A> = Result.Result<A, PlatformError.PlatformError>

type OptionsOf<Method extends "makeDirectory" | "remove"> = Parameters<FileSystem.FileSystem[Method]>[1]
type TempOptions = Parameters<FileSystem.FileSystem["makeTempFile"]>[0]

const refuse = (method: string, place: string, what: keyof typeof codes): Answer<never> =>
  Result.fail(diskError(method, place, what))

const beforeStart = (method: string, verb: string): Answer<never> =>
  Result.fail(
    PlatformError.badArgument({
      module: "FileSystem",
      method,
      description: `Cannot ${verb} before the start of the file`
    })
  )

/** Runs an operation in one step, at the time of the Clock. */
const step = <A>(operation: (now: number) => Answer<A>) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fromResult(operation(now)))

/** Returns the segments of a path. A relative path starts at the root. */
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

/** The tree, and the last numbers of files and temporary names. */
interface Disk {
  readonly top: MemoryFolder
  inodes: number
  temporaries: number
}

const newFolder = (disk: Disk, now: number, mode = 0o777): MemoryFolder => ({
  type: "Directory",
  ino: (disk.inodes += 1),
  entries: new Map(),
  mode,
  modified: now
})

const newFile = (disk: Disk, now: number, bytes: Uint8Array, mode = 0o666): MemoryFile => ({
  type: "File",
  ino: (disk.inodes += 1),
  bytes,
  mode,
  modified: now
})

const find = (disk: Disk, method: string, place: string): Answer<MemoryNode> => {
  let node: MemoryNode = disk.top
  for (const name of namesOf(place)) {
    if (node.type === "File") return refuse(method, place, "NotFolder")
    const next: MemoryNode | undefined = node.entries.get(name)
    if (next === undefined) return refuse(method, place, "NotFound")
    node = next
  }
  return Result.succeed(node)
}

const findFolder = (disk: Disk, method: string, place: string): Answer<MemoryFolder> =>
  Result.flatMap(find(disk, method, place), (node) =>
    node.type === "Directory" ? Result.succeed(node) : refuse(method, place, "NotFolder")
  )

const findFile = (disk: Disk, method: string, place: string): Answer<MemoryFile> =>
  Result.flatMap(find(disk, method, place), (node) =>
    node.type === "File" ? Result.succeed(node) : refuse(method, place, "IsFolder")
  )

/** A name in a folder, whether or not something has it. */
interface Slot {
  readonly parent: MemoryFolder
  readonly name: string
}

const slotOf = (disk: Disk, method: string, place: string): Answer<Slot> => {
  const name = namesOf(place).at(-1)
  if (name === undefined) return refuse(method, place, "PermissionDenied")
  const parent = findFolder(disk, method, posix.dirname(posix.resolve("/", place)))
  return Result.map(parent, (found) => ({ parent: found, name }))
}

/** Gives a name to a node, or to nothing. */
const assign = ({ name, parent }: Slot, now: number, node?: MemoryNode): void => {
  if (node === undefined) parent.entries.delete(name)
  else parent.entries.set(name, node)
  parent.modified = now
}

const makeFolders = (disk: Disk, now: number, place: string, mode?: number): Answer<void> => {
  let node = disk.top
  for (const name of namesOf(place)) {
    const next = node.entries.get(name) ?? newFolder(disk, now, mode)
    if (next.type === "File") return refuse("makeDirectory", place, "NotFolder")
    if (!node.entries.has(name)) assign({ parent: node, name }, now, next)
    node = next
  }
  return Result.void
}

const makeFolder = (disk: Disk, now: number, place: string, options: OptionsOf<"makeDirectory"> = {}) => {
  if (options.recursive === true) return makeFolders(disk, now, place, options.mode)
  if (Result.isSuccess(find(disk, "makeDirectory", place))) return refuse("makeDirectory", place, "AlreadyExists")
  return Result.map(slotOf(disk, "makeDirectory", place), (slot) =>
    assign(slot, now, newFolder(disk, now, options.mode))
  )
}

/** Gives a file another length. A gap at its end is filled with zeros. */
const resize = (node: MemoryFile, now: number, length: number): void => {
  const whole = new Uint8Array(length)
  whole.set(node.bytes.subarray(0, length))
  node.bytes = whole
  node.modified = now
}

/** Writes bytes into a file at an offset. */
const put = (node: MemoryFile, now: number, at: number, bytes: Uint8Array): void => {
  resize(node, now, Math.max(node.bytes.length, at + bytes.length))
  node.bytes.set(bytes, at)
}

/** Returns the file to open with a flag: an existing one or a new one. */
const claim = (
  disk: Disk,
  method: string,
  now: number,
  place: string,
  flag: FileSystem.OpenFlag,
  mode?: number
): Answer<MemoryFile> =>
  flag.startsWith("r")
    ? findFile(disk, method, place)
    : Result.flatMap(slotOf(disk, method, place), (slot) => {
        const existing = slot.parent.entries.get(slot.name)
        if (existing?.type === "Directory") return refuse(method, place, "IsFolder")
        if (existing !== undefined && flag.includes("x")) return refuse(method, place, "AlreadyExists")
        if (existing !== undefined && flag.startsWith("w")) resize(existing, now, 0)
        const file = existing ?? newFile(disk, now, new Uint8Array(), mode)
        if (existing === undefined) assign(slot, now, file)
        return Result.succeed(file)
      })

const writeFile = (
  disk: Disk,
  now: number,
  place: string,
  bytes: Uint8Array,
  { flag = "w", mode }: Parameters<FileSystem.FileSystem["writeFile"]>[2] = {}
): Answer<void> =>
  Result.map(claim(disk, "writeFile", now, place, flag, mode), (node) =>
    put(node, now, flag.startsWith("a") ? node.bytes.length : 0, bytes)
  )

/** An open file, and where its next read or write starts. */
interface Handle {
  readonly node: MemoryFile
  readonly place: string
  readonly flag: FileSystem.OpenFlag
  position: bigint
}

const readFrom = (handle: Handle, method: string, size: number, options?: FileSystem.File.ReadOptions) => {
  const { flag, node, place } = handle
  if (!flag.startsWith("r") && !flag.endsWith("+")) return refuse(method, place, "PermissionDenied")
  const at = options?.position ?? handle.position
  if (at < 0n || size < 0) return beforeStart(method, "read")
  const found = node.bytes.slice(Number(at), Number(at) + size)
  if (options?.position === undefined) handle.position += BigInt(found.length)
  return Result.succeed(found)
}

const writeTo = (handle: Handle, method: string, now: number, bytes: Uint8Array): Answer<number> => {
  const { flag, node, place } = handle
  if (flag === "r") return refuse(method, place, "PermissionDenied")
  const isAppending = flag.startsWith("a")
  put(node, now, isAppending ? node.bytes.length : Number(handle.position), bytes)
  if (!isAppending) handle.position += BigInt(bytes.length)
  return Result.succeed(bytes.length)
}

const seek = (handle: Handle, offset: bigint, from: FileSystem.SeekMode): Answer<bigint> => {
  const to = from === "start" ? offset : handle.position + offset
  if (to < 0n) return beforeStart("seek", "seek")
  handle.position = to
  return Result.succeed(to)
}

const truncate = (handle: Handle, now: number, length: number): Answer<void> => {
  if (handle.flag === "r") return refuse("truncate", handle.place, "PermissionDenied")
  resize(handle.node, now, length)
  if (handle.position > BigInt(length)) handle.position = BigInt(length)
  return Result.void
}

const opened = (handle: Handle): FileSystem.File => ({
  [FileSystem.FileTypeId]: FileSystem.FileTypeId,
  stat: Effect.sync(() => infoOf(handle.node)),
  seek: (offset, from) => step(() => seek(handle, offset, from)),
  sync: Effect.void,
  read: (buffer, options) =>
    Effect.map(
      step(() => readFrom(handle, "read", buffer.length, options)),
      (bytes) => {
        buffer.set(bytes)
        return bytes.length
      }
    ),
  readAlloc: (size, options) =>
    Effect.map(
      step(() => readFrom(handle, "readAlloc", size, options)),
      (bytes) => (bytes.length === 0 ? Option.none() : Option.some(bytes))
    ),
  truncate: (length = 0) => step((now) => truncate(handle, now, length)),
  write: (bytes) => step((now) => writeTo(handle, "write", now, bytes)),
  writeAll: (bytes) => Effect.asVoid(step((now) => writeTo(handle, "writeAll", now, bytes)))
})

const remove = (
  disk: Disk,
  now: number,
  place: string,
  { force = false, recursive = false }: OptionsOf<"remove"> = {}
): Answer<void> => {
  const node = find(disk, "remove", place)
  if (Result.isFailure(node) && force && node.failure.reason._tag === "NotFound") return Result.void
  return Result.gen(function* () {
    const { type } = yield* node
    const slot = yield* slotOf(disk, "remove", place)
    return type === "Directory" && !recursive ? yield* refuse("remove", place, "IsFolder") : assign(slot, now)
  })
}

const copyOf = (disk: Disk, now: number, node: MemoryNode): MemoryNode => {
  if (node.type === "File") return newFile(disk, now, node.bytes, node.mode)
  const copy = newFolder(disk, now, node.mode)
  for (const [name, entry] of node.entries) copy.entries.set(name, copyOf(disk, now, entry))
  return copy
}

const copy = (disk: Disk, now: number, method: string, from: string, to: string, overwrite: boolean): Answer<void> =>
  Result.gen(function* () {
    const node = yield* find(disk, method, from)
    const slot = yield* slotOf(disk, method, to)
    if (overwrite || !slot.parent.entries.has(slot.name)) assign(slot, now, copyOf(disk, now, node))
  })

const rename = (disk: Disk, now: number, from: string, to: string): Answer<void> =>
  Result.gen(function* () {
    const source = yield* slotOf(disk, "rename", from)
    const node = source.parent.entries.get(source.name)
    if (node === undefined) return yield* refuse("rename", from, "NotFound")
    const target = yield* slotOf(disk, "rename", to)
    const existing = target.parent.entries.get(target.name)
    if (existing === node) return
    if (`${posix.resolve("/", to)}/`.startsWith(`${posix.resolve("/", from)}/`)) {
      return yield* refuse("rename", to, "PermissionDenied")
    }
    if (existing?.type === "Directory" && node.type === "File") return yield* refuse("rename", to, "IsFolder")
    if (existing?.type === "File" && node.type === "Directory") return yield* refuse("rename", to, "NotFolder")
    if (existing?.type === "Directory" && existing.entries.size > 0) return yield* refuse("rename", to, "NotEmpty")
    assign(source, now)
    assign(target, now, node)
  })

const below = (node: MemoryFolder, before: string): Array<string> =>
  [...node.entries].flatMap(([name, entry]) => [
    `${before}${name}`,
    ...(entry.type === "Directory" ? below(entry, `${before}${name}/`) : [])
  ])

const makeTempFolder = (
  disk: Disk,
  now: number,
  { directory = "/tmp", prefix = "" }: TempOptions = {}
): Answer<string> => {
  const place = `${directory}/${prefix}${(disk.temporaries += 1)}`
  return Result.map(makeFolders(disk, now, place, 0o700), () => place)
}

const makeTempFileIn = (disk: Disk, now: number, options: TempOptions = {}): Answer<string> =>
  Result.gen(function* () {
    const place = `${yield* makeTempFolder(disk, now, options)}/file${options.suffix ?? ""}`
    yield* claim(disk, "makeTempFile", now, place, "wx")
    return place
  })

/** Makes an initial file with the folders above it. */
const seed = (disk: Disk, now: number, place: string, content: string | Uint8Array): Answer<void> =>
  place.endsWith("/")
    ? makeFolders(disk, now, place)
    : Result.flatMap(makeFolders(disk, now, posix.dirname(posix.resolve("/", place))), () =>
        writeFile(disk, now, place, typeof content === "string" ? new TextEncoder().encode(content) : content)
      )

const temporaryPlaces = (disk: Disk) => {
  const discard = (place: string) =>
    Effect.orDie(step((now) => remove(disk, now, place, { force: true, recursive: true })))
  const makeTempDirectory = (options?: TempOptions) => step((now) => makeTempFolder(disk, now, options))
  const makeTempFile = (options?: TempOptions) => step((now) => makeTempFileIn(disk, now, options))
  return {
    makeTempDirectory,
    makeTempDirectoryScoped: (options?: TempOptions) => Effect.acquireRelease(makeTempDirectory(options), discard),
    makeTempFile,
    makeTempFileScoped: (options?: TempOptions) =>
      Effect.acquireRelease(makeTempFile(options), (place) => discard(posix.dirname(place)))
  }
}

/**
 * Makes a file system in memory. Files, folders and open files behave as on a disk; times come from the Clock. There are no links, pipes
 * or owners, and modes refuse nothing. Paths are POSIX; relative ones start at `/`. A name in `files` that ends with `/` makes an empty
 * folder.
 */
export const make = Effect.fnUntraced(function* (
  files: Readonly<Record<string, string | Uint8Array>> = {}
): Effect.fn.Return<FileSystem.FileSystem> {
  const now = yield* Clock.currentTimeMillis
  const top: MemoryFolder = { type: "Directory", ino: 1, entries: new Map(), mode: 0o777, modified: now }
  const disk: Disk = { top, inodes: 1, temporaries: 0 }
  for (const [place, content] of Object.entries(files))
    yield* Effect.orDie(step((now) => seed(disk, now, place, content)))
  const onNode = <A>(method: string, place: string, use: (node: MemoryNode) => A) =>
    step(() => Result.map(find(disk, method, place), use))
  return FileSystem.make({
    ...temporaryPlaces(disk),
    access: (place) => onNode("access", place, () => undefined),
    chmod: (place, mode) =>
      onNode("chmod", place, (node) => {
        node.mode = mode
      }),
    chown: (place) => onNode("chown", place, () => undefined),
    copy: (from, to, options) => step((now) => copy(disk, now, "copy", from, to, options?.overwrite ?? false)),
    copyFile: (from, to) => step((now) => copy(disk, now, "copyFile", from, to, true)),
    link: (from) => Effect.fail(diskError("link", from, "Unknown")),
    lstat: (place) => onNode("lstat", place, infoOf),
    makeDirectory: (place, options) => step((now) => makeFolder(disk, now, place, options)),
    open: (place, { flag = "r", mode } = {}) =>
      step((now) =>
        Result.map(claim(disk, "open", now, place, flag, mode), (node) => opened({ node, place, flag, position: 0n }))
      ),
    readDirectory: (place, options) =>
      step(() =>
        Result.map(findFolder(disk, "readDirectory", place), (node) =>
          options?.recursive === true ? below(node, "") : [...node.entries.keys()]
        )
      ),
    readDirectoryEntries: (place) =>
      step(() =>
        Result.map(findFolder(disk, "readDirectoryEntries", place), ({ entries }) =>
          [...entries].map(([name, { type }]) => ({ name, type }))
        )
      ),
    readFile: (place) => step(() => Result.map(findFile(disk, "readFile", place), ({ bytes }) => bytes.slice())),
    readLink: (place) => Effect.fail(diskError("readLink", place, "Unknown")),
    realPath: (place) => onNode("realPath", place, () => posix.resolve("/", place)),
    remove: (place, options) => step((now) => remove(disk, now, place, options)),
    rename: (from, to) => step((now) => rename(disk, now, from, to)),
    stat: (place) => onNode("stat", place, infoOf),
    symlink: (_, place) => Effect.fail(diskError("symlink", place, "Unknown")),
    truncate: (place, length = 0) =>
      step((now) => Result.map(findFile(disk, "truncate", place), (node) => resize(node, now, length))),
    utimes: (place, _, mtime) =>
      onNode("utimes", place, (node) => {
        node.modified = millis(mtime)
      }),
    watch: (place) => Stream.fail(diskError("watch", place, "Unknown")),
    writeFile: (place, data, options) => step((now) => writeFile(disk, now, place, data, options))
  })
})

/**
 * `make` as a layer: a file system with these files and their parent folders.
 *
 * **Example** (Testing over files in memory)
 *
 * ```ts
 * import { Effect, FileSystem } from "effect"
 * import { MemoryFileSystem } from "palimpsest/testing"
 *
 * const read = FileSystem.FileSystem.use((fs) => fs.readFileString("/app/port.txt"))
 * const files = MemoryFileSystem.layer({ "/app/port.txt": "8080" })
 * console.log(await Effect.runPromise(Effect.provide(read, files))) // => 8080
 * ```
 */
export const layer = (files: Readonly<Record<string, string | Uint8Array>> = {}): Layer.Layer<FileSystem.FileSystem> =>
  Layer.effect(FileSystem.FileSystem, make(files))
