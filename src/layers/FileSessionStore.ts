import {
  Context,
  Effect,
  Exit,
  FileSystem,
  Layer,
  Option,
  Path,
  type PlatformError,
  Schema,
  Scope,
  Semaphore
} from "effect"
import { Buffer } from "node:buffer"
import { platform } from "node:process"
import * as Bytes from "../domain/Bytes.ts"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import { type Checkpoint, decodeCheckpoint, LogLines, replacesView, restored } from "../domain/Checkpoint.ts"
import { canRedo, canUndo } from "../domain/Conversation.ts"
import { checkpointMark, encodeLine, filled, type LineProblem, spillable } from "../domain/LogFormat.ts"
import { LogReader, type ReadLine } from "../domain/LogReader.ts"
import {
  emptySession,
  type Session,
  type SessionEvent,
  spillBytes,
  type Spilled,
  type Started,
  step
} from "../domain/Session.ts"
import { headOf, titleOf } from "../domain/SessionHead.ts"
import {
  type OpenSession,
  SessionChanged,
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
import * as FileLock from "../services/FileLock.ts"
import * as Leftovers from "../services/Leftovers.ts"
import { freshTemporaryName } from "../services/Processes.ts"
import { BlobFolder, blobFolderOf, TempStore, type TempStoreError } from "../services/TempStore.ts"
import * as SessionCatalogue from "./SessionCatalogue.ts"
import * as ThisProcess from "./ThisProcess.ts"

/** Ids come from outside and become file names. */
const isId = Schema.is(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/)))

/** Bytes read at once; their lines are decoded before the next are read, so that no slice takes long. */
const chunkBytes = 1024 * 1024
/** Bytes that are looked through first, from the end of a log, for its last checkpoint; then twice as many, and so on. */
const tailBytes = 32 * 1024
/** Logs up to this many bytes are read once, even when they hold no checkpoint. */
const heldBytes = 64 * 1024 * 1024
/** Bytes of a log that a list reads. */
const headBytes = 64 * 1024
/** In most it stands in these. */
const shortHeadBytes = 8 * 1024
/** Bytes of a file that holds a title: more than any title has. */
const titleBytes = 4 * 1024
/** Sessions that a list looks at at once. */
const listConcurrency = 16
const newline = 10
const mark = Bytes.encode(checkpointMark)

/** A finalizer must not wait for a disk that hangs. */
const finalizerDeadline = "5 seconds"

const refuse = (reason: SessionStoreError["reason"]) => new SessionStoreError({ reason })
const refusal = (operation: string, message: string, cause: unknown = message) =>
  refuse(new SessionUnavailable({ operation, message, cause }))
/** What could not be done, as a person says it. */
const failing: Readonly<Record<string, string>> = {
  append: "the session could not be written, and is as it was",
  create: "the session could not be begun",
  open: "the session could not be opened",
  read: "the session could not be read",
  list: "the sessions could not be listed",
  rename: "the session could not be renamed",
  remove: "the session could not be deleted"
}

const unavailable =
  (operation: string, id?: string) =>
  (error: SessionStoreError | PlatformError.PlatformError): SessionStoreError =>
    isPlatformError(error)
      ? refusal(
          operation,
          `${(failing[operation] ?? operation).replace("the session", id === undefined ? "the session" : `session ${id}`)}: ${diskTrouble(error)}`,
          error
        )
      : error

const isPlatformError = (error: unknown): error is PlatformError.PlatformError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "PlatformError"
const isTagged =
  (tag: PlatformError.SystemErrorTag) =>
  // No type guard: it would say that no other error of the platform is left.
  (error: unknown): boolean =>
    isPlatformError(error) && error.reason._tag === tag
const isNotFound = isTagged("NotFound")

const corrupt = (id: string, line: number, detail: string) => refuse(new SessionCorrupt({ id, line, detail }))

const odd = (id: string) => `session ${id} is no regular file`

const headless = (id: string) => corrupt(id, 1, "the log does not begin with Started")

/** Names under which older versions wrote what was not yet a log or a title. */
const isOldTemporary = (name: string): boolean => /^(?:[\w-]{1,64}\.new|\.[\w-]{1,64}\.title\.\d+-\d+\.tmp)$/.test(name)

/** A lock of a session, or one under which such a lock is broken; and the id of the session. */
const lockName = /^([\w-]{1,64})\.lock(?:\.[a-z0-9]{1,60})?$/

/** Whether it is the log that is wrong, and not the disk. */
const isUnreadable = (error: unknown): boolean =>
  error instanceof SessionStoreError && error.reason._tag !== "SessionUnavailable"

const describe = (id: string, line: number, problem: LineProblem): SessionStoreError => {
  switch (problem._tag) {
    case "NewerVersion":
      return refuse(new SessionTooNew({ id, version: problem.version }))
    case "UnknownEvent":
      return corrupt(id, line, `an event of an unknown kind: ${problem.event}`)
    case "Malformed":
      return corrupt(id, line, problem.message)
  }
}

/** A blob that is lost makes its line unreadable; a disk that fails now may be well tomorrow. */
const describeBlob = (id: string, line: number, error: TempStoreError): SessionStoreError =>
  error.reason._tag === "BlobMissing" || error.reason._tag === "BlobDamaged"
    ? corrupt(id, line, error.message)
    : refusal("open", error.message, error)

/** The sessions among the names of a folder, newest first. */
const idsOf = (names: ReadonlyArray<string>): Array<string> =>
  names
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => name.slice(0, -".jsonl".length))
    .filter(isId)
    .sort()
    .reverse()

/** Opens resources in the scope outside all at once: when `open` does not succeed, none of them stays open. */
const allOrNothing = <A, E, R>(open: Effect.Effect<A, E, R | Scope.Scope>): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const inner = yield* Scope.fork(yield* Effect.scope)
      return yield* restore(Scope.provide(open, inner)).pipe(
        Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(inner, exit) : Effect.void))
      )
    })
  )

type Blobs = TempStore["Service"]

/** What is known of a log: what it says, and where. */
interface Known {
  readonly session: Session
  readonly lines: LogLines
  /** Whether all of it was read. */
  readonly complete: boolean
}

interface ReadLog extends Known {
  /** Bytes up to the end of the last whole line. */
  readonly good: number
  /** Bytes after it. */
  readonly torn: number
}

/** Where a line stands, in bytes, its line break included. */
interface Span {
  readonly from: number
  readonly to: number
}

interface CheckpointLine {
  readonly checkpoint: Checkpoint
  readonly line: Span
}

/** A checkpoint, or in its place the bytes of the whole log. */
type Found = CheckpointLine | Buffer

/** Bytes of a log from `from` on, not beyond `to`, a chunk at most; none at its end. Good until the next are asked for. */
type Source = (from: number, to: number) => Effect.Effect<Uint8Array, PlatformError.PlatformError>

/**
 * Sessions as files of `directory` (mode 0700, made when the first session is): `<id>.jsonl`, one event a line (mode
 * 0600), `<id>.jsonl.blobs` with its parts of 8 KiB and more, written before their line, `<id>.title` where it was given
 * one, and `<id>.lock` while somebody writes it. An append that succeeded is on disk; one that failed or was interrupted
 * left the log as it was, and where even that cannot be restored the log takes no more appends until it is opened again,
 * when half a line is cut off. An event that replaces the view carries a checkpoint (see domain/Checkpoint.ts): from the
 * last one on, a session is opened by reading what the model sees and nothing else.
 */
export const layer = (
  directory: string
): Layer.Layer<SessionStore, never, FileSystem.FileSystem | Path.Path | BlobFolder> =>
  Layer.effect(
    SessionStore,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folders = yield* BlobFolder

      const logFile = (id: string) => path.join(directory, `${id}.jsonl`)
      const titleFile = (id: string) => path.join(directory, `${id}.title`)
      const lockFile = (id: string) => path.join(directory, `${id}.lock`)

      /** The blobs of a session, as long as the scope is open. */
      const blobsOf = (id: string): Effect.Effect<Blobs, never, Scope.Scope> =>
        Effect.map(Layer.build(folders.at(blobFolderOf(logFile(id)))), (built) => Context.get(built, TempStore))

      const discard = (file: string) =>
        fs
          .remove(file, { force: true })
          .pipe(Effect.retry({ times: 2 }), Effect.timeoutOption(finalizerDeadline), Effect.ignore({ log: "Warn" }))

      /** Writes a file whole. On failure its content is undefined. */
      const writeWhole = (file: string, text: string) =>
        Effect.scoped(
          Effect.gen(function* () {
            // Interrupted, a call under way can still make the file, after its caller has removed it.
            const handle = yield* Effect.uninterruptible(fs.open(file, { flag: "wx", mode: 0o600 }))
            // Interrupted, the write would go on behind our back, into whatever file gets the number of this one.
            yield* Effect.uninterruptible(handle.writeAll(Bytes.encode(text)))
            yield* handle.sync
          })
        )

      /** A new name is on disk when its folder is. Windows has no such thing. */
      const syncDirectory =
        platform === "win32"
          ? Effect.void
          : Effect.scoped(Effect.flatMap(fs.open(directory, { flag: "r" }), (handle) => handle.sync))

      /** With the files of this store and the process that uses them. */
      const here = <A, E, R>(work: Effect.Effect<A, E, R>) =>
        ThisProcess.provide(
          Effect.provideService(Effect.provideService(work, FileSystem.FileSystem, fs), Path.Path, path)
        )

      /** Holds the lock of a session until the scope closes; a lock whose process is gone is taken over. */
      const lock = Effect.fnUntraced(function* (
        id: string
      ): Effect.fn.Return<void, PlatformError.PlatformError | SessionStoreError, Scope.Scope> {
        const file = lockFile(id)
        const wasLeft = (yield* fs.exists(file)) && (yield* here(FileLock.holderOf(file))) === undefined
        const held = yield* here(FileLock.tryHoldLong(file))
        if (held !== undefined) return yield* refuse(new SessionLocked({ id, ...held }))
        if (wasLeft) yield* here(Leftovers.sweep(blobFolderOf(logFile(id))))
      })

      /** Clears what processes that were killed left half done: what is known by its name, and imports that did not end. */
      const swept = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
        yield* Leftovers.sweepNames(directory, names, { temporary: isOldTemporary })
        for (const name of names) {
          const id = lockName.exec(name)?.[1]
          if (id === undefined) continue
          yield* Effect.gen(function* () {
            const file = path.join(directory, name)
            if (name !== `${id}.lock`) return yield* FileLock.sweep(directory, name, `${id}.lock`)
            if (!(yield* FileLock.isGone(file)) || (yield* FileLock.tryHold(file)) !== undefined) return
            if (yield* fs.exists(logFile(id))) return yield* Leftovers.sweep(blobFolderOf(logFile(id)))
            yield* fs.remove(titleFile(id), { force: true })
            yield* fs.remove(blobFolderOf(logFile(id)), { recursive: true, force: true })
          }).pipe(Effect.scoped, Effect.ignore)
        }
      }, here)

      /** Reads from the byte `from` on until `into` is full or the file at its end; what was read, in place. */
      const readInto = Effect.fnUntraced(function* (
        handle: FileSystem.File,
        into: Buffer,
        from: number
      ): Effect.fn.Return<Buffer, PlatformError.PlatformError> {
        let size = 0
        while (size < into.length) {
          const read = yield* handle.read(into.subarray(size), { position: BigInt(from + size) })
          if (read === 0) break
          size += Number(read)
        }
        return into.subarray(0, size)
      })

      /** The bytes from `from` to `to`, or to the end of the file. */
      const bytesAt = (handle: FileSystem.File, from: number, to: number) =>
        Effect.suspend(() => readInto(handle, Buffer.allocUnsafeSlow(to - from), from))

      const fetch = Effect.fnUntraced(function* (
        id: string,
        blobs: Blobs,
        line: ReadLine
      ): Effect.fn.Return<SessionEvent, SessionStoreError> {
        const texts = new Map<string, string>()
        for (const [key, note] of line.spilled) {
          const bytes = yield* blobs
            .get(note.hash)
            .pipe(Effect.mapError((error) => describeBlob(id, line.number, error)))
          texts.set(key, Bytes.decode(bytes).text)
        }
        const event = filled(line, texts)
        return event._tag === "Failure" ? yield* corrupt(id, line.number, event.failure) : event.success
      })

      /** The bytes of a file, in one buffer for all: many large ones keep the garbage collector busy. */
      const fromFile = (handle: FileSystem.File): Source => {
        let buffer: Buffer | undefined
        return (from, to) =>
          Effect.suspend(() => {
            const wanted = Math.min(chunkBytes, to - from)
            if (buffer === undefined || buffer.length < wanted) buffer = Buffer.allocUnsafeSlow(wanted)
            return readInto(handle, buffer.subarray(0, to - from), from)
          })
      }

      /** Bytes that were read before. */
      const fromMemory =
        (bytes: Buffer): Source =>
        (from, to) =>
          Effect.as(Effect.yieldNow, bytes.subarray(from, Math.min(to, from + chunkBytes)))

      /** Reads the lines from `from` to `to`, or to the end of the source, a chunk at a time; how many bytes there were. */
      const scan = Effect.fnUntraced(function* (
        id: string,
        source: Source,
        blobs: Blobs,
        reader: LogReader,
        { from, to }: Span,
        take: (event: SessionEvent, line: ReadLine) => SessionStoreError | undefined
      ): Effect.fn.Return<number, PlatformError.PlatformError | SessionStoreError> {
        let at = from
        while (at < to) {
          const chunk = yield* source(at, to)
          if (chunk.length === 0) break
          at += chunk.length
          for (const line of reader.push(chunk)) {
            const event = line.spilled.size === 0 ? line.event : yield* fetch(id, blobs, line)
            const refused = take(event, line)
            if (refused !== undefined) return yield* refused
          }
          if (reader.problem !== undefined) break
        }
        reader.end()
        if (reader.problem !== undefined) return yield* describe(id, reader.problem.line, reader.problem.problem)
        return at - from
      })

      /** Folds the log, line by line, up to `to` or to its end. Changes nothing. */
      const readWhole = Effect.fnUntraced(function* (
        id: string,
        blobs: Blobs,
        source: Source,
        to = Number.MAX_SAFE_INTEGER
      ): Effect.fn.Return<ReadLog, PlatformError.PlatformError | SessionStoreError> {
        const reader = new LogReader(0)
        const lines = new LogLines()
        let session = emptySession
        const size = yield* scan(id, source, blobs, reader, { from: 0, to }, (event, line) => {
          if (session.started === undefined && (event._tag !== "Started" || line.number > 1)) return headless(id)
          session = step(session, event)
          lines.add(event, line.from, line.to)
          return undefined
        })
        if (session.started === undefined) return yield* headless(id)
        return { session, lines, complete: true, good: reader.good, torn: size - reader.good }
      })

      /** The whole line that the byte at `at` belongs to; undefined where it has no end. */
      const lineAround = Effect.fnUntraced(function* (handle: FileSystem.File, at: number, size: number) {
        let from = at
        while (from > 0) {
          const start = Math.max(0, from - tailBytes)
          const found = (yield* bytesAt(handle, start, from)).lastIndexOf(newline)
          from = found < 0 ? start : start + found + 1
          if (found >= 0) break
        }
        for (let to = at; to < size;) {
          const bytes = yield* bytesAt(handle, to, Math.min(size, to + tailBytes))
          const found = bytes.indexOf(newline)
          if (found >= 0) return { from, to: to + found + 1 }
          if (bytes.length === 0) break
          to += bytes.length
        }
        return undefined
      })

      /** The last line with a checkpoint, looked for from the end of the log; or all its bytes, if there is none. */
      const lastCheckpoint = Effect.fnUntraced(function* (
        handle: FileSystem.File,
        size: number
      ): Effect.fn.Return<Found | undefined, PlatformError.PlatformError> {
        // Filled from its end, and only as far as one has to look.
        const all = size <= heldBytes ? Buffer.allocUnsafeSlow(size) : undefined
        const window = all ?? Buffer.allocUnsafeSlow(chunkBytes + mark.length)
        let width = tailBytes
        for (let end = size; end > 0;) {
          const from = Math.max(0, end - width)
          // One that begins before `end` may end after it.
          const upTo = Math.min(size, end + mark.length - 1)
          const at = all === undefined ? 0 : from
          const wanted = (all === undefined ? upTo : end) - from
          const read = yield* readInto(handle, window.subarray(at, at + wanted), from)
          // Somebody made it shorter meanwhile.
          if (read.length < wanted) return undefined
          const bytes = window.subarray(at, at + upTo - from)
          for (let found = bytes.lastIndexOf(mark); found >= 0;) {
            const line = yield* lineAround(handle, from + found, size)
            if (line !== undefined) {
              const [own] = new LogReader(line.from).push(yield* bytesAt(handle, line.from, line.to))
              const checkpoint = decodeCheckpoint(own?.checkpoint)
              if (checkpoint !== undefined) return { checkpoint, line }
            }
            found = found === 0 ? -1 : bytes.lastIndexOf(mark, found - 1)
          }
          end = from
          width = Math.min(width * 2, chunkBytes)
        }
        return all
      })

      /** What the model sees, read from a checkpoint on; undefined where that cannot be used. */
      const readView = Effect.fnUntraced(function* (
        id: string,
        blobs: Blobs,
        source: Source,
        size: number,
        { checkpoint, line }: CheckpointLine
      ): Effect.fn.Return<ReadLog | undefined, PlatformError.PlatformError | SessionStoreError> {
        const lines = new LogLines()
        const events: Array<SessionEvent> = []
        let version: number | undefined
        for (const [from, to] of checkpoint.ranges) {
          const reader = new LogReader(from, version)
          yield* scan(id, source, blobs, reader, { from, to }, (event, read) => {
            events.push(event)
            lines.add(event, read.from, read.to)
            return undefined
          })
          // Half a line, or one that is none: these are not the ranges of this log.
          if (reader.good !== to) return undefined
          version = reader.version
        }
        let session: Session | undefined
        let isUsable = true
        const reader = new LogReader(line.from, version)
        const tail = yield* scan(id, source, blobs, reader, { from: line.from, to: size }, (event, read) => {
          if (read.from === line.from) {
            lines.add(event, read.from, read.to)
            session = restored(checkpoint, [...events, event])
          } else if (session !== undefined) {
            // Without a checkpoint of its own it may need what was not read.
            isUsable &&= event._tag !== "Undone" && event._tag !== "Redone"
            lines.add(event, read.from, read.to)
            session = step(session, event)
          }
          return undefined
        })
        return session === undefined || !isUsable
          ? undefined
          : { session, lines, complete: false, good: reader.good, torn: line.from + tail - reader.good }
      })

      /** What has to be read and no more. What is wrong is told by reading all, with the line it is in. */
      const read = Effect.fnUntraced(function* (
        id: string,
        blobs: Blobs
      ): Effect.fn.Return<ReadLog, PlatformError.PlatformError | SessionStoreError, Scope.Scope> {
        const handle = yield* fs.open(logFile(id), { flag: "r" })
        const size = Number((yield* handle.stat).size)
        const found = yield* lastCheckpoint(handle, size)
        const source = fromFile(handle)
        if (found instanceof Uint8Array) return yield* readWhole(id, blobs, fromMemory(found))
        const view =
          found === undefined
            ? undefined
            : yield* readView(id, blobs, source, size, found).pipe(Effect.catchIf(isUnreadable, () => Effect.undefined))
        return view ?? (yield* readWhole(id, blobs, source))
      }, Effect.scoped)

      /** Stores the large parts of an event. */
      const spill = Effect.fnUntraced(function* (
        blobs: Blobs,
        event: SessionEvent
      ): Effect.fn.Return<ReadonlyMap<string, Spilled>, SessionStoreError> {
        const spilled = new Map<string, Spilled>()
        for (const { form, key, text } of spillable(event, spillBytes)) {
          const bytes = Bytes.encode(text)
          // Escaped bytes that happen to stand side by side as valid UTF-8 would come back as a character.
          if (!text.isWellFormed() && Bytes.decode(bytes).text !== text) continue
          const hash = yield* blobs
            .put(bytes)
            .pipe(Effect.mapError((error) => refusal("append", `${failing["append"]}: ${error.message}`, error)))
          spilled.set(key, { hash, size: bytes.length, form })
        }
        return spilled
      })

      /** The writer of a log that is `size` bytes long and of which this is known, until the scope closes. */
      const writer = Effect.fnUntraced(function* (
        id: string,
        blobs: Blobs,
        size: number,
        beginning: Known
      ): Effect.fn.Return<SessionLog, PlatformError.PlatformError, Scope.Scope> {
        const file = logFile(id)
        const handle = yield* fs.open(file, { flag: "a", mode: 0o600 })
        const { ino } = yield* handle.stat
        // Appends happen in the order in which they were asked for; closing waits for a commit, not for a preparation.
        const turn = yield* Semaphore.make(1)
        const commit = yield* Semaphore.make(1)
        let offset = size
        let known = beginning
        let hasBlobs = false
        let refused: string | undefined

        yield* Effect.addFinalizer(() =>
          Effect.suspend(() => {
            refused = `session ${id} was closed; open it again`
            return commit.withPermit(Effect.void)
          })
        )

        const restore = Effect.suspend(() => handle.truncate(offset)).pipe(
          Effect.andThen(handle.sync),
          Effect.catch(() =>
            Effect.sync(() => {
              refused = `session ${id} could not be written, and what was half written could not be taken back; open it again`
            })
          )
        )

        /** Everything the log says by now. */
        const whole = Effect.gen(function* () {
          const expected = offset
          const log = yield* fs.open(file, { flag: "r" })
          const found = yield* readWhole(id, blobs, fromFile(log), expected)
          return found.good === expected
            ? found
            : yield* refuse(new SessionChanged({ id, expected, found: found.good + found.torn }))
        }).pipe(Effect.scoped)

        /** Before a step back: to something that was not read, if so little was. */
        const informed = Effect.fnUntraced(function* (event: SessionEvent) {
          const { complete, session } = known
          const lacks =
            (event._tag === "Undone" && !canUndo(session.conversation)) ||
            (event._tag === "Redone" && !canRedo(session.conversation))
          if (!complete && lacks) known = yield* whole
          return known
        })

        const write = (line: Uint8Array, event: SessionEvent, after: Session) =>
          Effect.suspend(() => (refused === undefined ? Effect.void : Effect.fail(refusal("append", refused)))).pipe(
            Effect.andThen(
              handle.writeAll(line).pipe(
                Effect.andThen(handle.sync),
                Effect.onError(() => restore)
              )
            ),
            Effect.andThen(
              Effect.sync(() => {
                known.lines.add(event, offset, offset + line.length)
                known = { ...known, session: after }
                offset += line.length
              })
            ),
            Effect.uninterruptible,
            commit.withPermit
          )

        const unchanged = fs.stat(file).pipe(
          Effect.map((info) => ({
            found: Number(info.size),
            same: Option.getOrUndefined(info.ino) === Option.getOrUndefined(ino)
          })),
          Effect.catchIf(isNotFound, () => Effect.succeed({ found: 0, same: false })),
          Effect.flatMap(({ found, same }) =>
            same && found === offset
              ? Effect.void
              : Effect.fail(refuse(new SessionChanged({ id, expected: offset, found })))
          )
        )

        return {
          id,
          append: Effect.fn("SessionLog.append")(
            function* (event: SessionEvent) {
              if (refused !== undefined) return yield* refusal("append", refused)
              const { lines, session } = yield* informed(event)
              const after = step(session, event)
              const checkpoint = replacesView(event) ? lines.checkpoint(after, event) : undefined
              const spilled = yield* spill(blobs, event)
              if (spilled.size > 0 && !hasBlobs) {
                // The first of them made their folder, and its name has to be on disk like theirs.
                yield* syncDirectory
                hasBlobs = true
              }
              yield* unchanged
              yield* write(Bytes.encode(`${encodeLine(event, spilled, checkpoint)}\n`), event, after)
            },
            Effect.mapError(unavailable("append", id)),
            (append) => turn.withPermit(append)
          ),
          blobs,
          whole: whole.pipe(
            Effect.map(({ session }) => session),
            Effect.mapError(unavailable("read", id)),
            Effect.withSpan("SessionLog.whole")
          )
        }
      })

      /** Holds the lock of an id under which there is no session. */
      const claim = Effect.fnUntraced(function* (id: string) {
        // Asked twice: before the lock, because of a session somebody writes it is more helpful to say that it exists.
        const vacant = fs
          .exists(logFile(id))
          .pipe(Effect.flatMap((there) => (there ? Effect.fail(refuse(new SessionExists({ id }))) : Effect.void)))
        yield* vacant
        yield* fs.makeDirectory(directory, { recursive: true, mode: 0o700 })
        yield* lock(id)
        yield* vacant
      })

      const create = Effect.fnUntraced(function* (started: Started, id: string) {
        const file = logFile(id)
        const temporary = path.join(directory, yield* here(freshTemporaryName))
        const line = `${encodeLine(started)}\n`
        yield* claim(id)
        const blobs = yield* blobsOf(id)
        const lines = new LogLines()
        const size = Bytes.encode(line).length
        lines.add(started, 0, size)
        const known = { session: step(emptySession, started), lines, complete: true }
        return yield* Effect.uninterruptibleMask((restore) =>
          restore(writeWhole(temporary, line)).pipe(
            // A session that was deleted may have left its name; this one has none yet.
            Effect.andThen(fs.remove(titleFile(id), { force: true })),
            Effect.andThen(fs.rename(temporary, file)),
            Effect.andThen(syncDirectory),
            Effect.andThen(writer(id, blobs, size, known)),
            Effect.onError(() => Effect.andThen(discard(temporary), discard(file)))
          )
        )
      })

      const open = Effect.fnUntraced(function* (id: string) {
        const file = logFile(id)
        if (!(yield* fs.exists(file))) return yield* refuse(new SessionNotFound({ id }))
        // Reading a pipe would not end.
        if ((yield* fs.stat(file)).type !== "File") return yield* refusal("open", odd(id))
        yield* lock(id)
        const blobs = yield* blobsOf(id)
        const found = yield* read(id, blobs)
        const { complete, good, session, torn } = found
        const cut = Effect.scoped(
          Effect.flatMap(fs.open(file, { flag: "r+" }), (handle) => Effect.andThen(handle.truncate(good), handle.sync))
        )
        if (torn > 0) yield* Effect.uninterruptible(cut)
        return { session, complete, torn, log: yield* writer(id, blobs, good, found) } satisfies OpenSession
      })

      const names = fs.readDirectory(directory).pipe(
        Effect.catchIf(isNotFound, () => Effect.succeed([])),
        Effect.tap(swept)
      )

      /** The beginning of a file; undefined where it is gone. */
      const beginning = (file: string, bytes: number) =>
        Effect.scoped(Effect.flatMap(fs.open(file, { flag: "r" }), (handle) => bytesAt(handle, 0, bytes))).pipe(
          Effect.catchIf(isNotFound, () => Effect.void)
        )

      /** What the first lines of a log say, and why it cannot be opened, as far as they tell; undefined where it is gone. */
      const headOfLog = Effect.fnUntraced(function* (id: string, size: number) {
        const short = yield* headWithin(id, size, shortHeadBytes)
        if (short?.firstPrompt !== undefined || short?.problem !== undefined || size <= shortHeadBytes) return short
        return yield* headWithin(id, size, headBytes)
      })

      const headWithin = Effect.fnUntraced(function* (id: string, size: number, most: number) {
        const bytes = yield* beginning(logFile(id), Math.min(size, most))
        if (bytes === undefined) return undefined
        const reader = new LogReader(0)
        const read = reader.push(bytes)
        const head = headOf(read.map(({ event }) => event))
        const { problem } = reader
        if (problem !== undefined) return { ...head, problem: describe(id, problem.line, problem.problem).message }
        // A first line that is longer than what was read is not known to be wrong.
        const isHeadless = head.startedAt === undefined && (read.length > 0 || size <= most)
        return { ...head, problem: isHeadless ? headless(id).message : undefined }
      })

      const holderOf = (id: string) => here(FileLock.holderOf(lockFile(id))).pipe(Effect.orElseSucceed(() => undefined))

      /** What a list shows of a log. */
      const logRow = (id: string, { bytes, isFile, problem }: SessionCatalogue.Stamp) => {
        const unread = (why: string) => ({ ...headOf([]), problem: why })
        return isFile
          ? Effect.catch(headOfLog(id, bytes), (error) => Effect.succeed(unread(error.message)))
          : Effect.succeed(unread(problem ?? odd(id)))
      }

      const titleRow = (id: string) =>
        beginning(titleFile(id), titleBytes).pipe(
          Effect.map((bytes) => (bytes === undefined ? undefined : titleOf(Bytes.decode(bytes).text) || undefined)),
          Effect.orElseSucceed(() => undefined)
        )

      const catalogue = yield* SessionCatalogue.make(directory, { log: logRow, title: titleRow })

      /** The rows of a list, without those of sessions that are gone by now. `there` are the names in the folder. */
      const rows = Effect.fnUntraced(function* (
        ids: ReadonlyArray<string>,
        there: ReadonlySet<string>
      ): Effect.fn.Return<ReadonlyArray<SessionSummary>, PlatformError.PlatformError> {
        const listed = yield* catalogue.list(ids, there)
        const held = listed.filter(({ id }) => there.has(`${id}.lock`))
        const holders = new Map(
          yield* Effect.forEach(held, ({ id }) => Effect.map(holderOf(id), (holder) => [id, holder] as const), {
            concurrency: listConcurrency
          })
        )
        return listed.map((row) => {
          const holder = holders.get(row.id)
          return {
            ...row,
            startedAt: row.startedAt ?? row.updatedAt,
            holder: holder === undefined ? undefined : { pid: holder.pid, since: holder.since }
          }
        })
      })

      const writeTitle = Effect.fnUntraced(function* (id: string, title: string) {
        const temporary = path.join(directory, yield* here(freshTemporaryName))
        yield* Effect.uninterruptibleMask((restore) =>
          restore(writeWhole(temporary, `${title}\n`)).pipe(
            Effect.andThen(fs.rename(temporary, titleFile(id))),
            Effect.onError(() => discard(temporary)),
            Effect.andThen(syncDirectory)
          )
        )
      })

      /** Whether anything is left of a session: also of one whose removal stopped half-way. */
      const remains = Effect.fnUntraced(function* (id: string) {
        for (const file of [logFile(id), titleFile(id), blobFolderOf(logFile(id))]) {
          if (yield* fs.exists(file)) return true
        }
        return false
      })

      const remove = Effect.fnUntraced(function* (id: string) {
        yield* lock(id)
        // The log goes first, and for good: without it, nothing of the rest is a session.
        yield* Effect.uninterruptible(Effect.andThen(fs.remove(logFile(id), { force: true }), syncDirectory))
        yield* fs.remove(titleFile(id), { force: true })
        yield* fs.remove(blobFolderOf(logFile(id)), { recursive: true, force: true })
        yield* catalogue.forget(id)
      }, Effect.scoped)

      return {
        create: Effect.fn("SessionStore.create")(
          function* (started) {
            const id = started.session
            if (!isId(id)) {
              return yield* refusal("create", "a session id is 1 to 64 letters, digits, hyphens or underscores")
            }
            return yield* allOrNothing(create(started, id))
          },
          Effect.mapError(unavailable("create"))
        ),
        claim: Effect.fn("SessionStore.claim")(
          function* (id) {
            if (!isId(id)) {
              return yield* refusal("create", "a session id is 1 to 64 letters, digits, hyphens or underscores")
            }
            yield* allOrNothing(claim(id))
          },
          Effect.mapError(unavailable("create"))
        ),
        open: Effect.fn("SessionStore.open")(
          function* (id) {
            if (!isId(id)) return yield* refuse(new SessionNotFound({ id }))
            return yield* allOrNothing(open(id))
          },
          Effect.mapError(unavailable("open"))
        ),
        list: names.pipe(
          Effect.map((found) => idsOf(found)),
          Effect.mapError(unavailable("list")),
          Effect.withSpan("SessionStore.list")
        ),
        summaries: names.pipe(
          Effect.flatMap((found) => {
            return rows(idsOf(found), new Set(found))
          }),
          Effect.map((found) => found.toSorted((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1))),
          Effect.mapError(unavailable("list")),
          Effect.withSpan("SessionStore.summaries")
        ),
        summary: Effect.fn("SessionStore.summary")(
          function* (id) {
            const there = new Set([`${id}.title`, `${id}.lock`])
            const [found] = isId(id) ? yield* rows([id], there) : []
            return found ?? (yield* refuse(new SessionNotFound({ id })))
          },
          Effect.mapError(unavailable("list"))
        ),
        rename: Effect.fn("SessionStore.rename")(
          function* (id, title) {
            if (!isId(id) || !(yield* fs.exists(logFile(id)))) return yield* refuse(new SessionNotFound({ id }))
            yield* writeTitle(id, titleOf(title))
            yield* catalogue.forget(id)
          },
          Effect.mapError(unavailable("rename"))
        ),
        remove: Effect.fn("SessionStore.remove")(
          function* (id) {
            if (!isId(id) || !(yield* remains(id))) return yield* refuse(new SessionNotFound({ id }))
            yield* remove(id)
          },
          Effect.mapError(unavailable("remove"))
        )
      }
    })
  )
