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

/** Finds the rollouts whose path has a form: among Codex's sessions, or beside a file that lies elsewhere. */
const rolloutsNear = Effect.fnUntraced(function* (other: string, isNamed: (name: string) => boolean) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const beside = path.resolve(other)
  const [, home] = rolloutPath.exec(beside) ?? []
  const recursive = home !== undefined
  const folders = recursive ? [`${home}sessions`, `${home}archived_sessions`] : [path.dirname(beside)]
  const found: Array<string> = []
  for (const folder of folders) {
    const names = yield* Effect.orElseSucceed(fs.readDirectory(folder, { recursive }), () => [])
    for (const name of names) if (isNamed(name)) found.push(path.join(folder, name))
  }
  return found
})

/** Whether a file has this rollout: its name ends with the id. */
const isRollout = (file: string, id: string): boolean => file.endsWith(`-${id}.jsonl`) || file.endsWith(`_${id}.jsonl`)

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

/** Whether a file has whole records up to a place. A pipe would hang, and a file that was written anew has other records. */
const holds = Effect.fnUntraced(function* (file: string, end: number) {
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* fs.stat(file)
  if (type !== "File" || Number(size) < end) return false
  const last = yield* Stream.runCollect(fs.stream(file, { offset: Math.max(0, end - 1), bytesToRead: 1 }))
  return end === 0 || last[0]?.[0] === 10
})

/** Records of a rollout, and how many bytes they have. */
interface Records<E> {
  readonly records: Stream.Stream<Uint8Array, E>
  readonly bytes: number
}

/** The records of a rollout up to `end`, in the form of files that repeat earlier ones: its first record, those, and its others. */
const recordsOf = Effect.fnUntraced(function* (
  file: string,
  end: number,
  seen: ReadonlySet<string>
): Effect.fn.Return<
  Records<PlatformError.PlatformError> | undefined,
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path
> {
  const fs = yield* FileSystem.FileSystem
  const line = yield* firstLine(file)
  const base = baseIn(line)
  const part = (offset: number) => fs.stream(file, { offset, bytesToRead: end - offset, chunkSize: chunkBytes })
  if (base === undefined || end === 0) return { records: part(0), bytes: end }
  const before = yield* recordsBefore(file, base, seen)
  return (
    before && {
      records: Stream.make(line).pipe(Stream.concat(before.records), Stream.concat(part(line.length))),
      bytes: before.bytes + end
    }
  )
})

/** The records that a base names. Undefined where a file is missing or changed, or leads back to itself. */
const recordsBefore = Effect.fnUntraced(function* (file: string, base: HistoryBase, seen: ReadonlySet<string>) {
  const [found] = seen.has(base.rollout) ? [] : yield* rolloutsNear(file, (name) => isRollout(name, base.rollout))
  if (found === undefined || !(yield* holds(found, base.bytes))) return undefined
  return yield* recordsOf(found, base.bytes, new Set([...seen, base.rollout]))
})

/**
 * Returns the records that stand before those of a rollout in its conversation, by the rollout's first line. `missing` names the
 * rollout that has them where its file, or one that it goes on from, is not there. Standard input (`-`) has no file beside it.
 */
export const earlierRecords = Effect.fn("CodexHistory.earlierRecords")(function* (
  file: string,
  line: Uint8Array
): Effect.fn.Return<
  | (Records<TranscriptError> & { readonly missing?: undefined })
  | { readonly records?: undefined; readonly bytes?: undefined; readonly missing: string }
  | undefined,
  TranscriptError,
  FileSystem.FileSystem | Path.Path
> {
  const base = baseIn(line)
  if (base === undefined) return undefined
  const failed = (error: PlatformError.PlatformError) => unreadable(file, error)
  const before = file === "-" ? undefined : yield* Effect.mapError(recordsBefore(file, base, new Set()), failed)
  return before === undefined
    ? { missing: base.rollout }
    : { ...before, records: Stream.mapError(before.records, failed) }
})

/** The error for records that are missing. */
export const missingRecords = (file: string, rollout: string): TranscriptError =>
  transcriptError(
    file,
    1,
    `goes on from the rollout ${rollout}, whose file is not among Codex's sessions, or was changed`,
    "BrokenLine"
  )

/** Returns a rollout that goes on from records of a file, and would lose them if the file were written anew. */
export const goesOnFrom = Effect.fn("CodexHistory.goesOnFrom")(function* (
  file: string
): Effect.fn.Return<string | undefined, never, FileSystem.FileSystem | Path.Path> {
  for (const other of yield* rolloutsNear(file, (name) => name.endsWith(".jsonl"))) {
    const line = holds(other, 0).pipe(Effect.flatMap((isFile) => (isFile ? firstLine(other) : Effect.undefined)))
    const read = yield* Effect.orElseSucceed(line, () => undefined)
    const base = read === undefined ? undefined : baseIn(read)
    if (base !== undefined && isRollout(file, base.rollout)) return other
  }
  return undefined
})
