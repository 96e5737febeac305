import { Effect } from "effect"
import {
  LogLines,
  type LogState,
  decodeCheckpoint,
  restoreSession,
  restoresView
} from "../../domain/session/Checkpoint.ts"
import { type DecodedLine, decodeLine } from "../../domain/session/LogFormat.ts"
import {
  type Session,
  type SessionEvent,
  type Started,
  applyEvent,
  emptySession,
  logVersion
} from "../../domain/session/Session.ts"
import { maxLogDepth, parseJson } from "../../domain/text/JsonText.ts"
import type { BackedLine, SessionBacking } from "../../services/session/SessionBacking.ts"
import {
  SessionNotFound,
  type SessionStoreError,
  corruptLine,
  headlessLog,
  lineError,
  sessionError
} from "../../services/session/SessionStore.ts"
import { TempStore } from "../../services/session/TempStore.ts"
import { fetchEvent } from "./SpilledParts.ts"

/** Reads the log of a session from a backing: from its last checkpoint, or as a whole. Every error names its line. */

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

const decodedLine = Effect.fnUntraced(function* (
  id: string,
  { sequence, text }: BackedLine,
  version: number
): Effect.fn.Return<(DecodedLine & { readonly number: number }) | undefined, SessionStoreError> {
  const value = parseJson(text, maxLogDepth)
  if (value._tag === "Failure") return yield* corruptLine(id, sequence, "this is not JSON")
  const line = decodeLine(value.success, version)
  if (line._tag === "Failure") return yield* lineError(id, sequence, line.failure)
  return line.success === undefined ? undefined : { ...line.success, number: sequence }
})

/** Passes the events of the lines from `from` up to and without `to` to `take`, page by page. Returns where the log ended. */
const scan = Effect.fnUntraced(function* (
  { backing, blobs, id }: Source,
  [from, to]: readonly [from: number, to: number],
  version: number,
  take: (event: SessionEvent, sequence: number) => void
): Effect.fn.Return<number, SessionStoreError> {
  let at = from
  let currentVersion = version
  while (at < to) {
    const page = yield* backing.read(id, at, Math.min(to, at + pageLines))
    for (const line of page) {
      if (line.sequence !== at) return yield* corruptLine(id, at, "the line is missing")
      const decoded = yield* decodedLine(id, line, currentVersion)
      at += 1
      if (decoded === undefined) continue
      const event = yield* fetchEvent({ blobs, id }, decoded)
      if (event._tag === "Started") currentVersion = event.version
      if (line.sequence === 1 && event._tag !== "Started") return yield* headlessLog(id)
      take(event, line.sequence)
    }
    if (page.length < pageLines) break
  }
  return at
})

const end = Number.MAX_SAFE_INTEGER

/** The state of a log that was read, and where it ended. */
export interface ReadState extends LogState {
  /** The position of the next line. */
  readonly next: number
}

/** Folds the whole log. */
export const readWhole = Effect.fnUntraced(function* (source: Source): Effect.fn.Return<ReadState, SessionStoreError> {
  const lines = new LogLines()
  let session = emptySession
  const next = yield* scan(source, [1, end], logVersion, (event, sequence) => {
    session = applyEvent(session, event)
    lines.add(event, sequence - 1, sequence)
  })
  return session.started === undefined ? yield* headlessLog(source.id) : { session, lines, complete: true, next }
})

/** Reads the content of the view from the last checkpoint on; undefined when there is none that can be used. */
const readView = Effect.fnUntraced(function* (
  source: Source
): Effect.fn.Return<ReadState | undefined, SessionStoreError> {
  const { backing, id } = source
  const last = yield* backing.lastCheckpoint(id)
  const [line] = last === undefined ? [] : yield* backing.read(id, last, last + 1)
  if (line === undefined) return undefined
  const decoded = yield* decodedLine(id, line, logVersion)
  const checkpoint = decodeCheckpoint(decoded?.checkpoint)
  if (checkpoint === undefined) return undefined
  const lines = new LogLines()
  const before: Array<SessionEvent> = []
  for (const [from, to] of checkpoint.ranges) {
    const stop = yield* scan(source, [from + 1, to + 1], before.find(isStarted)?.version ?? logVersion, (event, at) => {
      before.push(event)
      lines.add(event, at - 1, at)
    })
    if (stop !== to + 1) return undefined
  }
  const version = before.find(isStarted)?.version ?? logVersion
  let session: Session | undefined
  let isUsable = true
  const next = yield* scan(source, [line.sequence, end], version, (event, sequence) => {
    lines.add(event, sequence - 1, sequence)
    if (sequence === line.sequence) session = restoreSession(checkpoint, [...before, event])
    else if (session !== undefined) {
      // Without a checkpoint of its own, such an event may need lines that were not read.
      isUsable &&= !restoresView(event)
      session = applyEvent(session, event)
    }
  })
  return session === undefined || !isUsable ? undefined : { session, lines, complete: false, next }
})

/** Whether an event is the first of a log. */
export const isStarted = (event: SessionEvent): event is Started => event._tag === "Started"

const isLogError = (error: SessionStoreError): boolean => error.reason._tag !== "SessionUnavailable"

/** Reads as much of a log as its session needs. After an error in that part it reads all, so that the error names the right line. */
export const readLog = Effect.fnUntraced(function* (source: Source): Effect.fn.Return<ReadState, SessionStoreError> {
  const view = yield* Effect.catchIf(readView(source), isLogError, () => Effect.undefined)
  return view ?? (yield* readWhole(source))
})

/** Reads all events. */
export const readEvents = Effect.fnUntraced(function* (
  source: Source
): Effect.fn.Return<ReadonlyArray<SessionEvent>, SessionStoreError> {
  const events: Array<SessionEvent> = []
  yield* scan(source, [1, end], logVersion, (event) => events.push(event))
  return events.length === 0 ? yield* sessionError(new SessionNotFound({ id: source.id })) : events
})
