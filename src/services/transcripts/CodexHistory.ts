/**
 * Finds what a rollout of Codex goes on from. A fork, and a session that went back, does not repeat the records before its own
 * (Codex since 0.149): its first record names the rollout that has them, and how many of that file's bytes count.
 */

import { Effect, FileSystem, Path, type PlatformError, Stream } from "effect"
import { decode, joinBytes } from "../../domain/text/Bytes.ts"
import { isJson } from "../../domain/text/JsonObject.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { decodeCodex, type HistoryBase } from "../../domain/transcripts/codex/Record.ts"
import { transcriptError, type TranscriptError, unreadable } from "./TranscriptError.ts"

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

/** Returns the path of a file, and that behind a link to it: either folder may have what it goes on from. */
const pathsOf = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const absolute = path.resolve(file)
  return new Set([absolute, yield* Effect.orElseSucceed(fs.realPath(file), () => absolute)])
})

/** Finds the rollouts whose path has a form: among Codex's sessions, or beside a file that lies elsewhere. */
const rolloutsNear = Effect.fnUntraced(function* (other: string, isNamed: (name: string) => boolean) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const found: Array<string> = []
  for (const beside of yield* pathsOf(other)) {
    const [, home] = rolloutPath.exec(beside) ?? []
    const recursive = home !== undefined
    const folders = recursive ? [`${home}sessions`, `${home}archived_sessions`] : [path.dirname(beside)]
    for (const folder of folders) {
      const names = yield* Effect.orElseSucceed(fs.readDirectory(folder, { recursive }), () => [])
      for (const name of names) if (isNamed(name)) found.push(path.join(folder, name))
    }
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

/** A part of a file, with whole records. */
export interface RecordsPart {
  readonly file: string
  readonly from: number
  readonly to: number
}

/** The parts of a rollout up to `to`, in the order of files that repeat earlier records: its first record, those, and its others. */
const partsOf = Effect.fnUntraced(function* (
  file: string,
  to: number,
  seen: ReadonlySet<string>
): Effect.fn.Return<
  ReadonlyArray<RecordsPart> | undefined,
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path
> {
  const line = yield* firstLine(file)
  const base = baseIn(line)
  if (base === undefined || to === 0) return [{ file, from: 0, to }]
  const before = yield* partsBefore(file, base, seen)
  return before && [{ file, from: 0, to: line.length }, ...before, { file, from: line.length, to }]
})

/** The parts that a base names. Undefined where a file is missing or changed, or leads back to itself. */
const partsBefore = Effect.fnUntraced(function* (file: string, base: HistoryBase, seen: ReadonlySet<string>) {
  const [found] = seen.has(base.rollout) ? [] : yield* rolloutsNear(file, (name) => isRollout(name, base.rollout))
  if (found === undefined || !(yield* holds(found, base.bytes))) return undefined
  return yield* partsOf(found, base.bytes, new Set([...seen, base.rollout]))
})

/**
 * Returns the parts of other files that stand before a rollout's own records in its conversation, by the rollout's first line.
 * `missing` names the rollout that has them where its file, or one that it goes on from, is not there. Standard input (`-`) has no
 * file beside it.
 */
export const earlierParts = Effect.fn("CodexHistory.earlierParts")(function* (
  file: string,
  line?: Uint8Array
): Effect.fn.Return<
  { readonly parts: ReadonlyArray<RecordsPart>; readonly missing?: string },
  TranscriptError,
  FileSystem.FileSystem | Path.Path
> {
  const failed = (error: PlatformError.PlatformError) => unreadable(file, error)
  const base = baseIn(line ?? (yield* Effect.mapError(firstLine(file), failed)))
  if (base === undefined) return { parts: [] }
  const parts = file === "-" ? undefined : yield* Effect.mapError(partsBefore(file, base, new Set()), failed)
  return parts === undefined ? { parts: [], missing: base.rollout } : { parts }
})

/** Reads a part of a file. */
export const bytesIn = ({
  file,
  from,
  to
}: RecordsPart): Stream.Stream<Uint8Array, TranscriptError, FileSystem.FileSystem> =>
  Stream.unwrap(
    FileSystem.FileSystem.useSync((fs) =>
      fs.stream(file, { offset: from, bytesToRead: to - from, chunkSize: chunkBytes })
    )
  ).pipe(Stream.mapError((error) => unreadable(file, error)))

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
  const paths = [...(yield* pathsOf(file))]
  for (const other of yield* rolloutsNear(file, (name) => name.endsWith(".jsonl"))) {
    const line = holds(other, 0).pipe(Effect.flatMap((isFile) => (isFile ? firstLine(other) : Effect.undefined)))
    const read = yield* Effect.orElseSucceed(line, () => undefined)
    const base = read === undefined ? undefined : baseIn(read)
    if (base !== undefined && paths.some((path) => isRollout(path, base.rollout))) return other
  }
  return undefined
})
