import { Context, Effect, FileSystem, Layer, Path, type Scope } from "effect"
import { Buffer } from "node:buffer"
import { platform } from "node:process"
import * as Bytes from "../../domain/text/Bytes.ts"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import { newTemporaryName } from "../../services/platform/ProcessIdentity.ts"
import { isSessionId } from "../../services/session/SessionStore.ts"
import { type BlobFolder, blobFolderOf, TempStore } from "../../services/session/TempStore.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

/**
 * A folder of session files, and the file operations that the lock, the log and the catalogue share.
 *
 * Each session has up to four entries in the folder: `<id>.jsonl` (the log), `<id>.jsonl.blobs/` (its large parts),
 * `<id>.title` and, while it is open, `<id>.lock`.
 */
export interface SessionFolder {
  readonly directory: string
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly blobFolders: BlobFolder["Service"]
}

/** The blob store of one session. */
export type Blobs = TempStore["Service"]

/** The path of a session's log. */
export const logFile = ({ directory, path }: SessionFolder, id: string): string => path.join(directory, `${id}.jsonl`)
/** The path of the file that holds a session's title. */
export const titleFile = ({ directory, path }: SessionFolder, id: string): string => path.join(directory, `${id}.title`)
/** The path of a session's blob folder. */
export const blobFolder = (folder: SessionFolder, id: string): string => blobFolderOf(logFile(folder, id))

/** The ids of the sessions among the names of a folder, newest first. */
export const sessionIds = (names: ReadonlyArray<string>): Array<string> =>
  names
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => name.slice(0, -".jsonl".length))
    .filter(isSessionId)
    .sort()
    .reverse()

/** Provides the folder's file system and this process. */
export const inFolder =
  ({ fs, path }: SessionFolder) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    ThisProcess.provide(
      Effect.provideService(Effect.provideService(effect, FileSystem.FileSystem, fs), Path.Path, path)
    )

/** Opens the blob store of a session until the scope closes. */
export const openBlobs = (folder: SessionFolder, id: string): Effect.Effect<Blobs, never, Scope.Scope> =>
  Effect.map(Layer.build(folder.blobFolders.at(blobFolder(folder, id))), (built) => Context.get(built, TempStore))

/** Removes a file in a finalizer. */
export const discard = ({ fs }: Pick<SessionFolder, "fs">, file: string): Effect.Effect<void> =>
  Effect.provideService(AtomicFile.discard(file), FileSystem.FileSystem, fs)

/** Makes new names in the folder durable. Windows has no such call. */
export const syncFolder = ({ directory, fs }: Pick<SessionFolder, "directory" | "fs">) =>
  platform === "win32"
    ? Effect.void
    : Effect.scoped(Effect.flatMap(fs.open(directory, { flag: "r" }), (handle) => handle.sync))

/** Writes and syncs a new file that only its owner can read. When this fails, the file's content is undefined. */
const writeNewFile = ({ fs }: SessionFolder, file: string, text: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      // An interrupted open can still create the file after its caller has removed it.
      const handle = yield* Effect.uninterruptible(fs.open(file, { flag: "wx", mode: 0o600 }))
      // An interrupted write would continue in the background, into whatever file gets this descriptor next.
      yield* Effect.uninterruptible(handle.writeAll(Bytes.encode(text)))
      yield* handle.sync
    })
  )

/**
 * Writes a file under a temporary name, runs `publish` with that name, and makes the result durable. When anything fails or
 * is interrupted, the temporary file is removed. Only writing can be interrupted; `publish` runs to its end.
 */
export const publishFile = Effect.fnUntraced(function* <A, E, R>(
  folder: SessionFolder,
  text: string,
  publish: (temporary: string) => Effect.Effect<A, E, R>
) {
  const temporary = folder.path.join(folder.directory, yield* inFolder(folder)(newTemporaryName))
  return yield* Effect.uninterruptibleMask((restore) =>
    restore(writeNewFile(folder, temporary, text)).pipe(
      Effect.andThen(publish(temporary)),
      Effect.onError(() => discard(folder, temporary))
    )
  )
})

/** Reads into a buffer from the byte `from` until the buffer is full or the file ends. Returns the filled part of it. */
export const readInto = Effect.fnUntraced(function* (handle: FileSystem.File, into: Buffer, from: number) {
  let size = 0
  while (size < into.length) {
    const read = yield* handle.read(into.subarray(size), { position: BigInt(from + size) })
    if (read === 0) break
    size += Number(read)
  }
  return into.subarray(0, size)
})

/** Reads the bytes from `from` to `to`, or to the end of the file. */
export const readRange = (handle: FileSystem.File, from: number, to: number) =>
  Effect.suspend(() => readInto(handle, Buffer.allocUnsafeSlow(to - from), from))

/** Reads the first bytes of a file. Returns undefined when there is no such file. */
export const readStart = ({ fs }: SessionFolder, file: string, bytes: number) =>
  Effect.scoped(Effect.flatMap(fs.open(file, { flag: "r" }), (handle) => readRange(handle, 0, bytes))).pipe(
    Effect.catchIf(isNotFound, () => Effect.void)
  )
