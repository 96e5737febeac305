/** Reads conversations of any agent, from files, databases and standard input. */

import { Context, Effect, FileSystem, Layer, type PlatformError, type Scope, Sink, Stdio, Stream } from "effect"
import { joinBytes, lineBreaks } from "../../domain/text/Bytes.ts"
import { ReportProgress } from "../platform/Progress.ts"
import { TempStore } from "../session/TempStore.ts"
import { chooseReader } from "./ChooseReader.ts"
import { bytesIn, earlierParts, missingRecords, type RecordsPart } from "./CodexHistory.ts"
import { inUtf8 } from "./LineSplitter.ts"
import type { Loaded, LoadOptions, LoadRequirements } from "./LoadedTranscript.ts"
import { errorAt, transcriptError, type TranscriptError, unreadable } from "./TranscriptError.ts"
import { sidecarLogs } from "./TranscriptExport.ts"
import { maxLineBytes } from "./TranscriptReader.ts"

/**
 * Reads a session out of an agent's database. `path` is that of the database, `#` and the session's id; undefined for any other
 * path. The rows come as JSON, one a line. Without a reader, no path is one of a database.
 */
export const SessionDatabase = Context.Reference<
  (path: string) => Stream.Stream<Uint8Array, TranscriptError> | undefined
>("palimpsest/services/transcripts/SessionDatabase", { defaultValue: () => () => undefined })

const chunkBytes = 1024 * 1024
/** Bytes from which the format is detected. */
const headBytes = 64 * 1024

const kinds: Readonly<Record<string, string>> = {
  Directory: "is a directory",
  FIFO: "is a pipe",
  Socket: "is a socket",
  CharacterDevice: "is a device",
  BlockDevice: "is a device"
}

/** Returns the bytes of a regular file, of standard input or of a session in a database. Other files are not opened, because a pipe would hang. */
const bytesOf = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const stdio = yield* Stdio.Stdio
  const fail = (error: PlatformError.PlatformError) => unreadable(path, error)
  const rows = (yield* SessionDatabase)(path)
  if (rows !== undefined) return { bytes: rows, size: undefined }
  if (path === "-") return { bytes: Stream.mapError(stdio.stdin, fail), size: undefined }
  const { size, type } = yield* Effect.mapError(fs.stat(path), fail)
  if (type !== "File") {
    const advice = type === "Directory" ? "" : "; use - to read standard input"
    return yield* transcriptError(path, 0, `${kinds[type] ?? "is not a regular file"}; expected a file${advice}`)
  }
  return { bytes: Stream.mapError(fs.stream(path, { chunkSize: chunkBytes }), fail), size: Number(size) }
})

/** Returns whether the chunks so far tell the format. It is detected from whole records, and the first one may be long. */
const tellsFormat = (): ((chunk: Uint8Array) => boolean) => {
  let size = 0
  let hasLine = false
  return (chunk) => {
    size += chunk.length
    hasLine = hasLine || chunk.includes(10)
    return size >= headBytes && (hasLine || size > maxLineBytes)
  }
}

/** Where lines come from: the lines before them of all that is read, and what their own numbers are less. */
interface LinesOf {
  readonly path: string
  readonly after: number
  readonly less: number
}

/** Returns the records of other files that a file goes on from, after its first one, then its others. Adds which lines are from where. */
const withEarlier = (
  path: string,
  parts: ReadonlyArray<RecordsPart>,
  others: Stream.Stream<Uint8Array, TranscriptError>,
  files: Array<LinesOf>
) => {
  let lines = 1
  const from = (file: string, less: number) => files.push({ path: file, after: lines, less })
  return Stream.fromIterable(parts).pipe(
    Stream.flatMap((part) => {
      from(part.file, part.from === 0 ? lines : lines - 1)
      return Stream.tap(bytesIn(part), (chunk) => Effect.sync(() => void (lines += lineBreaks(chunk))))
    }),
    Stream.concat(
      Stream.suspend(() => {
        if (lines > 1) from(path, lines - 1)
        return others
      })
    )
  )
}

/**
 * Reads a conversation from a file, from standard input (`-`) or from an agent's database, in any of the formats. Writes nothing, and can be interrupted
 * between any two chunks. Fails with a `TranscriptError` and nothing else.
 */
export const load = Effect.fn("Transcripts.load")(function* (
  path: string,
  options: LoadOptions = {}
): Effect.fn.Return<Loaded, TranscriptError, LoadRequirements | Scope.Scope> {
  const { bytes, size } = yield* bytesOf(path)
  const report = yield* ReportProgress
  let done = 0
  const chunks = Stream.tap(bytes, (chunk) => {
    done += chunk.length
    report({ done, total: size, unit: "bytes" })
    return Effect.yieldNow
  }).pipe(Stream.map(inUtf8()))
  const [begun, rest] = yield* Stream.peel(chunks, Sink.takeUntil(tellsFormat()))
  const head = joinBytes(begun)
  const firstEnd = head.indexOf(10) + 1
  const hasFile = size !== undefined || path === "-"
  const { missing, parts } = hasFile ? yield* earlierParts(path, head.subarray(0, firstEnd)) : { parts: [] }
  const earlierBytes = parts.reduce((sum, { from, to }) => sum + to - from, 0)
  const reader = yield* chooseReader(path, head, options, size === undefined ? undefined : size + earlierBytes)
  if (missing !== undefined && options.lenient !== true) return yield* missingRecords(path, missing)
  const files: Array<LinesOf> = []
  const others = Stream.concat(Stream.make(head.subarray(firstEnd)), rest)
  const all = Stream.concat(Stream.make(head.subarray(0, firstEnd)), withEarlier(path, parts, others, files))
  const read = yield* reader(all).pipe(
    // Names the file and the line of an error where they are others than those of all lines together.
    Effect.mapError((error) => {
      const lines = files.findLast(({ after }) => after < error.line)
      return lines === undefined ? error : errorAt(lines.path, error.line - lines.less, error)
    })
  )
  const skipped =
    missing === undefined
      ? read.skipped
      : { ...read.skipped, [`records of the rollout ${missing}, which is missing or was changed`]: 1 }
  const loaded: Loaded = { ...read, skipped, bytes: done, sidecar: undefined }
  return loaded.format === "palimpsest" || path === "-" ? loaded : yield* withSidecar(path, loaded)
}, Effect.scoped)

/**
 * Reads the session log beside a file that this program wrote in another agent's format. While the file is unchanged, the
 * log is used in its place, so that content that left the window earlier can be recalled and compressions can be undone.
 */
const withSidecar = Effect.fnUntraced(function* (
  path: string,
  loaded: Loaded
): Effect.fn.Return<Loaded, TranscriptError, LoadRequirements> {
  const logs = yield* sidecarLogs(path)
  const newest = logs.at(-1)
  if (newest === undefined) return loaded
  const fs = yield* FileSystem.FileSystem
  const store = yield* TempStore
  const hash = yield* Effect.flatMap(
    Effect.mapError(fs.readFile(path), (error) => unreadable(path, error)),
    store.hash
  )
  const own = logs.find((log) => log.of === hash)
  const { events, session } = yield* load((own ?? newest).path, { from: "palimpsest" })
  return own === undefined ? { ...loaded, sidecar: session } : { ...loaded, events, session }
})

/** Reads conversations, for callers that do not provide what `load` needs. */
export class Transcripts extends Context.Service<
  Transcripts,
  {
    /** See `load`. */
    readonly load: (path: string, options?: LoadOptions) => Effect.Effect<Loaded, TranscriptError>
  }
>()("palimpsest/services/transcripts/Transcripts") {
  /** Provides `load` with the services of the layer. */
  static readonly layer: Layer.Layer<Transcripts, never, LoadRequirements> = Layer.effect(
    Transcripts,
    Effect.gen(function* () {
      const context = yield* Effect.context<LoadRequirements>()
      return { load: (path, options) => Effect.provideContext(load(path, options), context) }
    })
  )
}
