import { Clock, Effect, Layer, Schema, type Scope } from "effect"
import { pid } from "node:process"
import { decodeLine, encodeLine, restoreSpilled } from "../../domain/session/LogFormat.ts"
import { emptySession, type Session, type SessionEvent, applyEvent } from "../../domain/session/Session.ts"
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

/**
 * Sessions in memory, for the lifetime of the layer: the contract of the file layer without a disk. Events are kept as the lines of a
 * file, nothing is spilled, and they are always read whole, so whatever does not survive the codec shows here too. All sessions share
 * the TempStore of the context.
 */
export const layer: Layer.Layer<SessionStore, never, TempStore> = Layer.effect(
  SessionStore,
  Effect.gen(function* () {
    const blobs = yield* TempStore
    const sessions = new Map<string, Stored>()

    /** Takes the single writer's lock until the scope closes, and reads the session. */
    const lock = (id: string, stored: Stored): Effect.Effect<Session, SessionStoreError, Scope.Scope> => {
      const leave = Effect.sync(() => {
        stored.writer = undefined
      })
      return Effect.acquireRelease(
        Effect.gen(function* () {
          const since = yield* Clock.currentTimeMillis
          if (stored.writer !== undefined)
            return yield* sessionError(new SessionLocked({ id, pid, since: stored.writer }))
          stored.writer = since
          return yield* readLines(id, stored.lines).pipe(Effect.onError(() => leave))
        }),
        () => leave
      )
    }

    const logOf = Effect.fnUntraced(function* (
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

    const summary = Effect.fnUntraced(function* (id: string, stored: Stored): Effect.fn.Return<SessionSummary> {
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

    return {
      create: Effect.fn("SessionStore.create")(function* (started) {
        const id = started.session
        if (!isSessionId(id)) {
          return yield* badSessionId()
        }
        if (sessions.has(id)) return yield* sessionError(new SessionExists({ id }))
        const stored: Stored = {
          lines: [encodeLine(started)],
          updatedAt: yield* Clock.currentTimeMillis,
          title: undefined,
          writer: undefined
        }
        yield* lock(id, stored)
        sessions.set(id, stored)
        return yield* logOf(id, stored)
      }),
      // Nothing writes files into memory.
      claim: Effect.fn("SessionStore.claim")(function* (id) {
        if (sessions.has(id)) return yield* sessionError(new SessionExists({ id }))
      }),
      open: Effect.fn("SessionStore.open")(function* (id) {
        const stored = sessions.get(id)
        if (stored === undefined) return yield* sessionError(new SessionNotFound({ id }))
        const session = yield* lock(id, stored)
        return { session, complete: true, torn: 0, log: yield* logOf(id, stored) }
      }),
      list: Effect.sync(() => [...sessions.keys()].sort().reverse()),
      summaries: Effect.suspend(() => Effect.forEach(sessions, ([id, stored]) => summary(id, stored))).pipe(
        Effect.map((found) => found.sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1))),
        Effect.withSpan("SessionStore.summaries")
      ),
      summary: Effect.fn("SessionStore.summary")(function* (id) {
        const stored = sessions.get(id)
        return stored === undefined ? yield* sessionError(new SessionNotFound({ id })) : yield* summary(id, stored)
      }),
      rename: Effect.fn("SessionStore.rename")(function* (id, title) {
        const stored = sessions.get(id)
        if (stored === undefined) return yield* sessionError(new SessionNotFound({ id }))
        stored.title = titleOf(title) || undefined
      }),
      remove: Effect.fn("SessionStore.remove")(function* (id) {
        const stored = sessions.get(id)
        if (stored === undefined) return yield* sessionError(new SessionNotFound({ id }))
        if (stored.writer !== undefined)
          return yield* sessionError(new SessionLocked({ id, pid, since: stored.writer }))
        sessions.delete(id)
      })
    }
  })
)
