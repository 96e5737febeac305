import { ByteSize, Effect, FileSystem, Option, type PlatformError } from "effect"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import { ToolFailure } from "./Tool.ts"

/** Files as tools may read them: nothing but regular ones, and never half of one version and half of another. */

/** The largest file that is read into memory (spec 6). */
export const mostBytes = 20 * 1_024 * 1_024
/** Larger than this is none, whatever is asked for: what it says would not fit one string. */
const largest = 256 * 1_024 * 1_024

/** What is no regular file, as a person calls it. */
export const kinds: Readonly<Record<Exclude<FileSystem.File.Type, "File">, string>> = {
  Directory: "a folder",
  SymbolicLink: "a link",
  BlockDevice: "a device",
  CharacterDevice: "a device",
  FIFO: "a named pipe",
  Socket: "a socket",
  Unknown: "no regular file"
}

const tried = (shown: string) => (error: PlatformError.PlatformError) =>
  error.reason._tag === "NotFound"
    ? new ToolFailure({ message: `there is no file ${shown}`, type: "file_not_found" })
    : new ToolFailure({ message: `${shown} could not be read: ${diskTrouble(error)}`, type: "read_content_failure" })

/**
 * What is known of a file that may be read, by its path. It is looked at before it is opened: opening a pipe would wait for
 * somebody to write.
 */
export const look = Effect.fn("RegularFile.look")(function* (
  place: string,
  shown: string
): Effect.fn.Return<FileSystem.File.Info, ToolFailure, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const info = yield* fs.stat(place).pipe(Effect.mapError(tried(shown)))
  if (info.type === "Directory") {
    return yield* new ToolFailure({
      message: `${shown} is a folder; list_directory shows what is in it`,
      type: "target_is_directory"
    })
  }
  if (info.type !== "File") {
    return yield* new ToolFailure({
      message: `${shown} is ${kinds[info.type]}; only regular files can be read`,
      type: "read_content_failure"
    })
  }
  return info
})

/** Whether two looks saw the same bytes, as far as the file system tells. */
const isSame = (one: FileSystem.File.Info, other: FileSystem.File.Info): boolean =>
  one.type === other.type &&
  one.dev === other.dev &&
  one.size === other.size &&
  Option.getOrUndefined(one.ino) === Option.getOrUndefined(other.ino) &&
  Option.getOrUndefined(one.mtime)?.getTime() === Option.getOrUndefined(other.mtime)?.getTime()

/** The bytes of a file, up to one more than `size`, in one buffer. */
const fill = Effect.fnUntraced(function* (file: FileSystem.File, size: number) {
  const bytes = new Uint8Array(size + 1)
  let length = 0
  while (length < bytes.length) {
    const read = yield* file.read(bytes.subarray(length))
    if (read === 0) break
    length += read
  }
  return bytes.subarray(0, length)
})

/** A size as a person reads it. */
const sized = (bytes: number): string =>
  bytes < 1_048_576 ? `${bytes.toLocaleString("en-US")} bytes` : `${(bytes / 1_048_576).toFixed(1)} MiB`

/** Reads once; undefined when the file was not the same before and after. */
const attempt = Effect.fnUntraced(function* (place: string, shown: string, most: number) {
  const fs = yield* FileSystem.FileSystem
  const before = yield* look(place, shown)
  const size = ByteSize.toNumberUnsafe(before.size)
  if (size > most) {
    return yield* new ToolFailure({
      message: `${shown} has ${sized(size)}; files of more than ${sized(most).replace(".0 ", " ")} are not read whole`,
      type: "file_too_large"
    })
  }
  return yield* Effect.gen(function* () {
    const file = yield* fs.open(place, { flag: "r" })
    const opened = yield* file.stat
    if (!isSame(before, opened)) return undefined
    const bytes = yield* fill(file, size)
    // By name once more: what was replaced meanwhile is no longer what the path means.
    const after = [yield* file.stat, yield* fs.stat(place)]
    const isWhole = bytes.length === size && after.every((info) => isSame(before, info))
    return isWhole && (yield* fs.realPath(place)) === place ? bytes : undefined
  }).pipe(Effect.scoped, Effect.mapError(tried(shown)))
})

/** Readings that are given up when the file changes under each of them. */
const attempts = 3

/**
 * The bytes of a regular file: all of one version of it. `place` is absolute with links followed, `shown` is what it is
 * called to the model. A file of more than `most` bytes is refused.
 */
export const read = Effect.fn("RegularFile.read")(function* (
  place: string,
  shown: string,
  most = mostBytes
): Effect.fn.Return<Uint8Array, ToolFailure, FileSystem.FileSystem> {
  for (let i = 0; i < attempts; i += 1) {
    const bytes = yield* attempt(place, shown, Math.min(most, largest))
    if (bytes !== undefined) return bytes
  }
  return yield* new ToolFailure({
    message: `${shown} kept changing while it was read; try again when nothing writes to it`,
    type: "read_content_failure"
  })
})
