import { Effect, FileSystem, Path, type PlatformError, type Scope } from "effect"
import { encode } from "../domain/Bytes.ts"
import { freshTemporaryName } from "./Processes.ts"

/**
 * Files that are written whole or not at all: beside the place under a name of their own, and then renamed to it. A reader sees
 * the old one or the new one, and a full disk or an interruption leaves what was there.
 */

/** How often another name is tried for a temporary file. */
const names = 4

/** An empty file that nobody else has, beside the one that it will become. Without a mode it gets what the system gives. */
export const claim = Effect.fn("WholeFile.claim")(
  function* (
    file: string,
    mode: number | undefined
  ): Effect.fn.Return<string, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const temporary = path.join(path.dirname(file), yield* freshTemporaryName)
    yield* Effect.scoped(fs.open(temporary, { flag: "wx", ...(mode === undefined ? {} : { mode }) }))
    return temporary
  },
  Effect.retry({ times: names - 1, while: ({ reason }) => reason._tag === "AlreadyExists" })
)

/** Fills a claimed file, which is on the disk after that; with a mode it has that one in the end. */
export const fill = Effect.fn("WholeFile.fill")(function* (
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

/**
 * Writes a file. What has a mode is nobody else's to read before it has it; without one a file gets what the system gives. A link
 * in its place is replaced: who wants it followed gives the path behind it.
 */
export const write = Effect.fn("WholeFile.write")(function* (
  file: string,
  bytes: Uint8Array,
  mode: number | undefined
): Effect.fn.Return<void, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.acquireUseRelease(
    claim(file, mode === undefined ? undefined : 0o600),
    (temporary) =>
      // Interrupted, the write would go on behind our back.
      Effect.uninterruptible(Effect.andThen(fill(temporary, bytes, mode), fs.rename(temporary, file))),
    (temporary, exit) => (exit._tag === "Success" ? Effect.void : Effect.ignore(fs.remove(temporary, { force: true })))
  )
})

/** Writes a file of the program's own, which only its owner may read (0600); so may the folders that it makes for it (0700). */
export const writePrivate = Effect.fn("WholeFile.writePrivate")(function* (
  file: string,
  text: string
): Effect.fn.Return<void, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })
  yield* write(file, encode(text), 0o600)
}, Effect.uninterruptible)
