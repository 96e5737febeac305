import { Effect, type FileSystem, type PlatformError, type Scope } from "effect"
import { Buffer } from "node:buffer"
import {
  type Checkpoint,
  decodeCheckpoint,
  LogLines,
  restoreSession,
  restoresView,
  type LogState
} from "../../domain/session/Checkpoint.ts"
import { checkpointMark } from "../../domain/session/LogFormat.ts"
import { LogReader, type ReadLine } from "../../domain/session/LogReader.ts"
import { applyEvents, emptySession, type Session, type SessionEvent } from "../../domain/session/Session.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { headlessLog, lineError, SessionStoreError } from "../../services/session/SessionStore.ts"
import { type Blobs, logFile, readInto, readRange, type SessionFolder } from "./SessionFolder.ts"
import { fetchEvent } from "./SpilledParts.ts"

/**
 * Reads the log of a session. An event that replaces the view carries a checkpoint (see domain/session/Checkpoint.ts), so a
 * session is opened from its last checkpoint by reading only the content of the view. Every error names its line.
 */

/** Bytes read at once. Their lines are decoded before the next chunk is read, so that no step takes long. */
const chunkBytes = 1024 * 1024
/** Bytes searched first, from the end of a log, for its last checkpoint. Each further step searches twice as many. */
const tailBytes = 32 * 1024
/** Logs up to this size are read from disk once, even when they hold no checkpoint. */
const maxHeldBytes = 64 * 1024 * 1024
const newline = 10
const mark = Bytes.encode(checkpointMark)

/** The result of reading a log. */
export interface ReadLog extends LogState {
  /** Bytes up to the end of the last whole line. */
  readonly good: number
  /** Bytes after it. */
  readonly torn: number
}

/** A range of bytes. The range of a line includes its line break. */
interface Span {
  readonly from: number
  readonly to: number
}

interface CheckpointLine {
  readonly checkpoint: Checkpoint
  readonly line: Span
}

/**
 * Reads the bytes of a log from `from`, up to `to` and at most one chunk; empty at the end of the log. The bytes are valid
 * until the next call.
 */
type Source = (from: number, to: number) => Effect.Effect<Uint8Array, PlatformError.PlatformError>

/** The source of a log: its id for error messages, its bytes and its blobs. */
interface Input {
  readonly id: string
  readonly blobs: Blobs
  readonly source: Source
}

/** Reads a file through one buffer, because many large ones would keep the garbage collector busy. */
const fileSource = (handle: FileSystem.File): Source => {
  let buffer: Buffer | undefined
  return (from, to) =>
    Effect.suspend(() => {
      const size = Math.min(chunkBytes, to - from)
      if (buffer === undefined || buffer.length < size) buffer = Buffer.allocUnsafeSlow(size)
      return readInto(handle, buffer.subarray(0, to - from), from)
    })
}

const memorySource =
  (bytes: Buffer): Source =>
  (from, to) =>
    Effect.as(Effect.yieldNow, bytes.subarray(from, Math.min(to, from + chunkBytes)))

/**
 * Passes the events from `from` to `to`, or to the end of the source, with their lines to `take`, those of a chunk at once, until it
 * returns an error. Returns the bytes read.
 */
const scan = Effect.fnUntraced(function* (
  input: Input,
  reader: LogReader,
  { from, to }: Span,
  take: (events: ReadonlyArray<SessionEvent>, lines: ReadonlyArray<ReadLine>) => SessionStoreError | undefined
): Effect.fn.Return<number, PlatformError.PlatformError | SessionStoreError> {
  let at = from
  while (at < to) {
    const chunk = yield* input.source(at, to)
    if (chunk.length === 0) break
    at += chunk.length
    const lines = reader.push(chunk)
    const events: Array<SessionEvent> = []
    for (const line of lines) events.push(line.spilled.size === 0 ? line.event : yield* fetchEvent(input, line))
    const error = take(events, lines)
    if (error !== undefined) return yield* error
    if (reader.problem !== undefined) break
  }
  reader.end()
  if (reader.problem !== undefined) return yield* lineError(input.id, reader.problem.line, reader.problem.problem)
  return at - from
})

/** Adds the lines of these events. */
const addLines = (lines: LogLines, events: ReadonlyArray<SessionEvent>, read: ReadonlyArray<ReadLine>): void => {
  events.forEach((event, index) => {
    const line = read[index]
    if (line !== undefined) lines.add(event, line.from, line.to)
  })
}

/** Folds the log line by line, up to `to` or to its end. */
const readWhole = Effect.fnUntraced(function* (
  input: Input,
  to = Number.MAX_SAFE_INTEGER
): Effect.fn.Return<ReadLog, PlatformError.PlatformError | SessionStoreError> {
  const reader = new LogReader(0)
  const lines = new LogLines()
  let session = emptySession
  const size = yield* scan(input, reader, { from: 0, to }, (events, read) => {
    const [first] = events
    if (first === undefined) return undefined
    if (session.started === undefined && (first._tag !== "Started" || (read[0]?.number ?? 0) > 1)) {
      return headlessLog(input.id)
    }
    session = applyEvents(session, events)
    addLines(lines, events, read)
    return undefined
  })
  if (session.started === undefined) return yield* headlessLog(input.id)
  return { session, lines, complete: true, good: reader.good, torn: size - reader.good }
})

/** The line that the byte at `at` belongs to; undefined when the line has no end. */
const lineAround = Effect.fnUntraced(function* (handle: FileSystem.File, at: number, size: number) {
  let from = at
  while (from > 0) {
    const start = Math.max(0, from - tailBytes)
    const index = (yield* readRange(handle, start, from)).lastIndexOf(newline)
    from = index < 0 ? start : start + index + 1
    if (index >= 0) break
  }
  for (let to = at; to < size;) {
    const bytes = yield* readRange(handle, to, Math.min(size, to + tailBytes))
    const index = bytes.indexOf(newline)
    if (index >= 0) return { from, to: to + index + 1 }
    if (bytes.length === 0) break
    to += bytes.length
  }
  return undefined
})

/** The last usable checkpoint whose mark is among these bytes, which begin at `from` in the log. */
const checkpointIn = Effect.fnUntraced(function* (
  handle: FileSystem.File,
  bytes: Buffer,
  from: number,
  size: number
): Effect.fn.Return<CheckpointLine | undefined, PlatformError.PlatformError> {
  for (let index = bytes.lastIndexOf(mark); index >= 0;) {
    const line = yield* lineAround(handle, from + index, size)
    if (line !== undefined) {
      const [own] = new LogReader(line.from).push(yield* readRange(handle, line.from, line.to))
      const checkpoint = decodeCheckpoint(own?.checkpoint)
      if (checkpoint !== undefined) return { checkpoint, line }
    }
    index = index === 0 ? -1 : bytes.lastIndexOf(mark, index - 1)
  }
  return undefined
})

/**
 * The last line with a checkpoint, searched from the end of the log. Without one: all bytes of a log that is small enough to be
 * held, else undefined.
 */
const lastCheckpoint = Effect.fnUntraced(function* (
  handle: FileSystem.File,
  size: number
): Effect.fn.Return<CheckpointLine | Buffer | undefined, PlatformError.PlatformError> {
  // Filled from its end, and only as far as the search goes.
  const all = size <= maxHeldBytes ? Buffer.allocUnsafeSlow(size) : undefined
  const window = all ?? Buffer.allocUnsafeSlow(chunkBytes + mark.length)
  let width = tailBytes
  for (let end = size; end > 0;) {
    const from = Math.max(0, end - width)
    // A mark that begins before `end` may end after it.
    const upTo = Math.min(size, end + mark.length - 1)
    const at = all === undefined ? 0 : from
    const length = (all === undefined ? upTo : end) - from
    const read = yield* readInto(handle, window.subarray(at, at + length), from)
    // Another program truncated the log meanwhile.
    if (read.length < length) return undefined
    const checkpoint = yield* checkpointIn(handle, window.subarray(at, at + upTo - from), from, size)
    if (checkpoint !== undefined) return checkpoint
    end = from
    width = Math.min(width * 2, chunkBytes)
  }
  return all
})

/** The lines that a checkpoint names; undefined when its ranges are not those of this log. */
const readRanges = Effect.fnUntraced(function* (input: Input, { ranges }: Checkpoint, lines: LogLines) {
  const events: Array<SessionEvent> = []
  let version: number | undefined
  for (const [from, to] of ranges) {
    const reader = new LogReader(from, version)
    yield* scan(input, reader, { from, to }, (more, read) => {
      for (const event of more) events.push(event)
      addLines(lines, more, read)
      return undefined
    })
    if (reader.good !== to) return undefined
    version = reader.version
  }
  return { events, version }
})

/** Reads the content of the view from a checkpoint on; undefined when the checkpoint cannot be used. */
const readView = Effect.fnUntraced(function* (
  input: Input,
  size: number,
  { checkpoint, line }: CheckpointLine
): Effect.fn.Return<ReadLog | undefined, PlatformError.PlatformError | SessionStoreError> {
  const lines = new LogLines()
  const before = yield* readRanges(input, checkpoint, lines)
  if (before === undefined) return undefined
  let session: Session | undefined
  let isUsable = true
  const reader = new LogReader(line.from, before.version)
  const tail = yield* scan(input, reader, { from: line.from, to: size }, (events, read) => {
    const own = read[0]?.from === line.from ? events.slice(0, 1) : []
    const others = events.slice(own.length)
    if (own.length > 0) session = restoreSession(checkpoint, [...before.events, ...own])
    // Without a checkpoint of its own, such an event may need lines that were not read.
    isUsable &&= !others.some(restoresView)
    addLines(lines, events, read)
    if (session !== undefined) session = applyEvents(session, others)
    return undefined
  })
  return session === undefined || !isUsable
    ? undefined
    : { session, lines, complete: false, good: reader.good, torn: line.from + tail - reader.good }
})

const isLogError = (error: unknown): boolean =>
  error instanceof SessionStoreError && error.reason._tag !== "SessionUnavailable"

/**
 * Reads as much of a log as its session needs: from the last checkpoint on, or all of it. After an error in that part it
 * reads the whole log, so that the error names the right line.
 */
export const readLog = Effect.fnUntraced(function* (
  folder: SessionFolder,
  id: string,
  blobs: Blobs
): Effect.fn.Return<ReadLog, PlatformError.PlatformError | SessionStoreError, Scope.Scope> {
  const handle = yield* folder.fs.open(logFile(folder, id), { flag: "r" })
  const size = Number((yield* handle.stat).size)
  const last = yield* lastCheckpoint(handle, size)
  if (last instanceof Uint8Array) return yield* readWhole({ id, blobs, source: memorySource(last) })
  const input = { id, blobs, source: fileSource(handle) }
  const view =
    last === undefined
      ? undefined
      : yield* readView(input, size, last).pipe(Effect.catchIf(isLogError, () => Effect.undefined))
  return view ?? (yield* readWhole(input))
}, Effect.scoped)

/** Reads the first `size` bytes of a log, whatever checkpoints it holds. */
export const readWholeLog = Effect.fnUntraced(function* (
  folder: SessionFolder,
  id: string,
  blobs: Blobs,
  size: number
): Effect.fn.Return<ReadLog, PlatformError.PlatformError | SessionStoreError, Scope.Scope> {
  const handle = yield* folder.fs.open(logFile(folder, id), { flag: "r" })
  return yield* readWhole({ id, blobs, source: fileSource(handle) }, size)
}, Effect.scoped)

/** Reads the events of a log as it is now. An incomplete last line, which a writer may be writing, is left out. */
export const readEvents = Effect.fnUntraced(function* (
  folder: SessionFolder,
  id: string,
  blobs: Blobs
): Effect.fn.Return<ReadonlyArray<SessionEvent>, PlatformError.PlatformError | SessionStoreError, Scope.Scope> {
  const handle = yield* folder.fs.open(logFile(folder, id), { flag: "r" })
  const events: Array<SessionEvent> = []
  yield* scan(
    { id, blobs, source: fileSource(handle) },
    new LogReader(0),
    { from: 0, to: Number.MAX_SAFE_INTEGER },
    (some) => {
      for (const event of some) events.push(event)
      return undefined
    }
  )
  return events[0]?._tag === "Started" ? events : yield* headlessLog(id)
}, Effect.scoped)
