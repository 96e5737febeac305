/** Reads files for tools: only regular files, and never half of one version and half of another. */

import { ByteSize, Effect, FileSystem, Option, type PlatformError, Schema } from "effect"
import { diskErrorText } from "../../domain/text/DiskErrors.ts"

/** The largest file that is read into memory. */
export const maxFileBytes = 20 * 1_024 * 1_024
/** The largest file that fits into one string; a larger limit has no effect. */
const maxStringBytes = 256 * 1_024 * 1_024

/** A file that cannot be read. The message names the file and the reason, in one sentence that the caller can act on. */
export class FileReadError extends Schema.TaggedError<FileReadError>()("FileReadError", {
  message: Schema.String,
  /** Which failure, in the words of Gemini CLI's tool errors. */
  type: Schema.Literals(["file_not_found", "target_is_directory", "read_content_failure", "file_too_large"])
}) {}

/** Names of file types that are not regular files. */
export const fileKindNames: Readonly<Record<Exclude<FileSystem.File.Type, "File">, string>> = {
  Directory: "a folder",
  SymbolicLink: "a link",
  BlockDevice: "a device",
  CharacterDevice: "a device",
  FIFO: "a named pipe",
  Socket: "a socket",
  Unknown: "not a regular file"
}

const readError = (shown: string) => (error: PlatformError.PlatformError) =>
  error.reason._tag === "NotFound"
    ? new FileReadError({ message: `there is no file ${shown}`, type: "file_not_found" })
    : new FileReadError({
        message: `${shown} could not be read: ${diskErrorText(error)}`,
        type: "read_content_failure"
      })

/** Checks that a path is a regular file, without opening it: opening a pipe would wait for a writer. */
export const inspect = Effect.fn("RegularFile.inspect")(function* (place: string, shown: string) {
  const fs = yield* FileSystem.FileSystem
  const info = yield* fs.stat(place).pipe(Effect.mapError(readError(shown)))
  if (info.type === "Directory") {
    return yield* new FileReadError({
      message: `${shown} is a folder; use list_directory to list it`,
      type: "target_is_directory"
    })
  }
  if (info.type !== "File") {
    return yield* new FileReadError({
      message: `${shown} is ${fileKindNames[info.type]}; only regular files can be read`,
      type: "read_content_failure"
    })
  }
  return info
})

/** Returns whether two states describe the same bytes, as far as the file system can tell. */
const isSame = (one: FileSystem.File.Info, other: FileSystem.File.Info): boolean =>
  one.type === other.type &&
  one.dev === other.dev &&
  one.size === other.size &&
  Option.getOrUndefined(one.ino) === Option.getOrUndefined(other.ino) &&
  Option.getOrUndefined(one.mtime)?.getTime() === Option.getOrUndefined(other.mtime)?.getTime()

/**
 * Reads the bytes of a file into one buffer, up to one more than `size`. The caller compares the file's state
 * afterwards to detect growth.
 */
const fill = Effect.fnUntraced(function* (file: FileSystem.File, size: number) {
  const bytes = new Uint8Array(size + 1)
  let length = 0
  while (length < bytes.length) {
    const read = yield* file.read(bytes.subarray(length))
    length += read
    if (read === 0 || length === size) break
  }
  return bytes.subarray(0, length)
})

const sizeText = (bytes: number): string =>
  bytes < 1_048_576 ? `${bytes.toLocaleString("en-US")} bytes` : `${(bytes / 1_048_576).toFixed(1)} MiB`

/** Reads once; undefined when the file was not the same before and after. */
const attempt = Effect.fnUntraced(function* (place: string, shown: string, maxBytes: number) {
  const fs = yield* FileSystem.FileSystem
  const before = yield* inspect(place, shown)
  const size = ByteSize.toNumberUnsafe(before.size)
  if (size > maxBytes) {
    return yield* new FileReadError({
      message: `${shown} has ${sizeText(size)}; files of more than ${sizeText(maxBytes).replace(".0 ", " ")} cannot be read at once`,
      type: "file_too_large"
    })
  }
  return yield* Effect.gen(function* () {
    const file = yield* fs.open(place, { flag: "r" })
    const opened = yield* file.stat
    if (!isSame(before, opened)) return undefined
    const bytes = yield* fill(file, size)
    // Checks by name once more: the path may lead to another file by now.
    const after = [yield* file.stat, yield* fs.stat(place)]
    const isWhole = bytes.length === size && after.every((info) => isSame(before, info))
    return isWhole && (yield* fs.realPath(place)) === place ? bytes : undefined
  }).pipe(Effect.scoped, Effect.mapError(readError(shown)))
})

/** Attempts before reading gives up on a file that changes each time. */
const maxAttempts = 3

/**
 * Reads a regular file: all bytes of one version of it. `place` is the absolute path with links followed, `shown` the name in
 * error messages. Refuses a file of more than `maxBytes`.
 */
export const read = Effect.fn("RegularFile.read")(function* (place: string, shown: string, limit = maxFileBytes) {
  for (let i = 0; i < maxAttempts; i += 1) {
    const bytes = yield* attempt(place, shown, Math.min(limit, maxStringBytes))
    if (bytes !== undefined) return bytes
  }
  return yield* new FileReadError({
    message: `${shown} kept changing while it was read; try again when no program writes to it`,
    type: "read_content_failure"
  })
})
