/**
 * Checked paths on Linux. Node has no `openat`, so open descriptors replace it: the kernel tells where a descriptor leads, and
 * `/proc/self/fd/N/name` starts there, whatever happens to the original path.
 */

import { ByteSize, Effect, type FileSystem, Option, type Path, PlatformError } from "effect"
import { type BigIntStats, close, closeSync, constants, fstatSync, open as openNode, readlinkSync } from "node:fs"
import { checkedFiles, failed, failure, type Fallible, linked, type NoFollow, type PathAccess } from "./CheckedPaths.ts"

const notFolder = (method: string, place: string) =>
  failure("BadResource", method, place, Object.assign(new Error("not a folder"), { code: "ENOTDIR" }))

/** Converts an error about a path below a descriptor to one about the original path. */
const aboutPath =
  (place: string, held: string) =>
  (error: PlatformError.PlatformError): PlatformError.PlatformError => {
    const { reason } = error
    // In a call with two paths, the error may be about the other one.
    if (reason._tag === "BadArgument" || reason.pathOrDescriptor !== held) return error
    const { _tag, cause, description, method, module, syscall } = reason
    const renamedCause =
      cause instanceof Error ? Object.assign(new Error(cause.message.replaceAll(held, () => place)), cause) : cause
    return PlatformError.systemError({
      _tag,
      module,
      method,
      description,
      syscall,
      pathOrDescriptor: place,
      cause: renamedCause
    })
  }

/** `O_PATH`: opens a descriptor without opening the file itself, so that no pipe blocks and no device starts to work. */
const O_PATH = 0o10000000

/** The descriptors of one operation, closed when it ends. */
interface Held {
  readonly descriptors: Set<number>
  isOver: boolean
}

/** Begins an operation; `end` closes its descriptors. */
export const begin = Effect.sync((): Held => ({ descriptors: new Set(), isOver: false }))
/** Closes the descriptors of an operation. */
export const end = (held: Held) =>
  Effect.sync(() => {
    held.isOver = true
    for (const descriptor of held.descriptors) closeSync(descriptor)
    held.descriptors.clear()
  })

/** Returns the path of a descriptor. */
export const at = (descriptor: number) => `/proc/self/fd/${descriptor}`

/** Opens a descriptor. Interruptible, because a network folder that is gone may never answer. A descriptor that arrives later is closed. */
export const open = (held: Held, place: string, flags: number): Effect.Effect<number, NodeJS.ErrnoException> =>
  Effect.callback((resume) => {
    openNode(place, O_PATH | constants.O_NOFOLLOW | flags, (error, descriptor) => {
      if (error !== null) return resume(Effect.fail(error))
      if (held.isOver) return close(descriptor, () => undefined)
      held.descriptors.add(descriptor)
      return resume(Effect.succeed(descriptor))
    })
  })

const drop = (held: Held, descriptor: number) => {
  held.descriptors.delete(descriptor)
  closeSync(descriptor)
}

/** Returns where a descriptor leads, according to the kernel. */
export const leadsTo = (descriptor: number) =>
  Effect.orElseSucceed(
    Effect.try(() => readlinkSync(at(descriptor))),
    () => undefined
  )

const kindOf = (stats: BigIntStats): FileSystem.File.Type => {
  if (stats.isFile()) return "File"
  if (stats.isDirectory()) return "Directory"
  if (stats.isSymbolicLink()) return "SymbolicLink"
  if (stats.isFIFO()) return "FIFO"
  if (stats.isSocket()) return "Socket"
  if (stats.isBlockDevice()) return "BlockDevice"
  return stats.isCharacterDevice() ? "CharacterDevice" : "Unknown"
}

/** Returns the state of an open descriptor. The system has it since the file was opened, so this does not wait. */
export const infoOf = (descriptor: number): FileSystem.File.Info => {
  const stats = fstatSync(descriptor, { bigint: true })
  const unsigned = (value: bigint) => BigInt.asUintN(64, value)
  return {
    type: kindOf(stats),
    mtime: Option.some(stats.mtime),
    atime: Option.some(stats.atime),
    birthtime: Option.some(stats.birthtime),
    dev: unsigned(stats.dev),
    rdev: Option.some(unsigned(stats.rdev)),
    ino: Option.some(unsigned(stats.ino)),
    mode: Number(stats.mode),
    nlink: Option.some(unsigned(stats.nlink)),
    uid: Option.some(Number(stats.uid)),
    gid: Option.some(Number(stats.gid)),
    size: ByteSize.bytes(stats.size),
    blksize: Option.some(ByteSize.bytes(stats.blksize)),
    blocks: Option.some(stats.blocks)
  }
}

const statAt = (descriptor: number, method: string, place: string): Fallible<FileSystem.File.Info> =>
  Effect.try({ try: () => infoOf(descriptor), catch: (cause) => failure("Unknown", method, place, cause) })

/** One operation of a file system. */
interface Operation {
  readonly held: Held
  readonly method: string
  readonly path: Path.Path
}

/**
 * Walks down from the root of the file system, each step relative to the folder that is held open. Safe by itself; a shortcut is used
 * before it where the kernel confirms the result.
 */
const descend = Effect.fnUntraced(function* ({ held, method }: Operation, place: string, isFolder: boolean) {
  const fail = (error: NodeJS.ErrnoException) => failed(method, place, error)
  let here = yield* Effect.mapError(open(held, "/", constants.O_DIRECTORY), fail)
  const names = place.split("/").filter((name) => name !== "")
  for (const [i, name] of names.entries()) {
    const next = yield* Effect.mapError(open(held, `${at(here)}/${name}`, 0), fail)
    drop(held, here)
    here = next
    if (i === names.length - 1 && !isFolder) break
    const { type } = yield* statAt(here, method, place)
    if (type === "SymbolicLink") return yield* linked(method, place)
    if (type !== "Directory") return yield* notFolder(method, place)
  }
  return here
})

/** Opens a descriptor of exactly this path. */
const pin = Effect.fnUntraced(function* (operation: Operation, requested: string, isFolder = false) {
  const { held, path } = operation
  const place = path.resolve(requested)
  const short = yield* Effect.result(open(held, place, isFolder ? constants.O_DIRECTORY : 0))
  if (short._tag === "Success") {
    if ((yield* leadsTo(short.success)) === place) return short.success
    drop(held, short.success)
  }
  return yield* descend(operation, place, isFolder)
})

/** Runs an operation, and closes its descriptors when it ends. */
const holding = <A, R>(
  path: Path.Path,
  method: string,
  body: (operation: Operation) => Fallible<A, R>
): Fallible<A, R> => Effect.acquireUseRelease(begin, (held) => body({ held, method, path }), end)

/** Refuses anything but a regular file. */
const requireFile = Effect.fnUntraced(function* (descriptor: number, method: string, place: string) {
  const { type } = yield* statAt(descriptor, method, place)
  if (type === "SymbolicLink") return yield* linked(method, place)
  if (type !== "File") return yield* failure("BadResource", method, place, new Error("it is not a regular file"))
})

const accessByDescriptors = (path: Path.Path): PathAccess => {
  const on: PathAccess["on"] = (method, place, work, kind) =>
    holding(path, method, (operation) =>
      Effect.flatMap(pin(operation, place, kind === "folder"), (descriptor) => {
        const done = Effect.mapError(work(at(descriptor)), aboutPath(place, at(descriptor)))
        return kind === "file" ? Effect.andThen(requireFile(descriptor, method, place), done) : done
      })
    )
  // Uninterruptible: the descriptor is held until the system is done.
  const below: PathAccess["below"] = (method, place, work) =>
    holding(path, method, (operation) =>
      Effect.flatMap(pin(operation, path.dirname(place), true), (folder) => {
        const held = `${at(folder)}/${path.basename(place)}`
        return Effect.uninterruptible(Effect.mapError(work(held), aboutPath(place, held)))
      })
    )
  return {
    path,
    on,
    below,
    open: (fs, place, { flag = "r", mode }) => {
      const made = below("open", place, (held) =>
        fs.open(held, { flag, ...(mode === undefined ? {} : { mode }), noFollow: true })
      )
      if (flag.includes("x")) return made
      const there = on("open", place, (held) => Effect.uninterruptible(fs.open(held, { flag })), "file")
      return flag.startsWith("r")
        ? there
        : Effect.catchIf(
            there,
            ({ reason }) => reason._tag === "NotFound",
            () => made
          )
    },
    info: (_, method, place) =>
      holding(path, method, (operation) =>
        Effect.flatMap(pin(operation, place), (descriptor) => statAt(descriptor, method, place))
      )
  }
}

/** Opens checked paths by descriptors, where these are paths. */
export const byDescriptors = (path: Path.Path): NoFollow => ({
  files: (fs) => checkedFiles(accessByDescriptors(path), fs),
  folder: (place) =>
    Effect.flatMap(Effect.acquireRelease(begin, end), (held) =>
      Effect.map(pin({ held, method: "open", path }, place, true), at)
    )
})
