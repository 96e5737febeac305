/** Reads the log of a session from a backing: from its last checkpoint, or as a whole. Every error names its line. */

import { Effect, Option } from "effect"
import { decodeCheckpoint } from "../../domain/session/Checkpoint.ts"
import { decodeLine } from "../../domain/session/LogFormat.ts"
import { maxLogDepth, parseJson } from "../../domain/text/JsonText.ts"
import type { BackedLine, SessionBacking } from "../../services/session/SessionBacking.ts"
import {
  SessionNotFound,
  corruptLine,
  headlessLog,
  lineError,
  sessionError
} from "../../services/session/SessionStore.ts"
import { TempStore } from "../../services/session/TempStore.ts"
import * as LogReading from "./LogReading.ts"
import type { LogSource, PlacedEvent } from "./LogReading.ts"
import { fetchEvent } from "./SpilledParts.ts"

/** The blobs of one session. */
export const blobsOf = (backing: SessionBacking["Service"], id: string): TempStore["Service"] =>
  TempStore.fromBlobs({
    put: (hash, bytes) => backing.putBlob(id, hash, bytes),
    get: (hash) => backing.getBlob(id, hash),
    find: (prefix) => backing.findBlobs(id, prefix)
  })

/** Lines read at once. */
const pageLines = 256

/** A session to read. */
export interface Source {
  readonly backing: SessionBacking["Service"]
  readonly id: string
  readonly blobs: TempStore["Service"]
}

const decodedLine = Effect.fnUntraced(function* (id: string, { sequence, text }: BackedLine) {
  const value = parseJson(text, maxLogDepth)
  if (value._tag === "Failure") return yield* corruptLine(id, sequence, "this is not JSON")
  const line = decodeLine(value.success)
  if (line._tag === "Failure") return yield* lineError(id, sequence, line.failure)
  return line.success === undefined ? undefined : { ...line.success, number: sequence }
})

/** The log of a session in a backing. Positions count its lines. */
const logIn = ({ backing, blobs, id }: Source): LogSource => ({
  id,
  scan: Effect.fnUntraced(function* ({ from, to }, take) {
    let at = from
    while (at < to) {
      const page = yield* backing.read(id, at + 1, Math.min(to, at + pageLines) + 1)
      const events: Array<PlacedEvent> = []
      for (const line of page) {
        if (line.sequence !== at + 1) return yield* corruptLine(id, at + 1, "the line is missing")
        const decoded = yield* decodedLine(id, line)
        at += 1
        if (decoded === undefined) continue
        const event = yield* fetchEvent({ blobs, id }, decoded)
        if (at === 1 && event._tag !== "Started") return yield* headlessLog(id)
        events.push({ event, from: at - 1, to: at })
      }
      if (events.length > 0) take(events)
      if (page.length < pageLines) break
    }
    return { good: at, torn: 0 }
  })
})

/** The last checkpoint; undefined when there is none that can be used. */
const lastCheckpoint = Effect.fnUntraced(function* ({ backing, id }: Source) {
  const last = yield* backing.lastCheckpoint(id)
  const [line] = last === undefined ? [] : yield* backing.read(id, last, last + 1)
  if (line === undefined) return undefined
  const decoded = yield* Effect.option(decodedLine(id, line))
  const checkpoint = Option.isNone(decoded) ? undefined : decodeCheckpoint(decoded.value?.checkpoint)
  return checkpoint && { checkpoint, line: { from: line.sequence - 1, to: line.sequence } }
})

/** Folds the whole log. */
export const readWhole = (source: Source) => LogReading.readWhole(logIn(source))

/** Reads as much of a log as its session needs. */
export const readLog = (source: Source) =>
  Effect.flatMap(lastCheckpoint(source), (last) => LogReading.readFrom(logIn(source), last))

/** Reads all events. */
export const readEvents = Effect.fnUntraced(function* (source: Source) {
  const events = yield* LogReading.readEvents(logIn(source))
  return events.length === 0 ? yield* sessionError(new SessionNotFound({ id: source.id })) : events
})
