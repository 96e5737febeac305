import { Deferred, Effect, Exit, type FileSystem, Option, type PlatformError, Scope, Semaphore } from "effect"
import { sequenceOf } from "../../domain/conversation/Conversation.ts"
import { type Checkpoint, goesBeyond, type LogState, replacesView } from "../../domain/session/Checkpoint.ts"
import { encodeLine, spillableParts } from "../../domain/session/LogFormat.ts"
import { isRepeated, mayRepeat } from "../../domain/session/RepeatedAppend.ts"
import {
  applyEvent,
  applyEvents,
  entriesOf,
  minSpillBytes,
  type SessionEvent,
  type Spilled
} from "../../domain/session/Session.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import {
  SessionChanged,
  sessionError,
  type SessionLog,
  type SessionStoreError,
  sessionUnavailable
} from "../../services/session/SessionStore.ts"
import { type Blobs, logFile, type SessionFolder, syncFolder } from "./SessionFolder.ts"
import { readWholeLog } from "./SessionLogReader.ts"
import { withSessionErrors } from "./SessionStoreErrors.ts"
import { spillParts } from "./SpilledParts.ts"

/**
 * Appends to the log of a session. After a successful append, its event is on disk. After a failed or interrupted one, the
 * log is unchanged; when even that cannot be restored, the writer refuses further appends until the session is opened again.
 *
 * Appends are prepared one after the other and written together: while one sync runs, the lines of the next appends gather and
 * share the sync after it.
 */

/** A line that is ready to be written. */
interface ReadyLine {
  readonly bytes: Uint8Array
  readonly event: SessionEvent
}

/** Lines that are written together. The append that adds the first line writes them all. */
interface Batch {
  readonly lines: Array<ReadyLine>
  readonly done: Deferred.Deferred<void, SessionStoreError | PlatformError.PlatformError>
}

/** The state of the one writer of a log. */
interface Writer {
  readonly folder: SessionFolder
  readonly id: string
  readonly blobs: Blobs
  readonly handle: FileSystem.File
  /** The inode of the opened file. Another file under the same name has another one. */
  readonly ino: Option.Option<bigint>
  /** Held while an append is prepared: lines are written in the order of the calls. */
  readonly turn: Semaphore.Semaphore
  /** Number of appends that are being prepared or wait for their turn. */
  preparing: number
  /** Held while lines are written. Closing waits for it, but not for the preparation of an append. */
  readonly commit: Semaphore.Semaphore
  /** The batch that takes further lines, until it is written. */
  gathering: Batch | undefined
  /** The batch that was begun last. */
  last: Batch | undefined
  /** The size of the log in bytes. */
  offset: number
  state: LogState
  /** Events that were written and are not part of `state.session` yet. */
  unfolded: Array<SessionEvent>
  /** The number of the next message: one with a smaller number may be a repetition. */
  nextMessage: number
  /** Whether the name of the blob folder is known to be on disk. */
  hasBlobs: boolean
  /** Why the writer refuses appends; undefined while it accepts them. */
  refusal: string | undefined
}

const refuseIfClosed = ({ refusal }: Writer) =>
  refusal === undefined ? Effect.void : Effect.fail(sessionUnavailable("append", refusal))

/** Cuts off what an append wrote before it failed. */
const rollBack = (writer: Writer) =>
  Effect.suspend(() => writer.handle.truncate(writer.offset)).pipe(
    Effect.andThen(writer.handle.sync),
    Effect.catch(() =>
      Effect.sync(() => {
        writer.refusal = `session ${writer.id} could not be written, and the incomplete line could not be removed; open it again`
      })
    )
  )

/** Reads the whole log as it is now. */
const readAll = Effect.fnUntraced(function* ({ blobs, folder, id, offset }: Writer) {
  const read = yield* readWholeLog(folder, id, blobs, offset)
  if (read.good === offset) return read
  return yield* sessionError(new SessionChanged({ id, expected: offset, found: read.good + read.torn }))
})

/** Returns the state after the lines that were written. */
const currentState = (writer: Writer): LogState => {
  if (writer.unfolded.length > 0) {
    writer.state = { ...writer.state, session: applyEvents(writer.state.session, writer.unfolded) }
    writer.unfolded = []
  }
  return writer.state
}

/**
 * Returns the state before an event. An undo or redo beyond the part that was read, or a branch, makes the writer read the
 * whole log first.
 */
const stateBefore = Effect.fnUntraced(function* (writer: Writer, event: SessionEvent) {
  const { complete, session } = currentState(writer)
  if (!complete && goesBeyond(session, event)) writer.state = yield* readAll(writer)
  return writer.state
})

/** Fails with `SessionChanged` when the name of the log does not lead to the opened file, or its size is not the expected one. */
const compareFile = ({ folder, id, ino, offset }: Writer) =>
  folder.fs.stat(logFile(folder, id)).pipe(
    Effect.map((info) => ({
      found: Number(info.size),
      isSameFile: Option.getOrUndefined(info.ino) === Option.getOrUndefined(ino)
    })),
    Effect.catchIf(isNotFound, () => Effect.succeed({ found: 0, isSameFile: false })),
    Effect.flatMap(({ found, isSameFile }) =>
      isSameFile && found === offset
        ? Effect.void
        : Effect.fail(sessionError(new SessionChanged({ id, expected: offset, found })))
    )
  )

/** Fails with `SessionChanged` when another program replaced or changed the log. */
const checkUnchanged = (writer: Writer) =>
  Effect.flatMap(writer.handle.stat, ({ nlink, size }) =>
    Number(size) === writer.offset && Option.getOrUndefined(nlink) !== 0n ? Effect.void : compareFile(writer)
  )

/** Adds a line to the batch that gathers. Returns the batch, and whether the line is its first. */
const gather = (writer: Writer, line: ReadyLine): readonly [batch: Batch, isFirst: boolean] => {
  const { gathering } = writer
  if (gathering !== undefined) {
    gathering.lines.push(line)
    return [gathering, false]
  }
  const batch: Batch = { lines: [line], done: Deferred.makeUnsafe() }
  writer.gathering = batch
  return [batch, true]
}

/** Writes a batch with one sync: either all of its lines are on disk and in the writer's state, or none. */
const writeBatch = (writer: Writer, { done, lines }: Batch) =>
  Effect.suspend(() => {
    writer.gathering = undefined
    return refuseIfClosed(writer).pipe(
      Effect.andThen(checkUnchanged(writer)),
      Effect.andThen(
        writer.handle.writeAll(Bytes.joinBytes(lines.map(({ bytes }) => bytes))).pipe(
          Effect.andThen(writer.handle.sync),
          Effect.onError(() => rollBack(writer))
        )
      ),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit)) {
            for (const { bytes, event } of lines) {
              const from = writer.offset
              writer.offset += bytes.length
              writer.state.lines.add(event, from, writer.offset)
              writer.unfolded.push(event)
              writer.nextMessage = Math.max(writer.nextMessage, ...entriesOf(event).map(({ id }) => sequenceOf(id) + 1))
            }
          }
          Deferred.doneUnsafe(done, exit)
        })
      )
    )
  })

/** Writes the batch of a line, or waits until the append that began it has done so. */
const commitLine = (writer: Writer, line: ReadyLine) => {
  const isBusy = writer.last !== undefined && writer.last.lines.length > 1
  const [batch, isFirst] = gather(writer, line)
  if (!isFirst) return Deferred.await(batch.done)
  writer.last = batch
  const write = writer.commit.withPermit(writeBatch(writer, batch))
  // Appends that waited for the previous batch may add another line, which shares the sync.
  return isBusy ? Effect.andThen(Effect.yieldNow, write) : write
}

/** Waits until every line so far was written. */
const drained = (writer: Writer) =>
  writer.last === undefined ? Effect.void : Effect.exit(Deferred.await(writer.last.done))

const lineOf = (event: SessionEvent, spilled?: ReadonlyMap<string, Spilled>, checkpoint?: Checkpoint): ReadyLine => ({
  bytes: Bytes.encode(`${encodeLine(event, spilled, checkpoint)}\n`),
  event
})

/** Makes the line of an event. Its large parts are in the blob store then. */
const prepareLine = Effect.fnUntraced(function* (writer: Writer, event: SessionEvent) {
  yield* refuseIfClosed(writer)
  const spilled = yield* spillParts(writer.blobs, event)
  if (spilled.size > 0 && !writer.hasBlobs) {
    // The first blob created the blob folder, whose name has to be durable too.
    yield* syncFolder(writer.folder)
    writer.hasBlobs = true
  }
  if (!replacesView(event)) return lineOf(event, spilled)
  yield* drained(writer)
  const { lines, session } = yield* stateBefore(writer, event)
  return lineOf(event, spilled, lines.checkpoint(applyEvent(session, event), event))
})

const append = (writer: Writer, event: SessionEvent) =>
  Effect.uninterruptibleMask((restore) => {
    if (mayRepeat(writer.nextMessage, event) && isRepeated(currentState(writer).session, event)) return Effect.void
    const hasLarge = spillableParts(event, minSpillBytes).length > 0
    // Nothing to wait for: the line is ready at once.
    if (writer.preparing === 0 && !hasLarge && !replacesView(event)) {
      return commitLine(writer, lineOf(event))
    }
    writer.preparing += 1
    const turn = Scope.makeUnsafe()
    return restore(Scope.provide(writer.turn.takeScoped(1), turn)).pipe(
      Effect.andThen(restore(prepareLine(writer, event))),
      // The line has its place in the log from here on.
      Effect.map((line) => commitLine(writer, line)),
      Effect.ensuring(
        Effect.suspend(() => {
          writer.preparing -= 1
          return Scope.close(turn, Exit.void)
        })
      ),
      Effect.flatten
    )
  })

/** Opens the writer of a log that is `size` bytes long and has this state, until the scope closes. Needs the session's lock. */
export const openWriter = Effect.fnUntraced(function* (
  folder: SessionFolder,
  id: string,
  blobs: Blobs,
  size: number,
  state: LogState
): Effect.fn.Return<SessionLog, PlatformError.PlatformError, Scope.Scope> {
  const handle = yield* folder.fs.open(logFile(folder, id), { flag: "a", mode: 0o600 })
  const { ino } = yield* handle.stat
  const commit = yield* Semaphore.make(1)
  const writer: Writer = {
    folder,
    id,
    blobs,
    handle,
    ino,
    turn: yield* Semaphore.make(1),
    preparing: 0,
    commit,
    gathering: undefined,
    last: undefined,
    offset: size,
    state,
    unfolded: [],
    nextMessage: state.session.conversation.next,
    hasBlobs: false,
    refusal: undefined
  }
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      writer.refusal = `session ${id} was closed; open it again`
      return commit.withPermit(Effect.void)
    })
  )
  return {
    id,
    // Not `Effect.fn`: to capture the stack of the caller takes longer than to write a line.
    append: (event) =>
      Effect.withSpan(withSessionErrors("append", id)(append(writer, event)), "SessionLog.append", {
        captureStackTrace: false
      }),
    blobs,
    whole: Effect.suspend(() => readAll(writer)).pipe(
      Effect.map(({ session }) => session),
      withSessionErrors("read", id),
      Effect.withSpan("SessionLog.whole")
    )
  }
})
