import { Effect, type FileSystem, Option, type PlatformError, type Scope, Semaphore } from "effect"
import { canRedo, canUndo } from "../../domain/conversation/Conversation.ts"
import { replacesView } from "../../domain/session/Checkpoint.ts"
import { encodeLine, spillableParts } from "../../domain/session/LogFormat.ts"
import {
  applyEvent,
  minSpillBytes,
  type Session,
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
import { type LogState, readWholeLog } from "./SessionLogReader.ts"
import { failureOf, withSessionErrors } from "./SessionStoreErrors.ts"

/**
 * Appends to the log of a session. After a successful append, its event is on disk. After a failed or interrupted one, the
 * log is unchanged; when even that cannot be restored, the writer refuses further appends until the session is opened again.
 */

/** The state of the one writer of a log. */
interface Writer {
  readonly folder: SessionFolder
  readonly id: string
  readonly blobs: Blobs
  readonly handle: FileSystem.File
  /** The inode of the opened file. Another file under the same name has another one. */
  readonly ino: Option.Option<bigint>
  /** Held while a line is written. Closing waits for it, but not for the preparation of an append. */
  readonly commit: Semaphore.Semaphore
  /** The size of the log in bytes. */
  offset: number
  state: LogState
  /** Whether the name of the blob folder is known to be on disk. */
  hasBlobs: boolean
  /** Why the writer refuses appends; undefined while it accepts them. */
  refusal: string | undefined
}

const refuseIfClosed = ({ refusal }: Writer): Effect.Effect<void, SessionStoreError> =>
  refusal === undefined ? Effect.void : Effect.fail(sessionUnavailable("append", refusal))

/** Cuts off what an append wrote before it failed. */
const rollBack = (writer: Writer): Effect.Effect<void> =>
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

/**
 * Returns the state before an event. An undo or redo beyond the part that was read, or a branch, makes the writer read the
 * whole log first.
 */
const stateBefore = Effect.fnUntraced(function* (writer: Writer, event: SessionEvent) {
  const { complete, session } = writer.state
  const isBeyond =
    event._tag === "Branched" ||
    (event._tag === "Undone" && !canUndo(session.conversation)) ||
    (event._tag === "Redone" && !canRedo(session.conversation))
  if (!complete && isBeyond) writer.state = yield* readAll(writer)
  return writer.state
})

/** Stores the large parts of an event in the blob store. */
export const spillParts = Effect.fnUntraced(function* (
  blobs: Blobs,
  event: SessionEvent
): Effect.fn.Return<ReadonlyMap<string, Spilled>, SessionStoreError> {
  const spilled = new Map<string, Spilled>()
  for (const { form, key, text } of spillableParts(event, minSpillBytes)) {
    const bytes = Bytes.encode(text)
    // Escaped bytes that happen to form valid UTF-8 would be read back as a character.
    if (!text.isWellFormed() && Bytes.decode(bytes).text !== text) continue
    const hash = yield* blobs
      .put(bytes)
      .pipe(Effect.mapError((error) => sessionUnavailable("append", `${failureOf("append")}: ${error.message}`, error)))
    spilled.set(key, { hash, size: bytes.length, form })
  }
  return spilled
})

/** Fails with `SessionChanged` when another program replaced or changed the log. */
const checkUnchanged = ({ folder, id, ino, offset }: Writer) =>
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

/** Commits one line: either it is on disk and in the writer's state, or neither. */
const commitLine = (writer: Writer, line: Uint8Array, event: SessionEvent, after: Session) =>
  Effect.suspend(() => refuseIfClosed(writer)).pipe(
    Effect.andThen(
      writer.handle.writeAll(line).pipe(
        Effect.andThen(writer.handle.sync),
        Effect.onError(() => rollBack(writer))
      )
    ),
    Effect.andThen(
      Effect.sync(() => {
        const { offset } = writer
        writer.state.lines.add(event, offset, offset + line.length)
        writer.state = { ...writer.state, session: after }
        writer.offset += line.length
      })
    ),
    Effect.uninterruptible,
    writer.commit.withPermit
  )

const append = Effect.fnUntraced(function* (writer: Writer, event: SessionEvent) {
  yield* refuseIfClosed(writer)
  const { lines, session } = yield* stateBefore(writer, event)
  const after = applyEvent(session, event)
  const checkpoint = replacesView(event) ? lines.checkpoint(after, event) : undefined
  const spilled = yield* spillParts(writer.blobs, event)
  if (spilled.size > 0 && !writer.hasBlobs) {
    // The first blob created the blob folder, whose name has to be durable too.
    yield* syncFolder(writer.folder)
    writer.hasBlobs = true
  }
  yield* checkUnchanged(writer)
  yield* commitLine(writer, Bytes.encode(`${encodeLine(event, spilled, checkpoint)}\n`), event, after)
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
  // Appends run in the order of their calls.
  const turn = yield* Semaphore.make(1)
  const commit = yield* Semaphore.make(1)
  const writer: Writer = {
    folder,
    id,
    blobs,
    handle,
    ino,
    commit,
    offset: size,
    state,
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
    append: Effect.fn("SessionLog.append")(
      (event: SessionEvent) => append(writer, event),
      withSessionErrors("append", id),
      turn.withPermit
    ),
    blobs,
    whole: Effect.suspend(() => readAll(writer)).pipe(
      Effect.map(({ session }) => session),
      withSessionErrors("read", id),
      Effect.withSpan("SessionLog.whole")
    )
  }
})
