import { Clock, Effect, Layer, Schema, type Scope } from "effect"
import { pid } from "node:process"
import { fromJson } from "../domain/JsonText.ts"
import * as Bytes from "../domain/Bytes.ts"
import { decodeLine, encodeLine, filled, type LineProblem } from "../domain/LogFormat.ts"
import { emptySession, type Session, type SessionEvent, step } from "../domain/Session.ts"
import { headOf, titleOf } from "../domain/SessionHead.ts"
import {
  SessionCorrupt,
  SessionExists,
  SessionLocked,
  type SessionLog,
  SessionNotFound,
  SessionStore,
  SessionStoreError,
  type SessionSummary,
  SessionTooNew,
  SessionUnavailable
} from "../services/SessionStore.ts"
import { TempStore } from "../services/TempStore.ts"

interface Stored {
  readonly lines: Array<string>
  /** Milliseconds since 1970. */
  updatedAt: number
  title: string | undefined
  /** When its writer opened it, in milliseconds since 1970. */
  writer: number | undefined
}

/** Lines that a list reads of a session. */
const headLines = 100

const isId = Schema.is(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/)))
const parse = Schema.decodeUnknownResult(fromJson(Schema.Unknown))

const refuse = (reason: SessionStoreError["reason"]) => new SessionStoreError({ reason })
const refusal = (operation: string, message: string) =>
  refuse(new SessionUnavailable({ operation, message, cause: message }))

const describe = (id: string, line: number, problem: LineProblem): SessionStoreError => {
  switch (problem._tag) {
    case "NewerVersion":
      return refuse(new SessionTooNew({ id, version: problem.version }))
    case "UnknownEvent":
      return refuse(new SessionCorrupt({ id, line, detail: `an event of an unknown kind: ${problem.event}` }))
    case "Malformed":
      return refuse(new SessionCorrupt({ id, line, detail: problem.message }))
  }
}

/** What the lines say, read through the same codec as a file. */
const eventsOf = Effect.fnUntraced(function* (
  id: string,
  lines: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<SessionEvent>, SessionStoreError> {
  const events: Array<SessionEvent> = []
  for (const [index, text] of lines.entries()) {
    const value = parse(text)
    if (value._tag === "Failure") {
      return yield* refuse(new SessionCorrupt({ id, line: index + 1, detail: "this is not JSON" }))
    }
    const line = decodeLine(value.success)
    if (line._tag === "Failure") return yield* describe(id, index + 1, line.failure)
    if (line.success === undefined) continue
    const event = filled(line.success, new Map())
    if (event._tag === "Failure") {
      return yield* refuse(new SessionCorrupt({ id, line: index + 1, detail: event.failure }))
    }
    events.push(event.success)
  }
  return events
})

const readLines = (id: string, lines: ReadonlyArray<string>): Effect.Effect<Session, SessionStoreError> =>
  Effect.map(eventsOf(id, lines), (events) => events.reduce(step, emptySession))

/** What the lines of a session hold together, in bytes of a file. */
const sizeOf = (lines: ReadonlyArray<string>): number =>
  lines.reduce((size, line) => size + Bytes.encode(line).length + 1, 0)

/**
 * Sessions in memory, for as long as the layer lives: the contract of the file layer without a disk. Events are kept as
 * the lines a file would hold, nothing spilled, and always read whole; so whatever does not survive the codec shows here as
 * well. All sessions share the TempStore of the context.
 */
export const layer: Layer.Layer<SessionStore, never, TempStore> = Layer.effect(
  SessionStore,
  Effect.gen(function* () {
    const blobs = yield* TempStore
    const sessions = new Map<string, Stored>()

    /** Takes the one writer's place for as long as the scope is open, and reads what is there. */
    const lock = (id: string, stored: Stored): Effect.Effect<Session, SessionStoreError, Scope.Scope> => {
      const leave = Effect.sync(() => {
        stored.writer = undefined
      })
      return Effect.acquireRelease(
        Effect.gen(function* () {
          const since = yield* Clock.currentTimeMillis
          if (stored.writer !== undefined) return yield* refuse(new SessionLocked({ id, pid, since: stored.writer }))
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
          if (closed) return yield* refusal("append", `session ${id} was closed; open it again`)
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
        if (!isId(id)) {
          return yield* refusal("create", "a session id is 1 to 64 letters, digits, hyphens or underscores")
        }
        if (sessions.has(id)) return yield* refuse(new SessionExists({ id }))
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
      // Nobody writes files into memory.
      claim: Effect.fn("SessionStore.claim")(function* (id) {
        if (sessions.has(id)) return yield* refuse(new SessionExists({ id }))
      }),
      open: Effect.fn("SessionStore.open")(function* (id) {
        const stored = sessions.get(id)
        if (stored === undefined) return yield* refuse(new SessionNotFound({ id }))
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
        return stored === undefined ? yield* refuse(new SessionNotFound({ id })) : yield* summary(id, stored)
      }),
      rename: Effect.fn("SessionStore.rename")(function* (id, title) {
        const stored = sessions.get(id)
        if (stored === undefined) return yield* refuse(new SessionNotFound({ id }))
        stored.title = titleOf(title) || undefined
      }),
      remove: Effect.fn("SessionStore.remove")(function* (id) {
        const stored = sessions.get(id)
        if (stored === undefined) return yield* refuse(new SessionNotFound({ id }))
        if (stored.writer !== undefined) return yield* refuse(new SessionLocked({ id, pid, since: stored.writer }))
        sessions.delete(id)
      })
    }
  })
)
