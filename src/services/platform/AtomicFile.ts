/**
 * Writes files whole or not at all: under a temporary name in the same folder, then renamed. A reader sees the old file or the new
 * one, and a full disk or an interruption leaves the old one. Only a file of another owner or group is written into, so that it keeps
 * them.
 */

import { Effect, FileSystem, Option, Path, PlatformError } from "effect"
import { encode } from "../../domain/text/Bytes.ts"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import { newTemporaryName } from "./ProcessIdentity.ts"
import { fileKindNames } from "./RegularFile.ts"

/** Attempts to find a free temporary name. */
const maxNameAttempts = 4

/** Creates an empty temporary file beside `file`. Without a mode it gets the system's default. */
export const claim = Effect.fn("AtomicFile.claim")(
  function* (file: string, mode: number | undefined) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const temporary = path.join(path.dirname(file), yield* newTemporaryName)
    yield* Effect.scoped(fs.open(temporary, { flag: "wx", ...(mode === undefined ? {} : { mode }) }))
    return temporary
  },
  Effect.retry({ times: maxNameAttempts - 1, while: ({ reason }) => reason._tag === "AlreadyExists" })
)

/** Writes and syncs a claimed file, and sets its mode if there is one. */
export const fill = Effect.fn("AtomicFile.fill")(function* (
  temporary: string,
  bytes: Uint8Array,
  mode: number | undefined
) {
  const fs = yield* FileSystem.FileSystem
  const handle = yield* fs.open(temporary, { flag: "r+" })
  yield* handle.writeAll(bytes)
  yield* handle.sync
  if (mode !== undefined) yield* fs.chmod(temporary, mode)
}, Effect.scoped)

/** A finalizer does not wait longer for a disk. */
export const finalizerDeadline = "5 seconds"

/** Attempts to remove a temporary file: its folder may have another name for a moment. */
const maxRemoveAttempts = 20

/** Removes a file in a finalizer: tries again, gives up after a deadline, and never fails. */
export const discard = (file: string): Effect.Effect<void, never, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) =>
    fs
      .remove(file, { force: true })
      .pipe(
        Effect.retry({ times: maxRemoveAttempts - 1 }),
        Effect.timeoutOption(finalizerDeadline),
        Effect.ignore({ log: "Warn" })
      )
  )

/** Whether a file exists that would get another owner or group if this temporary file took its place. */
const isOfOthers = Effect.fnUntraced(function* (temporary: string, file: string) {
  const fs = yield* FileSystem.FileSystem
  const there = yield* Effect.option(fs.lstat(file))
  if (Option.isNone(there) || there.value.type !== "File") return false
  const own = yield* fs.lstat(temporary)
  const isOther = (one: Option.Option<number>, other: Option.Option<number>) =>
    Option.isSome(one) && Option.isSome(other) && one.value !== other.value
  return isOther(there.value.uid, own.uid) || isOther(there.value.gid, own.gid)
})

/**
 * Writes into an existing file, which keeps its owner and mode. To give a new one away by its name would be unsafe: in a folder of another
 * user's, that name can lead elsewhere by then. When it fails, the old content is written back.
 */
const overwrite = Effect.fnUntraced(function* (file: string, bytes: Uint8Array) {
  const fs = yield* FileSystem.FileSystem
  const before = yield* fs.readFile(file)
  const handle = yield* fs.open(file, { flag: "r+", noFollow: true })
  const put = Effect.fnUntraced(function* (content: Uint8Array) {
    yield* handle.seek(0n, "start")
    yield* handle.writeAll(content)
    yield* handle.truncate(content.length)
    yield* handle.sync
  })
  yield* Effect.onError(put(bytes), () => Effect.ignore(put(before)))
}, Effect.scoped)

/**
 * Writes a file. With a mode, no other user can read it before it has that mode; without one it gets the system's default. A file of
 * another owner keeps its mode. A link in its place is replaced; to follow it, pass the path it leads to.
 */
export const write = Effect.fn("AtomicFile.write")(function* (
  file: string,
  bytes: Uint8Array,
  mode: number | undefined
) {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.acquireUseRelease(
    claim(file, mode === undefined ? undefined : 0o600),
    (temporary) =>
      Effect.gen(function* () {
        if (yield* isOfOthers(temporary, file)) {
          yield* overwrite(file, bytes)
          return yield* discard(temporary)
        }
        yield* fill(temporary, bytes, mode)
        yield* fs.rename(temporary, file)
        // An interrupted write would continue in the background.
      }).pipe(Effect.uninterruptible),
    (temporary, exit) => (exit._tag === "Success" ? Effect.void : discard(temporary))
  )
})

const unusable = (place: string, why: string) =>
  PlatformError.systemError({
    _tag: "BadResource",
    module: "FileSystem",
    method: "writeFile",
    pathOrDescriptor: place,
    cause: new Error(why)
  })

/** Returns the path of a file with links followed, also for one that does not exist yet. Fails where a link leads nowhere. */
export const leadsTo: (
  file: string
) => Effect.Effect<string, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> = Effect.fn(
  "AtomicFile.leadsTo"
)(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  return yield* Effect.catchIf(fs.realPath(file), isNotFound, (error) =>
    Effect.gen(function* () {
      const link = yield* Effect.option(fs.readLink(file))
      if (Option.isSome(link)) return yield* unusable(file, "it is a link that leads nowhere; repair or remove it")
      const folder = path.dirname(file)
      return folder === file ? yield* error : path.join(yield* leadsTo(folder), path.basename(file))
    })
  )
})

/**
 * Rewrites a file of the user's: follows links, and keeps the mode. Fails for a read-only file and for anything but a regular file. A
 * new file gets `mode`.
 */
export const rewrite = Effect.fn("AtomicFile.rewrite")(function* (
  file: string,
  bytes: Uint8Array,
  mode: number | undefined
) {
  const fs = yield* FileSystem.FileSystem
  const target = yield* leadsTo(file)
  const info = yield* Effect.catchIf(fs.stat(target), isNotFound, () => Effect.undefined)
  if (info === undefined) return yield* write(target, bytes, mode)
  if (info.type !== "File") return yield* unusable(file, `it is ${fileKindNames[info.type]}, and no regular file`)
  // A rename would replace it nevertheless.
  yield* fs.access(target, { writable: true })
  yield* write(target, bytes, info.mode & 0o7777)
})

const makeFolderOf = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })
})

/** Rewrites a file of the user's like `rewrite`. If it is new, only its owner can read it (0600), and the folders that it needs (0700). */
export const rewritePrivate = Effect.fn("AtomicFile.rewritePrivate")(function* (file: string, text: string) {
  yield* makeFolderOf(file)
  yield* rewrite(file, encode(text), 0o600)
}, Effect.uninterruptible)

/** Writes a file that only its owner can read (0600), and creates its folders (0700). */
export const writePrivate = Effect.fn("AtomicFile.writePrivate")(function* (file: string, text: string) {
  yield* makeFolderOf(file)
  yield* write(file, encode(text), 0o600)
}, Effect.uninterruptible)
