import { Effect, FileSystem, Path, type PlatformError, Stream } from "effect"
import { decode, joinBytes } from "../../domain/text/Bytes.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { decodeCodex, type HistoryBase } from "../../domain/transcripts/codex/Record.ts"
import { isJson } from "../../domain/transcripts/JsonRecord.ts"
import { transcriptError, type TranscriptError, unreadable } from "./TranscriptError.ts"

/**
 * Finds what a rollout of Codex goes on from. A fork, and a session that went back, does not repeat the records before its own
 * (Codex since 0.149): its first record names the rollout that has them, and how many of that file's bytes count.
 */

/** Bytes read at once. */
const chunkBytes = 1024 * 1024
/** The first record holds Codex's instructions. A longer one is not looked into. */
const maxRecordBytes = 16 * chunkBytes

/** Returns the base that the first record of a file names. */
const baseIn = (line: Uint8Array): HistoryBase | undefined => {
  const { text } = decode(line)
  const record = text.includes('"history_base"') ? parsedOrUndefined(text) : undefined
  const decoded = isJson(record) ? decodeCodex(record) : undefined
  return decoded?._tag === "Session" ? decoded.base : undefined
}

/** A file in a folder of Codex's sessions, and the folder of Codex. */
const rolloutPath = /^(.*[/\\])(?:archived_)?sessions(?:[/\\]\d+){0,3}[/\\][^/\\]+$/

/** Finds the file of a rollout, whose name ends with its id: among Codex's sessions, or beside a file that lies elsewhere. */
const fileOf = Effect.fnUntraced(function* (rollout: string, other: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const beside = path.resolve(other)
  const [, home] = rolloutPath.exec(beside) ?? []
  const recursive = home !== undefined
  const folders = recursive ? [`${home}sessions`, `${home}archived_sessions`] : [path.dirname(beside)]
  for (const folder of folders) {
    const names = yield* Effect.orElseSucceed(fs.readDirectory(folder, { recursive }), () => [])
    const name = names.find((one) => one.endsWith(`-${rollout}.jsonl`) || one.endsWith(`_${rollout}.jsonl`))
    if (name !== undefined) return path.join(folder, name)
  }
  return undefined
})

/** Reads the first line of a file, with its line break. */
const firstLine = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const read = yield* fs.stream(file, { bytesToRead: maxRecordBytes, chunkSize: 64 * 1024 }).pipe(
    Stream.takeUntil((chunk) => chunk.includes(10)),
    Stream.runCollect
  )
  const bytes = joinBytes(read)
  return bytes.subarray(0, bytes.indexOf(10) + 1)
})

/** The bytes of a rollout up to `end`, in the form of files that repeat earlier records: its first record, those, and its others. */
const bytesOf = Effect.fnUntraced(function* (
  file: string,
  end: number,
  seen: ReadonlySet<string>
): Effect.fn.Return<
  Stream.Stream<Uint8Array, PlatformError.PlatformError> | undefined,
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path
> {
  const fs = yield* FileSystem.FileSystem
  const line = yield* firstLine(file)
  const base = baseIn(line)
  const part = (offset: number) => fs.stream(file, { offset, bytesToRead: end - offset, chunkSize: chunkBytes })
  if (base === undefined) return part(0)
  const before = yield* recordsBefore(file, base, seen)
  return before && Stream.make(line).pipe(Stream.concat(before), Stream.concat(part(line.length)))
})

/** The records that a base names. Undefined where a file is missing, or leads back to itself. */
const recordsBefore = Effect.fnUntraced(function* (file: string, base: HistoryBase, seen: ReadonlySet<string>) {
  const found = seen.has(base.rollout) ? undefined : yield* fileOf(base.rollout, file)
  return found === undefined ? undefined : yield* bytesOf(found, base.bytes, new Set([...seen, base.rollout]))
})

/**
 * Returns the records that stand before those of a rollout in its conversation, by the rollout's first line. `missing` names the
 * rollout that has them where its file, or one that it goes on from, is not there.
 */
export const earlierRecords = Effect.fn("CodexHistory.earlierRecords")(function* (
  file: string,
  line: Uint8Array
): Effect.fn.Return<
  | { readonly records: Stream.Stream<Uint8Array, TranscriptError>; readonly missing?: undefined }
  | { readonly records?: undefined; readonly missing: string }
  | undefined,
  TranscriptError,
  FileSystem.FileSystem | Path.Path
> {
  const base = baseIn(line)
  if (base === undefined) return undefined
  const failed = (error: PlatformError.PlatformError) => unreadable(file, error)
  const records = yield* Effect.mapError(recordsBefore(file, base, new Set()), failed)
  return records === undefined ? { missing: base.rollout } : { records: Stream.mapError(records, failed) }
})

/** The error for records that are missing. */
export const missingRecords = (file: string, rollout: string): TranscriptError =>
  transcriptError(
    file,
    1,
    `goes on from the rollout ${rollout}, whose file is not among Codex's sessions`,
    "BrokenLine"
  )
