/**
 * Appends to the log of a session, wherever its lines are. After a successful append, its event is stored; after a failed one, the log is
 * unchanged. One that is interrupted while it writes is completed. Appends run one after the other, in the order of their calls.
 */

import { Effect, type Scope, Semaphore } from "effect"
import { type Checkpoint, goesBeyond, replacesView } from "../../domain/session/Checkpoint.ts"
import { isRepeated } from "../../domain/session/RepeatedAppend.ts"
import { applyEvent, type Session, type SessionEvent } from "../../domain/session/Session.ts"
import { closedSession, type SessionLog, type SessionStoreError } from "../../services/session/SessionStore.ts"
import type { TempStore } from "../../services/session/TempStore.ts"
import type { ReadLog } from "./LogReading.ts"

/** Where the lines of one session go. Positions are in the unit of its checkpoints: bytes of a file, lines of a backing. */
export interface LogSink<Line> {
  readonly id: string
  readonly blobs: TempStore["Service"]
  /** Makes the line of the event that is to stand at a position. Its large parts are in the blob store then. */
  readonly encode: (
    event: SessionEvent,
    position: number,
    checkpoint: Checkpoint | undefined
  ) => Effect.Effect<Line, SessionStoreError>
  /** Writes a line at the end of the log, which is at this position. Returns where the log ends then. */
  readonly write: (line: Line, position: number) => Effect.Effect<number, SessionStoreError>
  /** Folds the whole log, which ends at this position as far as the writer knows. */
  readonly readWhole: (position: number) => Effect.Effect<ReadLog, SessionStoreError>
}

/** Opens the writer of a log in this state, until the scope closes. */
export const openWriter = Effect.fnUntraced(function* <Line>(
  { blobs, encode, id, readWhole, write }: LogSink<Line>,
  opened: ReadLog
): Effect.fn.Return<SessionLog, never, Scope.Scope> {
  const turn = yield* Semaphore.make(1)
  // Held while a line is written. Closing waits for it, but not for the preparation of an append.
  const commit = yield* Semaphore.make(1)
  let state = opened
  let isClosed = false
  const refused = Effect.fail(closedSession(id))
  const whole = Effect.suspend(() => readWhole(state.good))
  // A store of lines continues the log as it is now: acknowledged lines are gone after a rollback that was not this store's.
  const readAgain = (error: SessionStoreError) =>
    error.reason._tag !== "SessionChanged"
      ? Effect.void
      : whole.pipe(
          Effect.map((read) => void (state = read)),
          Effect.ignore({ log: "Debug" })
        )
  const writeLine = (event: SessionEvent, session: Session, line: Line) =>
    Effect.suspend(() => (isClosed ? refused : write(line, state.good))).pipe(
      Effect.map((end) => {
        state.lines.add(event, state.good, end)
        state = { ...state, session, good: end }
      }),
      Effect.tapError(readAgain),
      Effect.uninterruptible,
      commit.withPermit
    )
  const appendNow = (event: SessionEvent) => {
    const { good, lines } = state
    const session = applyEvent(state.session, event)
    const checkpoint = replacesView(event) ? lines.checkpoint(session, event) : undefined
    return Effect.flatMap(encode(event, good, checkpoint), (line) => writeLine(event, session, line))
  }
  const append = (event: SessionEvent) =>
    Effect.suspend(() => {
      if (isClosed) return refused
      if (isRepeated(state.session, event)) return Effect.void
      if (state.complete || !goesBeyond(state.session, event)) return appendNow(event)
      // An undo or redo beyond the part that was read, or a branch, needs the whole log.
      return Effect.flatMap(whole, (read) => {
        state = read
        return appendNow(event)
      })
    })
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      isClosed = true
      return commit.withPermit(Effect.void)
    })
  )
  return {
    id,
    // Not `Effect.fn`: to capture the stack of the caller takes longer than to write a line.
    append: (event) =>
      Effect.withSpan(turn.withPermit(append(event)), "SessionLog.append", { captureStackTrace: false }),
    blobs,
    whole: Effect.map(whole, ({ session }) => session).pipe(Effect.withSpan("SessionLog.whole"))
  }
})
