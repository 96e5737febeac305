import {
  Clock,
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
import { kill, pid, platform } from "node:process"
import * as Bytes from "../domain/Bytes.ts"
import { type DecodedLine, decodeLine, encodeLine, filled, type LineProblem, spillable } from "../domain/LogFormat.ts"
import { emptySession, type Session, type SessionEvent, spillBytes, type Spilled, step } from "../domain/Session.ts"
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
  SessionTooNew,
  SessionUnavailable
} from "../services/SessionStore.ts"
import { TempStore, type TempStoreError } from "../services/TempStore.ts"

/** Ids come from outside and become file names. */
const isId = Schema.is(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/)))

/** What a lock file says. */
const Owner = Schema.Struct({
  pid: Schema.Int.check(Schema.isGreaterThan(0)),
  /** When that process started, as the kernel counts: another process of the same number started at another time. */
  start: Schema.optionalKey(Schema.String),
  /** When it took the lock, in milliseconds since 1970. */
  since: Schema.Finite
})
type Owner = typeof Owner.Type
const OwnerJson = Schema.fromJsonString(Owner)

const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))

/** Bytes read at once; their lines are decoded before the next are read, so that no slice takes long. */
const chunkBytes = 256 * 1024
const newline = 10

/** A lock file that says nothing is being written right now, unless it is older than this (milliseconds). */
const unreadableLockAge = 10_000

/** A finalizer must not wait for a disk that hangs. */
const finalizerDeadline = "5 seconds"

const refuse = (reason: SessionStoreError["reason"]) => new SessionStoreError({ reason })
const refusal = (operation: string, message: string, cause: unknown = message) =>
  refuse(new SessionUnavailable({ operation, message, cause }))
const unavailable =
  (operation: string) =>
  <E>(error: E | PlatformError.PlatformError): E | SessionStoreError =>
    isPlatformError(error) ? refusal(operation, error.message, error) : error

const isPlatformError = (error: unknown): error is PlatformError.PlatformError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "PlatformError"
const isTagged =
  (tag: PlatformError.SystemErrorTag) =>
  (error: unknown): error is PlatformError.PlatformError =>
    isPlatformError(error) && error.reason._tag === tag
const isNotFound = isTagged("NotFound")

const corrupt = (id: string, line: number, detail: string) => refuse(new SessionCorrupt({ id, line, detail }))

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

/** The start of a process in `/proc/<pid>/stat`: the 22nd field; the second is a name that may hold anything. */
const startField = (stat: string): string | undefined =>
  stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .at(19)

/** Whether a process of this number runs. One that we may not signal does. */
const isRunning = (number: number): Effect.Effect<boolean> =>
  Effect.try({
    try: () => kill(number, 0),
    catch: (cause) => typeof cause === "object" && cause !== null && "code" in cause && cause.code === "EPERM"
  }).pipe(Effect.catch((forbidden) => Effect.succeed(forbidden)))

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

interface ReadLog {
  readonly session: Session
  /** Bytes up to the end of the last whole line. */
  readonly good: number
  /** Bytes after it. */
  readonly torn: number
}

/**
 * Sessions as files of `directory` (mode 0700, made when the first session is): `<id>.jsonl`, one event a line (mode
 * 0600), and `<id>.lock` while somebody writes it. Parts of 8 KiB and more go to the TempStore before their line is
 * written. An append that succeeded is on disk; one that failed or was interrupted left the log as it was, and where even
 * that cannot be restored the log takes no more appends until it is opened again, when half a line is cut off.
 */
export const layer = (
  directory: string
): Layer.Layer<SessionStore, never, FileSystem.FileSystem | Path.Path | TempStore> =>
  Layer.effect(
    SessionStore,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const blobs = yield* TempStore

      const logFile = (id: string) => path.join(directory, `${id}.jsonl`)

      const discard = (file: string) =>
        fs
          .remove(file, { force: true })
          .pipe(Effect.retry({ times: 2 }), Effect.timeoutOption(finalizerDeadline), Effect.ignore({ log: "Warn" }))

      /** Writes a file whole. On failure its content is undefined. */
      const writeWhole = (file: string, text: string, flag: "w" | "wx") =>
        Effect.scoped(
          Effect.gen(function* () {
            const handle = yield* fs.open(file, { flag, mode: 0o600 })
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

      const startOf = (number: number): Effect.Effect<string | undefined> =>
        fs.readFileString(`/proc/${number}/stat`).pipe(
          Effect.map(startField),
          Effect.orElseSucceed(() => undefined)
        )

      const isAlive = Effect.fnUntraced(function* (owner: Owner): Effect.fn.Return<boolean> {
        if (!(yield* isRunning(owner.pid))) return false
        const start = owner.start === undefined ? undefined : yield* startOf(owner.pid)
        return start === undefined || start === owner.start
      })

      /** Who holds a lock that says `text`; undefined when nobody does any more. */
      const holder = Effect.fnUntraced(function* (
        file: string,
        text: string
      ): Effect.fn.Return<{ readonly pid: number; readonly since: number } | undefined, PlatformError.PlatformError> {
        const owner = Schema.decodeOption(OwnerJson)(text)
        if (Option.isSome(owner)) return (yield* isAlive(owner.value)) ? owner.value : undefined
        const { mtime } = yield* fs.stat(file)
        const made = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
        return (yield* Clock.currentTimeMillis) - made > unreadableLockAge ? undefined : { pid: 0, since: made }
      })

      /** Takes a dead process's lock out of the way, unless somebody else was faster. */
      const takeAway = Effect.fnUntraced(function* (file: string, text: string) {
        const aside = `${file}.${pid}`
        yield* fs.rename(file, aside)
        if ((yield* fs.readFileString(aside)) !== text) yield* Effect.ignore(fs.link(aside, file))
        yield* discard(aside)
      }, Effect.uninterruptible)

      const release = (file: string, text: string) =>
        fs.readFileString(file).pipe(
          Effect.flatMap((found) => (found === text ? fs.remove(file) : Effect.void)),
          Effect.catchIf(isNotFound, () => Effect.void),
          Effect.retry({ times: 2 }),
          Effect.timeoutOption(finalizerDeadline),
          Effect.ignore({ log: "Warn" })
        )

      /** Holds the lock of a session until the scope closes; a lock whose process is dead is taken over. */
      const lock = Effect.fnUntraced(function* (
        id: string
      ): Effect.fn.Return<void, PlatformError.PlatformError | SessionStoreError, Scope.Scope> {
        const file = path.join(directory, `${id}.lock`)
        const start = yield* startOf(pid)
        const since = yield* Clock.currentTimeMillis
        const text = JSON.stringify({ pid, ...(start === undefined ? {} : { start }), since } satisfies Owner)
        const claim = Effect.scoped(
          Effect.gen(function* () {
            const handle = yield* fs.open(file, { flag: "wx", mode: 0o600 })
            yield* handle.writeAll(Bytes.encode(text)).pipe(Effect.onError(() => discard(file)))
            return true
          })
        ).pipe(Effect.catchIf(isTagged("AlreadyExists"), () => Effect.succeed(false)))
        for (;;) {
          const claimed = yield* Effect.acquireRelease(claim, (made) => (made ? release(file, text) : Effect.void))
          if (claimed) return
          // Not found: it was released or taken over between two calls, so the next attempt decides.
          yield* Effect.gen(function* () {
            const found = yield* fs.readFileString(file)
            const owner = yield* holder(file, found)
            if (owner !== undefined) return yield* refuse(new SessionLocked({ id, ...owner }))
            yield* takeAway(file, found)
          }).pipe(Effect.catchIf(isNotFound, () => Effect.void))
        }
      })

      const fetch = Effect.fnUntraced(function* (
        id: string,
        number: number,
        line: DecodedLine
      ): Effect.fn.Return<SessionEvent, SessionStoreError> {
        if (line.spilled.size === 0) return line.event
        const texts = new Map<string, string>()
        for (const [key, note] of line.spilled) {
          const bytes = yield* blobs.get(note.hash).pipe(Effect.mapError((error) => describeBlob(id, number, error)))
          texts.set(key, Bytes.decode(bytes).text)
        }
        const event = filled(line, texts)
        return event._tag === "Failure" ? yield* corrupt(id, number, event.failure) : event.success
      })

      /** Folds the log, line by line. Changes nothing. */
      const read = Effect.fnUntraced(function* (
        id: string
      ): Effect.fn.Return<ReadLog, PlatformError.PlatformError | SessionStoreError, Scope.Scope> {
        const handle = yield* fs.open(logFile(id), { flag: "r" })
        let session = emptySession
        let number = 0
        let size = 0
        let good = 0
        /** The line that is no JSON: torn if it is the last, corrupt if it is not. */
        let broken = 0
        let pieces: Array<Uint8Array> = []

        const takeLine = Effect.fnUntraced(function* (bytes: Uint8Array): Effect.fn.Return<void, SessionStoreError> {
          if (broken > 0) return yield* corrupt(id, broken, "this is not JSON")
          number += 1
          const { text, valid } = Bytes.decode(bytes)
          const value = parse(text)
          if (!valid || value._tag === "Failure") {
            broken = number
            return
          }
          const line = decodeLine(value.success, session.started?.version)
          if (line._tag === "Failure") return yield* describe(id, number, line.failure)
          if (number === 1 && line.success?.event._tag !== "Started") {
            return yield* corrupt(id, 1, "the log does not begin with Started")
          }
          good += bytes.length + 1
          if (line.success !== undefined) session = step(session, yield* fetch(id, number, line.success))
        })

        for (;;) {
          const next = yield* handle.readAlloc(chunkBytes)
          if (Option.isNone(next)) break
          const chunk = next.value
          size += chunk.length
          let from = 0
          for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
            const last = chunk.subarray(from, end)
            yield* takeLine(pieces.length === 0 ? last : Buffer.concat([...pieces, last]))
            pieces = []
            from = end + 1
          }
          if (from < chunk.length) pieces.push(chunk.subarray(from))
        }
        if (broken > 0 && pieces.length > 0) return yield* corrupt(id, broken, "this is not JSON")
        if (session.started === undefined) return yield* corrupt(id, 1, "the log does not begin with Started")
        return { session, good, torn: size - good }
      }, Effect.scoped)

      /** The line of an event, its large parts stored. */
      const prepare = Effect.fnUntraced(function* (
        event: SessionEvent
      ): Effect.fn.Return<Uint8Array, SessionStoreError> {
        const spilled = new Map<string, Spilled>()
        for (const { form, key, text } of spillable(event, spillBytes)) {
          const bytes = Bytes.encode(text)
          // Escaped bytes that happen to stand side by side as valid UTF-8 would come back as a character.
          if (!text.isWellFormed() && Bytes.decode(bytes).text !== text) continue
          const hash = yield* blobs.put(bytes).pipe(Effect.mapError((error) => refusal("append", error.message, error)))
          spilled.set(key, { hash, size: bytes.length, form })
        }
        return Bytes.encode(`${encodeLine(event, spilled)}\n`)
      })

      /** The writer of a log that is `size` bytes long, until the scope closes. */
      const writer = Effect.fnUntraced(function* (
        id: string,
        size: number
      ): Effect.fn.Return<SessionLog, PlatformError.PlatformError, Scope.Scope> {
        const file = logFile(id)
        const handle = yield* fs.open(file, { flag: "a", mode: 0o600 })
        const { ino } = yield* handle.stat
        // Appends happen in the order in which they were asked for; closing waits for a commit, not for a preparation.
        const turn = yield* Semaphore.make(1)
        const commit = yield* Semaphore.make(1)
        let offset = size
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

        const write = (line: Uint8Array) =>
          Effect.suspend(() => (refused === undefined ? Effect.void : Effect.fail(refusal("append", refused)))).pipe(
            Effect.andThen(
              handle.writeAll(line).pipe(
                Effect.andThen(handle.sync),
                Effect.onError(() => restore)
              )
            ),
            Effect.andThen(
              Effect.sync(() => {
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
              const line = yield* prepare(event)
              yield* unchanged
              yield* write(line)
            },
            Effect.mapError(unavailable("append")),
            (append) => turn.withPermit(append)
          )
        }
      })

      const create = Effect.fnUntraced(function* (started: SessionEvent, id: string) {
        const file = logFile(id)
        const temporary = path.join(directory, `${id}.new`)
        const line = `${encodeLine(started)}\n`
        // Asked twice: before the lock, because of a session somebody writes it is more helpful to say that it exists.
        const vacant = fs
          .exists(file)
          .pipe(Effect.flatMap((there) => (there ? Effect.fail(refuse(new SessionExists({ id }))) : Effect.void)))
        yield* vacant
        yield* fs.makeDirectory(directory, { recursive: true, mode: 0o700 })
        yield* lock(id)
        yield* vacant
        return yield* Effect.uninterruptibleMask((restore) =>
          restore(writeWhole(temporary, line, "w")).pipe(
            Effect.andThen(fs.rename(temporary, file)),
            Effect.andThen(syncDirectory),
            Effect.andThen(writer(id, Bytes.encode(line).length)),
            Effect.onError(() => Effect.andThen(discard(temporary), discard(file)))
          )
        )
      })

      const open = Effect.fnUntraced(function* (id: string) {
        const file = logFile(id)
        if (!(yield* fs.exists(file))) return yield* refuse(new SessionNotFound({ id }))
        yield* lock(id)
        const { good, session, torn } = yield* read(id)
        const cut = Effect.scoped(
          Effect.flatMap(fs.open(file, { flag: "r+" }), (handle) => Effect.andThen(handle.truncate(good), handle.sync))
        )
        if (torn > 0) yield* Effect.uninterruptible(cut)
        return { session, torn, log: yield* writer(id, good) } satisfies OpenSession
      })

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
        open: Effect.fn("SessionStore.open")(
          function* (id) {
            if (!isId(id)) return yield* refuse(new SessionNotFound({ id }))
            return yield* allOrNothing(open(id))
          },
          Effect.mapError(unavailable("open"))
        ),
        list: fs.readDirectory(directory).pipe(
          Effect.catchIf(isNotFound, () => Effect.succeed([])),
          Effect.map((names) =>
            names
              .filter((name) => name.endsWith(".jsonl"))
              .map((name) => name.slice(0, -".jsonl".length))
              .filter(isId)
              .sort()
              .reverse()
          ),
          Effect.mapError(unavailable("list")),
          Effect.withSpan("SessionStore.list")
        )
      }
    })
  )
