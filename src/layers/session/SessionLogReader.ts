/** Reads the logs of sessions that are files, and finds their last checkpoint from the end. */

import { Effect, type FileSystem, type PlatformError } from "effect"
import { Buffer } from "node:buffer"
import { decodeCheckpoint } from "../../domain/session/Checkpoint.ts"
import { checkpointMark } from "../../domain/session/LogFormat.ts"
import { LogReader } from "../../domain/session/LogReader.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { headlessLog, lineError } from "../../services/session/SessionStore.ts"
import * as LogReading from "./LogReading.ts"
import type { LogSource, PlacedEvent } from "./LogReading.ts"
import { type Blobs, logFile, readInto, readRange, type SessionFolder } from "./SessionFolder.ts"
import { fetchEvent } from "./SpilledParts.ts"

/** Bytes read at once. Their lines are decoded before the next chunk is read, so that no step takes long. */
const chunkBytes = 1024 * 1024
/** Bytes searched first, from the end of a log, for its last checkpoint. Each further step searches twice as many. */
const tailBytes = 32 * 1024
/** Logs up to this size are read from disk once, even when they hold no checkpoint. */
const maxHeldBytes = 64 * 1024 * 1024
const newline = 10
const mark = Bytes.encode(checkpointMark)

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

/** The blobs of a log that are read at once. */
const readsAtOnce = 16

/** A log in these bytes. The lines of a chunk are decoded before the next one is read. */
const logIn = (input: Input): LogSource<PlatformError.PlatformError> => ({
  id: input.id,
  scan: Effect.fnUntraced(function* ({ from, to }, take) {
    const reader = new LogReader(from)
    let at = from
    while (at < to) {
      const chunk = yield* input.source(at, to)
      if (chunk.length === 0) break
      at += chunk.length
      const lines = reader.push(chunk)
      const fetched = yield* Effect.forEach(
        lines.filter(({ spilled }) => spilled.size > 0),
        (line) => Effect.map(fetchEvent(input, line), (event) => [line, event] as const),
        { concurrency: readsAtOnce }
      )
      const whole = new Map(fetched)
      const events = lines.map((line): PlacedEvent => ({
        event: whole.get(line) ?? line.event,
        from: line.from,
        to: line.to
      }))
      if (events.length > 0) take(events)
      if (reader.problem !== undefined) break
    }
    reader.end()
    if (reader.problem !== undefined) return yield* lineError(input.id, reader.problem.line, reader.problem.problem)
    return { good: reader.good, torn: at - reader.good }
  })
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
const checkpointIn = Effect.fnUntraced(function* (handle: FileSystem.File, bytes: Buffer, from: number, size: number) {
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
const lastCheckpoint = Effect.fnUntraced(function* (handle: FileSystem.File, size: number) {
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

const openLog = (folder: SessionFolder, id: string) => folder.fs.open(logFile(folder, id), { flag: "r" })

/** Reads as much of a log as its session needs. */
export const readLog = Effect.fnUntraced(function* (folder: SessionFolder, id: string, blobs: Blobs) {
  const handle = yield* openLog(folder, id)
  const last = yield* lastCheckpoint(handle, Number((yield* handle.stat).size))
  const isHeld = last instanceof Uint8Array
  const source = isHeld ? memorySource(last) : fileSource(handle)
  return yield* LogReading.readFrom(logIn({ id, blobs, source }), isHeld ? undefined : last)
}, Effect.scoped)

/** Reads the first `size` bytes of a log, whatever checkpoints it holds. */
export const readWholeLog = Effect.fnUntraced(function* (
  folder: SessionFolder,
  id: string,
  blobs: Blobs,
  size: number
) {
  return yield* LogReading.readWhole(logIn({ id, blobs, source: fileSource(yield* openLog(folder, id)) }), size)
}, Effect.scoped)

/** Reads the events of a log as it is now. An incomplete last line, which a writer may be writing, is left out. */
export const readEvents = Effect.fnUntraced(function* (folder: SessionFolder, id: string, blobs: Blobs) {
  const events = yield* LogReading.readEvents(logIn({ id, blobs, source: fileSource(yield* openLog(folder, id)) }))
  return events[0]?._tag === "Started" ? events : yield* headlessLog(id)
}, Effect.scoped)
