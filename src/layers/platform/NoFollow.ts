import { ByteSize, Effect, FileSystem, Option, Path, PlatformError, type Scope, Stream } from "effect"
import { type BigIntStats, close, closeSync, constants, fstatSync, open as openNode, readlinkSync } from "node:fs"

/**
 * File systems that follow no link: a caller that checked a path opens exactly that file, or nothing. Node has no `openat`. On Linux an
 * open descriptor takes its place: the kernel says where it leads, and `/proc/self/fd/N/name` begins there, whatever happens to its path
 * meanwhile. One file: two implementations of one interface, of which a machine uses one.
 */

/** Opens paths that were already checked: absolute, with links followed. */
export interface NoFollow {
  /** Returns the same file system for checked paths. A link in any part of the path is an error and is not followed. */
  readonly files: (fs: FileSystem.FileSystem) => FileSystem.FileSystem
  /** Returns a path that leads to exactly this folder until the scope closes. *When to use*: to start a process in it. */
  readonly folder: (place: string) => Effect.Effect<string, PlatformError.PlatformError, Scope.Scope>
}

type Fallible<A> = Effect.Effect<A, PlatformError.PlatformError>

const failure = (tag: PlatformError.SystemErrorTag, method: string, place: string, cause: unknown) =>
  PlatformError.systemError({ _tag: tag, module: "FileSystem", method, pathOrDescriptor: place, cause })

const tags: Readonly<Record<string, PlatformError.SystemErrorTag>> = {
  ENOENT: "NotFound",
  EACCES: "PermissionDenied",
  EPERM: "PermissionDenied",
  EEXIST: "AlreadyExists",
  ENOTDIR: "BadResource",
  EISDIR: "BadResource"
}

const failed = (method: string, place: string, cause: NodeJS.ErrnoException) =>
  failure(tags[cause.code ?? ""] ?? "Unknown", method, place, cause)

const linked = (method: string, place: string) =>
  failure("Unknown", method, place, new Error("it was replaced by a link, or a folder above it was; try again"))

const notFolder = (method: string, place: string) =>
  failure("BadResource", method, place, Object.assign(new Error("not a folder"), { code: "ENOTDIR" }))

/** Converts an error about a path below a descriptor to one about the original path. */
const named =
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

/** Operations on links and temporary files are not available for checked paths. */
const unoffered = (method: string) => () =>
  Effect.fail(PlatformError.badArgument({ module: "FileSystem", method, description: "not where no link is followed" }))

const others = {
  chown: unoffered("chown"),
  copy: unoffered("copy"),
  copyFile: unoffered("copyFile"),
  link: unoffered("link"),
  makeTempDirectory: unoffered("makeTempDirectory"),
  makeTempDirectoryScoped: unoffered("makeTempDirectoryScoped"),
  makeTempFile: unoffered("makeTempFile"),
  makeTempFileScoped: unoffered("makeTempFileScoped"),
  readLink: unoffered("readLink"),
  symlink: unoffered("symlink"),
  truncate: unoffered("truncate"),
  utimes: unoffered("utimes")
}

/** Creates a folder and its missing parents one after the other, and checks those that already existed. */
const makeFolders = (
  path: Path.Path,
  place: string,
  makeOne: (place: string) => Fallible<void>,
  check: (place: string) => Fallible<void>
): Fallible<void> =>
  makeOne(place).pipe(
    Effect.catchIf(
      ({ reason }) => reason._tag === "NotFound" && path.dirname(place) !== place,
      () => Effect.andThen(makeFolders(path, path.dirname(place), makeOne, check), makeOne(place))
    ),
    Effect.catchIf(
      ({ reason }) => reason._tag === "AlreadyExists",
      () => check(place)
    )
  )

// --- Linux: by descriptors ------------------------------------------------------------------------------------------------------

/** `O_PATH`: opens a descriptor without opening the file itself, so that no pipe blocks and no device starts to work. */
const O_PATH = 0o10000000

/** The descriptors of one operation, closed when it ends. */
interface Held {
  readonly descriptors: Set<number>
  isOver: boolean
}

const begin = Effect.sync((): Held => ({ descriptors: new Set(), isOver: false }))
const end = (held: Held) =>
  Effect.sync(() => {
    held.isOver = true
    for (const descriptor of held.descriptors) closeSync(descriptor)
    held.descriptors.clear()
  })

const at = (descriptor: number) => `/proc/self/fd/${descriptor}`

/** Opens a descriptor. Interruptible, because a network folder that is gone may never answer. A descriptor that arrives later is closed. */
const open = (held: Held, place: string, flags: number): Effect.Effect<number, NodeJS.ErrnoException> =>
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
const leadsTo = (descriptor: number) =>
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
const infoOf = (descriptor: number): FileSystem.File.Info => {
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

const byDescriptors = (path: Path.Path): NoFollow => {
  /**
   * Walks down from the root of the file system, each step relative to the folder that is held open. Safe by itself; a shortcut is used
   * before it where the kernel confirms the result.
   */
  const descend = Effect.fnUntraced(function* (held: Held, method: string, place: string, isFolder: boolean) {
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

  const pin = Effect.fnUntraced(function* (held: Held, method: string, given: string, isFolder: boolean) {
    const place = path.resolve(given)
    const short = yield* Effect.result(open(held, place, isFolder ? constants.O_DIRECTORY : 0))
    if (short._tag === "Success") {
      if ((yield* leadsTo(short.success)) === place) return short.success
      drop(held, short.success)
    }
    return yield* descend(held, method, place, isFolder)
  })

  type Pin = (place: string, isFolder?: boolean) => Fallible<number>
  const holding = <A, R>(
    method: string,
    body: (pin: Pin) => Effect.Effect<A, PlatformError.PlatformError, R>
  ): Effect.Effect<A, PlatformError.PlatformError, R> =>
    Effect.acquireUseRelease(
      begin,
      (held) => body((place, isFolder = false) => pin(held, method, place, isFolder)),
      end
    )

  /** Runs an operation on an existing path. */
  const on =
    <A, R>(
      method: string,
      isFolder: boolean,
      work: (held: string) => Effect.Effect<A, PlatformError.PlatformError, R>
    ) =>
    (place: string): Effect.Effect<A, PlatformError.PlatformError, R> =>
      holding(method, (pin) =>
        Effect.flatMap(pin(place, isFolder), (held) => Effect.mapError(work(at(held)), named(place, at(held))))
      )

  /** Runs an operation on a name in its folder. Uninterruptible: the descriptor is held until the system is done. */
  const below = <A, R>(
    pin: Pin,
    place: string,
    work: (held: string) => Effect.Effect<A, PlatformError.PlatformError, R>
  ): Effect.Effect<A, PlatformError.PlatformError, R> =>
    Effect.flatMap(pin(path.dirname(place), true), (folder) => {
      const held = `${at(folder)}/${path.basename(place)}`
      return Effect.uninterruptible(Effect.mapError(work(held), named(place, held)))
    })

  /** Runs an operation on an existing regular file, so that no pipe blocks and no device starts to work. */
  const onFile = <A, R>(
    method: string,
    place: string,
    work: (held: string) => Effect.Effect<A, PlatformError.PlatformError, R>
  ): Effect.Effect<A, PlatformError.PlatformError, R> =>
    holding(method, (pin) =>
      Effect.gen(function* () {
        const held = yield* pin(place)
        const { type } = yield* statAt(held, method, place)
        if (type === "SymbolicLink") return yield* linked(method, place)
        if (type !== "File") return yield* failure("BadResource", method, place, new Error("it is no regular file"))
        return yield* Effect.mapError(work(at(held)), named(place, at(held)))
      })
    )

  const wrap = (fs: FileSystem.FileSystem): FileSystem.FileSystem => {
    const makeOne = (place: string, mode: number | undefined) =>
      holding("makeDirectory", (pin) =>
        below(pin, place, (held) => fs.makeDirectory(held, mode === undefined ? {} : { mode }))
      )

    return FileSystem.make({
      ...others,
      access: (place, options) => on("access", false, (held) => fs.access(held, options))(place),
      chmod: (place, mode) => on("chmod", false, (held) => Effect.uninterruptible(fs.chmod(held, mode)))(place),
      makeDirectory: (place, { mode, recursive = false } = {}) =>
        recursive
          ? makeFolders(
              path,
              place,
              (each) => makeOne(each, mode),
              (each) => holding("makeDirectory", (pin) => Effect.asVoid(pin(each, true)))
            )
          : makeOne(place, mode),
      open: (place, { flag = "r", mode } = {}) => {
        const made = holding("open", (pin) =>
          below(pin, place, (held) => fs.open(held, { flag, ...(mode === undefined ? {} : { mode }), noFollow: true }))
        )
        if (flag.includes("x")) return made
        const there = onFile("open", place, (held) => Effect.uninterruptible(fs.open(held, { flag })))
        return flag.startsWith("r")
          ? there
          : Effect.catchIf(
              there,
              ({ reason }) => reason._tag === "NotFound",
              () => made
            )
      },
      readDirectory: (place, options) =>
        options?.recursive === true
          ? unoffered("readDirectory")()
          : on("readDirectory", true, (held) => fs.readDirectory(held))(place),
      readDirectoryEntries: on("readDirectoryEntries", true, (held) => fs.readDirectoryEntries(held)),
      readFile: (place) => onFile("readFile", place, (held) => fs.readFile(held)),
      realPath: (place) => on("realPath", false, () => Effect.succeed(place))(place),
      remove: (place, options) =>
        options?.recursive === true
          ? unoffered("remove")()
          : holding("remove", (pin) => below(pin, place, (held) => fs.remove(held, options))),
      rename: (from, to) =>
        holding("rename", (pin) => below(pin, from, (source) => below(pin, to, (target) => fs.rename(source, target)))),
      // Neither operation follows a link.
      lstat: (place) => holding("lstat", (pin) => Effect.flatMap(pin(place), (held) => statAt(held, "lstat", place))),
      stat: (place) => holding("stat", (pin) => Effect.flatMap(pin(place), (held) => statAt(held, "stat", place))),
      watch: () => Stream.unwrap(unoffered("watch")()),
      writeFile: unoffered("writeFile")
    })
  }

  return {
    files: wrap,
    folder: (place) =>
      Effect.flatMap(Effect.acquireRelease(begin, end), (held) => Effect.map(pin(held, "open", place, true), at))
  }
}

// --- elsewhere: checks before and after -----------------------------------------------------------------------------------------

/** Attempts to open a file that is replaced meanwhile. */
const maxAttempts = 3

/** Returns whether two checks saw the same file. */
const isSame = (one: FileSystem.File.Info, other: FileSystem.File.Info): boolean =>
  one.dev === other.dev && Option.getOrUndefined(one.ino) === Option.getOrUndefined(other.ino)

/**
 * Without descriptors as paths, a path is checked before and after: the result counts only if no link was on the way both times. Two
 * exchanges of folders in between are not detected.
 */
const byLooks = (base: FileSystem.FileSystem, path: Path.Path): NoFollow => {
  const check = (method: string, place: string): Fallible<void> =>
    Effect.flatMap(base.realPath(place), (real) => (real === path.resolve(place) ? Effect.void : linked(method, place)))

  const on =
    <A, R>(method: string, fs: (place: string) => Effect.Effect<A, PlatformError.PlatformError, R>) =>
    (place: string) =>
      Effect.andThen(
        check(method, place),
        Effect.tap(fs(place), () => check(method, place))
      )
  const below = <A, R>(method: string, place: string, work: Effect.Effect<A, PlatformError.PlatformError, R>) =>
    on(method, () => work)(path.dirname(place))

  const wrap = (fs: FileSystem.FileSystem): FileSystem.FileSystem => {
    const makeOne = (place: string, mode: number | undefined) =>
      below("makeDirectory", place, fs.makeDirectory(place, mode === undefined ? {} : { mode }))
    return FileSystem.make({
      ...others,
      access: (place, options) => on("access", () => fs.access(place, options))(place),
      chmod: (place, mode) => on("chmod", () => fs.chmod(place, mode))(place),
      makeDirectory: (place, { mode, recursive = false } = {}) =>
        recursive
          ? makeFolders(
              path,
              place,
              (each) => makeOne(each, mode),
              (each) => check("makeDirectory", each)
            )
          : makeOne(place, mode),
      open: (place, options = {}) => {
        if (options.flag?.includes("x") === true) return below("open", place, fs.open(place, options))
        const there = on("open", () =>
          Effect.gen(function* () {
            // The file may also have been replaced by another one, as editors do.
            for (let i = 0; i < maxAttempts; i += 1) {
              const file = yield* fs.open(place, options)
              if (isSame(yield* file.stat, yield* fs.stat(place))) return file
            }
            return yield* linked("open", place)
          })
        )(place)
        return options.flag === undefined || options.flag.startsWith("r") ? there : unoffered("open")()
      },
      readDirectory: (place, options) => on("readDirectory", () => fs.readDirectory(place, options))(place),
      readDirectoryEntries: on("readDirectoryEntries", (place) => fs.readDirectoryEntries(place)),
      readFile: on("readFile", (place) => fs.readFile(place)),
      realPath: (place) => Effect.as(check("realPath", place), place),
      remove: (place, options) =>
        options?.recursive === true ? unoffered("remove")() : below("remove", place, fs.remove(place, options)),
      rename: (from, to) => below("rename", from, below("rename", to, fs.rename(from, to))),
      lstat: on("lstat", (place) => fs.lstat(place)),
      stat: on("stat", (place) => fs.stat(place)),
      watch: () => Stream.unwrap(unoffered("watch")()),
      writeFile: unoffered("writeFile")
    })
  }
  return { files: wrap, folder: (place) => Effect.as(check("open", place), place) }
}

/**
 * Makes the safest implementation that this file system supports. Descriptors are used where they are paths: not on macOS and Windows,
 * not without `/proc`, and not for files outside the machine's own file system.
 */
export const make = Effect.gen(function* (): Effect.fn.Return<NoFollow, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const tried = Effect.gen(function* () {
    const held = yield* Effect.acquireRelease(begin, end)
    const top = path.resolve("/")
    const descriptor = yield* open(held, top, constants.O_DIRECTORY)
    return isSame(yield* fs.stat(`${at(descriptor)}/.`), yield* fs.stat(top)) && (yield* leadsTo(descriptor)) === top
  })
  const isHeld = yield* Effect.scoped(tried).pipe(Effect.orElseSucceed(() => false))
  return isHeld ? byDescriptors(path) : byLooks(fs, path)
})
