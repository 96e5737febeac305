/**
 * Reads the log of a session, wherever its lines are. An event that replaces the view carries a checkpoint (see
 * domain/session/Checkpoint.ts), so a session is opened from its last checkpoint by reading only the content of the view. Every error
 * names its line.
 */

import { Effect } from "effect"
import {
  type Checkpoint,
  LogLines,
  type LogState,
  restoreSession,
  restoresView
} from "../../domain/session/Checkpoint.ts"
import { applyEvents, emptySession, type Session, type SessionEvent } from "../../domain/session/Session.ts"
import { headlessLog, SessionStoreError } from "../../services/session/SessionStore.ts"

/** A range of a log, in the unit of its checkpoints: bytes of a file, lines of a backing. */
interface LogRange {
  readonly from: number
  readonly to: number
}

/** An event, and the range of its line. */
export interface PlacedEvent extends LogRange {
  readonly event: SessionEvent
}

/** The end of a range that was read. */
interface ScanEnd {
  /** The end of the last whole line. */
  readonly good: number
  /** How much follows it. */
  readonly torn: number
}

/** A checkpoint, and the range of its line. */
export interface CheckpointLine {
  readonly checkpoint: Checkpoint
  readonly line: LogRange
}

/** A log that can be read. */
export interface LogSource<E = never> {
  readonly id: string
  /** Passes the events of a range, which begins with a line, to `take`: some at once, in order. */
  readonly scan: (
    range: LogRange,
    take: (events: ReadonlyArray<PlacedEvent>) => void
  ) => Effect.Effect<ScanEnd, E | SessionStoreError>
}

/** The result of reading a log. */
export interface ReadLog extends LogState, ScanEnd {}

const wholeRange: LogRange = { from: 0, to: Number.MAX_SAFE_INTEGER }

/** Reads all events of a log. */
export const readEvents = Effect.fnUntraced(function* <E>({ scan }: LogSource<E>) {
  const events: Array<SessionEvent> = []
  yield* scan(wholeRange, (some) => {
    for (const { event } of some) events.push(event)
  })
  return events
})

/** Folds a log, up to `to` or to its end. */
export const readWhole = Effect.fnUntraced(function* <E>({ id, scan }: LogSource<E>, to = wholeRange.to) {
  const lines = new LogLines()
  let session = emptySession
  let isHeadless = true
  const { good, torn } = yield* scan({ from: 0, to }, (some) => {
    if (lines.isEmpty) isHeadless = some[0]?.event._tag !== "Started" || some[0].from > 0
    session = applyEvents(session, lines.addAll(some))
  })
  return isHeadless ? yield* headlessLog(id) : { session, lines, complete: true, good, torn }
})

/** Reads the content of the view from a checkpoint on; undefined when its ranges are not those of this log. */
const readView = Effect.fnUntraced(function* <E>({ scan }: LogSource<E>, { checkpoint, line }: CheckpointLine) {
  const lines = new LogLines()
  const before: Array<SessionEvent> = []
  for (const [from, to] of checkpoint.ranges) {
    const end = yield* scan({ from, to }, (some) => {
      for (const event of lines.addAll(some)) before.push(event)
    })
    if (end.good !== to) return undefined
  }
  let session: Session | undefined
  let isUsable = true
  const { good, torn } = yield* scan({ from: line.from, to: wholeRange.to }, (some) => {
    const events = lines.addAll(some)
    const own = some[0]?.from === line.from ? events.slice(0, 1) : []
    const others = events.slice(own.length)
    if (own.length > 0) session = restoreSession(checkpoint, [...before, ...own])
    // Without a checkpoint of its own, such an event may need lines that were not read.
    isUsable &&= !others.some(restoresView)
    if (session !== undefined) session = applyEvents(session, others)
  })
  return session === undefined || !isUsable ? undefined : { session, lines, complete: false, good, torn }
})

const isLogError = (error: unknown): boolean =>
  error instanceof SessionStoreError && error.reason._tag !== "SessionUnavailable"

/**
 * Reads as much of a log as its session needs: from this checkpoint on, or all of it. After an error in that part it reads the whole
 * log, so that the error names the right line.
 */
export const readFrom = Effect.fnUntraced(function* <E>(source: LogSource<E>, last: CheckpointLine | undefined) {
  const view =
    last === undefined ? undefined : yield* Effect.catchIf(readView(source, last), isLogError, () => Effect.undefined)
  return view ?? (yield* readWhole(source))
})
