import { Clock, Effect, Layer, Schema, type Scope } from "effect"
import { pid } from "node:process"
import { decodeLine, encodeLine, filled, type LineProblem } from "../domain/LogFormat.ts"
import { emptySession, type Session, type SessionEvent, step } from "../domain/Session.ts"
import {
  SessionCorrupt,
  SessionExists,
  SessionLocked,
  type SessionLog,
  SessionNotFound,
  SessionStore,
  SessionStoreError,
  SessionTooNew,
  SessionUnavailable
} from "../services/SessionStore.ts"

interface Stored {
  readonly lines: Array<string>
  /** When its writer opened it, in milliseconds since 1970. */
  writer: number | undefined
}

const isId = Schema.is(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/)))
const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))

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

/** The conversation that the lines hold, read through the same codec as a file. */
const readLines = Effect.fnUntraced(function* (
  id: string,
  lines: ReadonlyArray<string>
): Effect.fn.Return<Session, SessionStoreError> {
  let session = emptySession
  for (const [index, text] of lines.entries()) {
    const value = parse(text)
    if (value._tag === "Failure") {
      return yield* refuse(new SessionCorrupt({ id, line: index + 1, detail: "this is not JSON" }))
    }
    const line = decodeLine(value.success, session.started?.version)
    if (line._tag === "Failure") return yield* describe(id, index + 1, line.failure)
    if (line.success === undefined) continue
    const event = filled(line.success, new Map())
    if (event._tag === "Failure") {
      return yield* refuse(new SessionCorrupt({ id, line: index + 1, detail: event.failure }))
    }
    session = step(session, event.success)
  }
  return session
})

/**
 * Sessions in memory, for as long as the layer lives: the contract of the file layer without a disk. Events are kept as
 * the lines a file would hold, nothing spilled; so whatever does not survive the codec shows here as well.
 */
export const layer: Layer.Layer<SessionStore> = Layer.sync(SessionStore, () => {
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
        stored.lines.push(line)
      })
    }
  })

  return {
    create: Effect.fn("SessionStore.create")(function* (started) {
      const id = started.session
      if (!isId(id)) return yield* refusal("create", "a session id is 1 to 64 letters, digits, hyphens or underscores")
      if (sessions.has(id)) return yield* refuse(new SessionExists({ id }))
      const stored: Stored = { lines: [encodeLine(started)], writer: undefined }
      yield* lock(id, stored)
      sessions.set(id, stored)
      return yield* logOf(id, stored)
    }),
    open: Effect.fn("SessionStore.open")(function* (id) {
      const stored = sessions.get(id)
      if (stored === undefined) return yield* refuse(new SessionNotFound({ id }))
      const session = yield* lock(id, stored)
      return { session, torn: 0, log: yield* logOf(id, stored) }
    }),
    list: Effect.sync(() => [...sessions.keys()].sort().reverse())
  }
})
