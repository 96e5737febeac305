import { Context, Effect, FileSystem, Layer, type PlatformError, Stdio, Stream } from "effect"
import { joinBytes } from "../../domain/text/Bytes.ts"
import { ReportProgress } from "../platform/Progress.ts"
import { TempStore } from "../session/TempStore.ts"
import { chooseReader } from "./ChooseReader.ts"
import { bytesIn, earlierParts, missingRecords } from "./CodexHistory.ts"
import type { Loaded, LoadOptions, LoadRequirements } from "./LoadedTranscript.ts"
import { SessionDatabase } from "./SessionDatabase.ts"
import { errorAt, transcriptError, type TranscriptError, unreadable } from "./TranscriptError.ts"
import { sidecarLogs } from "./TranscriptExport.ts"
import { maxLineBytes, type TranscriptReader } from "./TranscriptReader.ts"

const chunkBytes = 1024 * 1024
/** Bytes from which the format is detected. */
const headBytes = 64 * 1024

const lineBreaks = (bytes: Uint8Array): number => bytes.reduce((count, byte) => (byte === 10 ? count + 1 : count), 0)

const kinds: Readonly<Record<string, string>> = {
  Directory: "is a directory",
  FIFO: "is a pipe",
  Socket: "is a socket",
  CharacterDevice: "is a device",
  BlockDevice: "is a device"
}

/** Returns the bytes of a regular file, of standard input or of a session in a database. Other files are not opened, because a pipe would hang. */
const bytesOf = Effect.fnUntraced(function* (path: string): Effect.fn.Return<
  {
    readonly bytes: Stream.Stream<Uint8Array, TranscriptError>
    /** The size of a file. */
    readonly size: number | undefined
  },
  TranscriptError,
  FileSystem.FileSystem | Stdio.Stdio
> {
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

/**
 * Reads a conversation from a file, from standard input (`-`) or from an agent's database, in any of the formats. Writes nothing, and can be interrupted
 * between any two chunks. Fails with a `TranscriptError` and nothing else.
 */
export const load = Effect.fn("Transcripts.load")(function* (
  path: string,
  options: LoadOptions = {}
): Effect.fn.Return<Loaded, TranscriptError, LoadRequirements> {
  const { bytes, size: fileSize } = yield* bytesOf(path)
  const report = yield* ReportProgress
  const head: Array<Uint8Array> = []
  let size = 0
  let hasLine = false
  let reader: TranscriptReader | undefined
  /** Records that stand in another file, which is not there. */
  const missing: Record<string, number> = {}
  /** Where lines come from that stand after the records of another file: the lines before them here, and what their own numbers are less. */
  const places: Array<{ readonly path: string; readonly after: number; readonly less: number }> = []
  /** Names the file and the line of an error where they are others than those of all lines together. */
  const inItsFile = Effect.mapError((error: TranscriptError) => {
    const place = places.findLast(({ after }) => after < error.line)
    return place === undefined ? error : errorAt(place.path, error.line - place.less, error)
  })
  /** Chooses the reader and gives it the bytes read so far. */
  const begin = Effect.fnUntraced(function* () {
    const whole = joinBytes(head)
    const firstEnd = whole.indexOf(10) + 1
    const hasFile = fileSize !== undefined || path === "-"
    const earlier = hasFile ? yield* earlierParts(path, whole.subarray(0, firstEnd)) : { parts: [] }
    const earlierBytes = earlier.parts.reduce((sum, { from, to }) => sum + to - from, 0)
    const allBytes = fileSize === undefined ? undefined : fileSize + earlierBytes
    const chosen = yield* chooseReader(path, whole, options, allBytes)
    reader = chosen
    if (earlier.missing !== undefined) {
      if (options.lenient !== true) return yield* missingRecords(path, earlier.missing)
      missing[`records of the rollout ${earlier.missing}, which is missing or was changed`] = 1
    }
    yield* chosen.push(whole.subarray(0, firstEnd))
    let lines = 1
    for (const part of earlier.parts) {
      places.push({ path: part.file, after: lines, less: part.from === 0 ? lines : lines - 1 })
      yield* Stream.runForEach(bytesIn(part), (chunk) => {
        lines += lineBreaks(chunk)
        return chosen.push(chunk)
      })
    }
    if (lines > 1) places.push({ path, after: lines, less: lines - 1 })
    yield* chosen.push(whole.subarray(firstEnd))
    return chosen
  })
  yield* Stream.runForEach(
    bytes,
    Effect.fnUntraced(function* (chunk: Uint8Array) {
      size += chunk.length
      report({ done: size, total: fileSize, unit: "bytes" })
      if (reader === undefined) {
        head.push(chunk)
        hasLine = hasLine || chunk.includes(10)
        // The format is detected from whole records, and the first record may be long.
        if (size >= headBytes && (hasLine || size > maxLineBytes)) yield* begin()
      } else yield* reader.push(chunk)
      yield* Effect.yieldNow
    })
  ).pipe(inItsFile)
  const chosen = reader ?? (yield* inItsFile(begin()))
  const read = yield* inItsFile(chosen.end)
  const loaded: Loaded = { ...read, skipped: { ...read.skipped, ...missing }, bytes: size, sidecar: undefined }
  return loaded.format === "palimpsest" || path === "-" ? loaded : yield* withSidecar(path, loaded)
})

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
