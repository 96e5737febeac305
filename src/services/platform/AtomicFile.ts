import { Effect, FileSystem, Path, type PlatformError, type Scope } from "effect"
import { encode } from "../../domain/text/Bytes.ts"
import { newTemporaryName } from "./ProcessIdentity.ts"

/**
 * Writes files whole or not at all: under a temporary name in the same folder, then renamed. A reader sees the old file or the new
 * one, and a full disk or an interruption leaves the old one.
 */

/** Attempts to find a free temporary name. */
const maxNameAttempts = 4

/** Creates an empty temporary file beside `file`. Without a mode it gets the system's default. */
export const claim = Effect.fn("AtomicFile.claim")(
  function* (
    file: string,
    mode: number | undefined
  ): Effect.fn.Return<string, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
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
): Effect.fn.Return<void, PlatformError.PlatformError, FileSystem.FileSystem | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const handle = yield* fs.open(temporary, { flag: "r+" })
  yield* handle.writeAll(bytes)
  yield* handle.sync
  if (mode !== undefined) yield* fs.chmod(temporary, mode)
}, Effect.scoped)

/** A finalizer does not wait longer for a disk. */
export const finalizerDeadline = "5 seconds"

/** Removes a file in a finalizer: tries again, gives up after a deadline, and never fails. */
export const discard = (file: string): Effect.Effect<void, never, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) =>
    fs
      .remove(file, { force: true })
      .pipe(Effect.retry({ times: 2 }), Effect.timeoutOption(finalizerDeadline), Effect.ignore({ log: "Warn" }))
  )

/**
 * Writes a file. With a mode, no other user can read it before it has that mode; without one it gets the system's default. A link
 * in its place is replaced; to follow it, pass the path it leads to.
 */
export const write = Effect.fn("AtomicFile.write")(function* (
  file: string,
  bytes: Uint8Array,
  mode: number | undefined
): Effect.fn.Return<void, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.acquireUseRelease(
    claim(file, mode === undefined ? undefined : 0o600),
    (temporary) =>
      // An interrupted write would continue in the background.
      Effect.uninterruptible(Effect.andThen(fill(temporary, bytes, mode), fs.rename(temporary, file))),
    (temporary, exit) => (exit._tag === "Success" ? Effect.void : discard(temporary))
  )
})

/** Writes a file that only its owner can read (0600), and creates its folders (0700). */
export const writePrivate = Effect.fn("AtomicFile.writePrivate")(function* (
  file: string,
  text: string
): Effect.fn.Return<void, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })
  yield* write(file, encode(text), 0o600)
}, Effect.uninterruptible)
