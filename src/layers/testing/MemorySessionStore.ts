import { Clock, Effect, Layer, Schema, type Scope } from "effect"
import { pid } from "node:process"
import { decodeLine, encodeLine, restoreSpilled } from "../../domain/session/LogFormat.ts"
import {
  emptySession,
  type Session,
  type SessionEvent,
  type Started,
  applyEvent
} from "../../domain/session/Session.ts"
import { headOf, titleOf } from "../../domain/session/SessionHead.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import {
  badSessionId,
  corruptLine,
  isSessionId,
  lineError,
  sessionError,
  SessionExists,
  SessionLocked,
  type SessionLog,
  SessionNotFound,
  SessionStore,
  type SessionStoreError,
  type SessionSummary,
  sessionUnavailable
} from "../../services/session/SessionStore.ts"
import { TempStore } from "../../services/session/TempStore.ts"

interface Stored {
  readonly lines: Array<string>
  /** Milliseconds since 1970. */
  updatedAt: number
  title: string | undefined
  /** When its writer opened it, in milliseconds since 1970. Undefined: it has no writer. */
  writer: number | undefined
}

/** Number of lines of a session that a list reads. */
const headLines = 100

const parse = Schema.decodeUnknownResult(fromJson(Schema.Unknown))

/** Decodes the lines with the codec of the file store. */
const eventsOf = Effect.fnUntraced(function* (
  id: string,
  lines: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<SessionEvent>, SessionStoreError> {
  const events: Array<SessionEvent> = []
  for (const [index, text] of lines.entries()) {
    const value = parse(text)
    if (value._tag === "Failure") {
      return yield* corruptLine(id, index + 1, "this is not JSON")
    }
    const line = decodeLine(value.success)
    if (line._tag === "Failure") return yield* lineError(id, index + 1, line.failure)
    if (line.success === undefined) continue
    const event = restoreSpilled(line.success, new Map())
    if (event._tag === "Failure") {
      return yield* lineError(id, index + 1, event.failure)
    }
    events.push(event.success)
  }
  return events
})

const readLines = (id: string, lines: ReadonlyArray<string>): Effect.Effect<Session, SessionStoreError> =>
  Effect.map(eventsOf(id, lines), (events) => events.reduce(applyEvent, emptySession))

/** Returns the size of a session's lines as a file, in bytes. */
const sizeOf = (lines: ReadonlyArray<string>): number =>
  lines.reduce((size, line) => size + Bytes.encode(line).length + 1, 0)

/** All sessions, and the store of their parts. */
interface MemorySessions {
  readonly blobs: TempStore["Service"]
  readonly byId: Map<string, Stored>
}

const find = ({ byId }: MemorySessions, id: string): Effect.Effect<Stored, SessionStoreError> => {
  const stored = byId.get(id)
  return stored === undefined ? Effect.fail(sessionError(new SessionNotFound({ id }))) : Effect.succeed(stored)
}

const refuseExisting = ({ byId }: MemorySessions, id: string): Effect.Effect<void, SessionStoreError> =>
  byId.has(id) ? Effect.fail(sessionError(new SessionExists({ id }))) : Effect.void

const refuseLocked = (id: string, { writer }: Stored): Effect.Effect<void, SessionStoreError> =>
  writer === undefined ? Effect.void : Effect.fail(sessionError(new SessionLocked({ id, pid, since: writer })))

/** Takes the single writer's lock until the scope closes, and reads the session. */
const lock = (id: string, stored: Stored): Effect.Effect<Session, SessionStoreError, Scope.Scope> => {
  const leave = Effect.sync(() => {
    stored.writer = undefined
  })
  return Effect.acquireRelease(
    Effect.gen(function* () {
      const since = yield* Clock.currentTimeMillis
      yield* refuseLocked(id, stored)
      stored.writer = since
      return yield* readLines(id, stored.lines).pipe(Effect.onError(() => leave))
    }),
    () => leave
  )
}

const logOf = Effect.fnUntraced(function* (
  { blobs }: MemorySessions,
  id: string,
  stored: Stored
): Effect.fn.Return<SessionLog, never, Scope.Scope> {
  let closed = false
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      closed = true
    })
  )
  return {
    id,
    append: Effect.fn("SessionLog.append")(function* (event: SessionEvent) {
      const line = encodeLine(event)
      if (closed) return yield* sessionUnavailable("append", `session ${id} was closed; open it again`)
      stored.updatedAt = yield* Clock.currentTimeMillis
      stored.lines.push(line)
    }),
    blobs,
    whole: Effect.suspend(() => readLines(id, stored.lines)).pipe(Effect.withSpan("SessionLog.whole"))
  }
})

const createSession = Effect.fn("SessionStore.create")(function* (sessions: MemorySessions, started: Started) {
  const id = started.session
  if (!isSessionId(id)) return yield* badSessionId()
  yield* refuseExisting(sessions, id)
  const updatedAt = yield* Clock.currentTimeMillis
  const stored: Stored = { lines: [encodeLine(started)], updatedAt, title: undefined, writer: undefined }
  yield* lock(id, stored)
  sessions.byId.set(id, stored)
  return yield* logOf(sessions, id, stored)
})

const openSession = Effect.fn("SessionStore.open")(function* (sessions: MemorySessions, id: string) {
  const stored = yield* find(sessions, id)
  const session = yield* lock(id, stored)
  return { session, complete: true, torn: 0, log: yield* logOf(sessions, id, stored) }
})

const summaryOf = Effect.fnUntraced(function* (id: string, stored: Stored): Effect.fn.Return<SessionSummary> {
  const { title, updatedAt, writer } = stored
  const { problem, ...head } = yield* eventsOf(id, stored.lines.slice(0, headLines)).pipe(
    Effect.map((events) => ({ ...headOf(events), problem: undefined })),
    Effect.catch((error) => Effect.succeed({ ...headOf([]), problem: error.message }))
  )
  return {
    id,
    title,
    firstPrompt: head.firstPrompt,
    model: head.model,
    cwd: head.cwd,
    parent: head.parent,
    startedAt: head.startedAt ?? updatedAt,
    updatedAt,
    bytes: sizeOf(stored.lines),
    holder: writer === undefined ? undefined : { pid, since: writer },
    problem
  }
})

const listSummaries = Effect.fn("SessionStore.summaries")(function* ({ byId }: MemorySessions) {
  const summaries = yield* Effect.forEach(byId, ([id, stored]) => summaryOf(id, stored))
  return summaries.sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1))
})

const renameSession = Effect.fn("SessionStore.rename")(function* (sessions: MemorySessions, id: string, title: string) {
  const stored = yield* find(sessions, id)
  stored.title = titleOf(title) || undefined
})

const removeSession = Effect.fn("SessionStore.remove")(function* (sessions: MemorySessions, id: string) {
  yield* refuseLocked(id, yield* find(sessions, id))
  sessions.byId.delete(id)
})

/**
 * Sessions in memory, for the lifetime of the layer: the contract of the file layer without a disk. Events are kept as the lines of a
 * file, nothing is spilled, and they are always read whole, so whatever does not survive the codec shows here too. All sessions share
 * the TempStore of the context.
 */
export const layer: Layer.Layer<SessionStore, never, TempStore> = Layer.effect(
  SessionStore,
  Effect.map(TempStore, (blobs) => {
    const sessions: MemorySessions = { blobs, byId: new Map() }
    return {
      create: (started) => createSession(sessions, started),
      // Nothing writes files into memory.
      claim: Effect.fn("SessionStore.claim")((id) => refuseExisting(sessions, id)),
      open: (id) => openSession(sessions, id),
      list: Effect.sync(() => [...sessions.byId.keys()].sort().reverse()),
      summaries: Effect.suspend(() => listSummaries(sessions)),
      summary: Effect.fn("SessionStore.summary")((id) =>
        Effect.flatMap(find(sessions, id), (stored) => summaryOf(id, stored))
      ),
      rename: (id, title) => renameSession(sessions, id, title),
      remove: (id) => removeSession(sessions, id)
    }
  })
)
