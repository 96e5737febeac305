/** Keeps blobs as files, named by their hash. */

import { Effect, FileSystem, Layer, Path, type PlatformError, Schema } from "effect"
import { Buffer } from "node:buffer"
import { Handle, Hash, matches } from "../../domain/content/Handle.ts"
import { diskErrorText } from "../../domain/text/DiskErrors.ts"
import { newTemporaryName } from "../../services/platform/ProcessIdentity.ts"
import * as Sha256 from "../../services/session/Sha256.ts"
import {
  BlobDamaged,
  BlobFolder,
  blobMissing,
  BlobUnavailable,
  HandleAmbiguous,
  TempStore,
  TempStoreError
} from "../../services/session/TempStore.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"
import { discard, syncFolder } from "./SessionFolder.ts"

const isHash = Schema.is(Hash)
const isHandle = Schema.is(Handle)

const damaged = (name: string) => new TempStoreError({ reason: new BlobDamaged({ name }) })
const unavailable = (operation: string) => (cause: PlatformError.PlatformError) =>
  new TempStoreError({ reason: new BlobUnavailable({ operation, message: diskErrorText(cause), cause }) })

const isTagged = (tag: PlatformError.SystemErrorTag) => (error: PlatformError.PlatformError) =>
  error.reason._tag === tag
const isNotFound = isTagged("NotFound")

/** A folder of blobs. */
interface BlobFiles {
  readonly directory: string
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
}

/** Returns the content under a name; undefined when that is not a regular file: a link may lead out of this folder. */
const content = Effect.fnUntraced(function* ({ directory, fs, path }: BlobFiles, name: Hash) {
  const file = path.join(directory, name)
  // Reading a pipe or a device in a blob's place would never end.
  return (yield* fs.lstat(file)).type === "File" ? yield* fs.readFile(file) : undefined
})

/** Creates an empty file under a unique name, in the folder where it will be renamed. */
const claim = Effect.fnUntraced(function* ({ directory, fs, path }: BlobFiles) {
  for (;;) {
    const file = path.join(directory, yield* ThisProcess.provide(newTemporaryName))
    const claimed = yield* Effect.scoped(fs.open(file, { flag: "wx", mode: 0o600 })).pipe(
      Effect.as(true),
      Effect.catchIf(isTagged("AlreadyExists"), () => Effect.succeed(false))
    )
    if (claimed) return file
  }
})

const fill = Effect.fnUntraced(function* ({ fs }: BlobFiles, file: string, bytes: Uint8Array) {
  const handle = yield* fs.open(file, { flag: "r+" })
  // An interrupted write would continue in the background, into whatever file gets this descriptor next.
  yield* Effect.uninterruptible(handle.writeAll(bytes))
  yield* handle.sync
}, Effect.scoped)

const write = Effect.fnUntraced(function* (files: BlobFiles, name: Hash, bytes: Uint8Array) {
  const { directory, fs, path } = files
  let renamed = false
  const rename = (file: string) =>
    Effect.andThen(
      fs.rename(file, path.join(directory, name)),
      Effect.sync(() => {
        renamed = true
      })
    )
  yield* Effect.acquireUseRelease(
    claim(files),
    (file) => Effect.andThen(fill(files, file, bytes), Effect.uninterruptible(rename(file))),
    (file) => (renamed ? Effect.void : discard(files, file))
  )
})

const put = Effect.fn("TempStore.put")(
  function* (files: BlobFiles, bytes: Uint8Array) {
    const { directory, fs } = files
    const name = yield* Sha256.hash(bytes)
    const there = yield* content(files, name).pipe(Effect.catchIf(isNotFound, () => Effect.void))
    if (there === undefined || Buffer.compare(there, bytes) !== 0) {
      // After an interruption, the folder could still be created after the cleanup.
      yield* Effect.uninterruptible(fs.makeDirectory(directory, { recursive: true, mode: 0o700 }))
      yield* write(files, name, bytes)
    }
    // Also for a stored blob: the process that renamed it may have been killed right after.
    yield* syncFolder(files)
    return name
  },
  Effect.mapError(unavailable("put"))
)

const get = Effect.fn("TempStore.get")(function* (files: BlobFiles, name: Hash) {
  if (!isHash(name)) return yield* blobMissing(String(name))
  const bytes = yield* content(files, name).pipe(
    Effect.mapError((error) => (isNotFound(error) ? blobMissing(name) : unavailable("get")(error)))
  )
  if (bytes === undefined || (yield* Sha256.hash(bytes)) !== name) return yield* damaged(name)
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
})

const resolve = Effect.fn("TempStore.resolve")(function* ({ directory, fs }: BlobFiles, handle: Handle) {
  if (!isHandle(handle)) return yield* blobMissing(String(handle))
  const names = yield* fs.readDirectory(directory).pipe(
    Effect.catchIf(isNotFound, () => Effect.succeed([])),
    Effect.mapError(unavailable("resolve"))
  )
  const [found, another] = names.flatMap((name) => (isHash(name) && matches(handle, name) ? [name] : []))
  if (found === undefined) return yield* blobMissing(handle)
  if (another !== undefined) return yield* new TempStoreError({ reason: new HandleAmbiguous({ name: handle }) })
  return found
})

/**
 * Stores blobs as files of `directory`, named by their hash. The first put creates the folder (mode 0700); files have mode 0600. A
 * put is durable when it returns; one that fails or is interrupted leaves neither a temporary file nor part of a blob. Putting
 * stored bytes again writes nothing; putting over a damaged blob repairs it. Reading never leaves the folder, neither by name nor
 * by link, and checks the bytes against the name.
 */
export const layer = (directory: string): Layer.Layer<TempStore, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    TempStore,
    Effect.gen(function* () {
      const files: BlobFiles = { directory, fs: yield* FileSystem.FileSystem, path: yield* Path.Path }
      return {
        hash: Sha256.hash,
        put: (bytes) => put(files, bytes),
        get: (name) => get(files, name),
        resolve: (handle) => resolve(files, handle)
      }
    })
  )

/** Opens the stores beside files, each in its own folder (see `layer`). */
export const folders: Layer.Layer<BlobFolder, never, FileSystem.FileSystem | Path.Path> = Layer.effect(
  BlobFolder,
  Effect.map(Effect.context<FileSystem.FileSystem | Path.Path>(), (platform) => ({
    at: (folder: string) => Layer.provide(layer(folder), Layer.succeedContext(platform))
  }))
)
