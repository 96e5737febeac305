/**
 * Locks between processes, as files: the process that creates the file has the lock, and the file names that process. The lock of an
 * ended process is broken by the next process that tries to take it. Reading what a lock protects needs no lock, as files are replaced
 * whole.
 *
 * Only one process breaks a lock: before it removes the file, it takes a second lock, named after the content of the dead lock, and
 * checks again. So no process removes a lock that another one took meanwhile. If it is killed while it does so, its own lock is broken
 * in the same way.
 */

import {
  Clock,
  Context,
  Effect,
  FileSystem,
  Option,
  Path,
  PlatformError,
  Random,
  Schema,
  type Scope,
  Semaphore
} from "effect"
import { ProcessOwner } from "../../domain/platform/ProcessOwner.ts"
import { encode } from "../../domain/text/Bytes.ts"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "./AtomicFile.ts"
import { newTemporaryName, Processes, processStatus } from "./ProcessIdentity.ts"

/** The content of a lock file. */
const Lock = Schema.Struct({
  ...ProcessOwner.fields,
  /** When it was taken, in milliseconds since 1970. */
  since: Schema.Finite,
  /** Unique among locks. */
  token: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[a-z0-9]{1,40}$/)))
})
const LockJson = fromJson(Lock)
const decode = Schema.decodeOption(LockJson)

/** The process that has a lock. */
export interface Holder {
  /** 0 when the lock does not name it yet. */
  readonly pid: number
  /** In milliseconds since 1970. */
  readonly since: number
}

/** An empty lock file is being written right now, unless it is older than this. */
const unreadableLockAgeMillis = 10_000
/** This process cannot tell whether a process on another machine or in another container runs: its lock counts this long. */
const foreignLockAgeMillis = 10 * 60_000
/** How often a long-held lock is renewed. */
const renewalInterval = "1 minute"
/** The longest wait for a lock that is held while a file is written. */
const maxWaitMillis = 30_000
/** The shortest and the longest pause between two attempts: random, so that processes do not wait in step. */
const retryPauseMillis = [2, 25] as const
/** Other processes that break the same lock are done within this many checks. */
const maxLooks = 1_000
/** Maximum number of processes that were killed one after another while each broke the lock of the one before. */
const maxBreakDepth = 16

/** Another process is changing a file, and did not finish in time. */
export class FileLocked extends Schema.TaggedError<FileLocked>()("FileLocked", {
  file: Schema.String,
  pid: Schema.Int,
  /** Milliseconds since 1970. */
  since: Schema.Finite
}) {
  override get message() {
    const who = this.pid === 0 ? "another process" : `process ${this.pid}`
    return `${quotedPath(this.file)} is being changed by ${who}; end it or wait for it, then try again`
  }
}

/** Why a file could not be changed under its lock, as part of a sentence. */
export const lockErrorText = (error: FileLocked | PlatformError.PlatformError): string =>
  error._tag === "FileLocked" ? error.message : diskErrorText(error)

type Files = FileSystem.FileSystem | Path.Path

type LockState =
  | { readonly _tag: "Free" }
  | { readonly _tag: "Held"; readonly holder: Holder }
  /** `isSure`: its process has ended; otherwise it only expired. */
  | { readonly _tag: "Dead"; readonly text: string; readonly isSure: boolean }

const notALock = (lock: string) =>
  PlatformError.systemError({
    _tag: "BadResource",
    module: "FileSystem",
    method: "open",
    pathOrDescriptor: lock,
    description: `${quotedPath(lock)} is not a lock of this program; remove it`
  })

/** Reads a lock. It is never a link, and reading a pipe would not end. */
const readLock = Effect.fnUntraced(function* (lock: string) {
  const fs = yield* FileSystem.FileSystem
  const { type } = yield* fs.lstat(lock)
  if (type === "File") return yield* fs.readFileString(lock)
  return yield* notALock(lock)
})

const inspectLock = Effect.fnUntraced(
  function* (lock: string): Effect.fn.Return<LockState, PlatformError.PlatformError, Files> {
    const fs = yield* FileSystem.FileSystem
    const text = yield* readLock(lock)
    const owner = decode(text)
    const standing = Option.isNone(owner) ? "unknown" : yield* processStatus(owner.value)
    if (Option.isSome(owner) && standing === "running") return { _tag: "Held", holder: owner.value }
    if (standing === "gone") return { _tag: "Dead", text, isSure: true }
    const { mtime } = yield* fs.stat(lock)
    const made = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
    const age = (yield* Clock.currentTimeMillis) - made
    return age > (Option.isSome(owner) ? foreignLockAgeMillis : unreadableLockAgeMillis)
      ? { _tag: "Dead", text, isSure: false }
      : { _tag: "Held", holder: Option.getOrElse(owner, () => ({ pid: 0, since: made })) }
  },
  Effect.catchIf(isNotFound, () => Effect.succeed<LockState>({ _tag: "Free" }))
)

const isThereAlready = ({ reason }: PlatformError.PlatformError) => reason._tag === "AlreadyExists"

/** Creates the lock file with this content. Returns false when another process has the lock. */
const createLock = Effect.fnUntraced(function* (
  lock: string,
  text: string
): Effect.fn.Return<boolean, PlatformError.PlatformError, Files> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const temporary = path.join(path.dirname(lock), yield* newTemporaryName)
  const write = (file: string) =>
    Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* fs.open(file, { flag: "wx", mode: 0o600 })
        yield* handle.writeAll(encode(text)).pipe(Effect.onError(() => AtomicFile.discard(file)))
      })
    )
  const unlessExists = <R>(made: Effect.Effect<void, PlatformError.PlatformError, R>) =>
    made.pipe(
      Effect.as(true),
      // A network disk that repeats a request may report the process's own file as existing.
      Effect.catchIf(isThereAlready, () =>
        readLock(lock).pipe(
          Effect.map((content) => content === text),
          Effect.catchIf(isNotFound, () => Effect.succeed(false))
        )
      )
    )
  // Written first and then linked into place: a lock exists whole or not at all, whenever its process is killed.
  return yield* Effect.acquireUseRelease(
    write(temporary),
    () =>
      unlessExists(fs.link(temporary, lock)).pipe(
        // Some file systems have no links. A process that took the empty lock for an abandoned one has removed it by now.
        Effect.catch(() =>
          unlessExists(write(lock)).pipe(
            Effect.flatMap((made) =>
              made ? Effect.map(fs.readFileString(lock), (content) => content === text) : Effect.succeed(false)
            )
          )
        )
      ),
    () => AtomicFile.discard(temporary)
  )
}, Effect.uninterruptible)

/** Removes a lock, if it still has this content. */
const release = (lock: string, text: string) =>
  FileSystem.FileSystem.use((fs) =>
    fs.readFileString(lock).pipe(
      Effect.flatMap((content) => (content === text ? fs.remove(lock) : Effect.void)),
      Effect.catchIf(isNotFound, () => Effect.void),
      Effect.retry({ times: 2 }),
      Effect.timeoutOption(AtomicFile.finalizerDeadline),
      Effect.ignore({ log: "Warn" })
    )
  )

/** Renews a lock repeatedly, for machines that cannot tell whether its process runs. */
const keepRenewed = Effect.fnUntraced(function* (lock: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  const renew = Effect.gen(function* () {
    if ((yield* readLock(lock)) !== text) return
    const now = (yield* Clock.currentTimeMillis) / 1_000
    yield* fs.utimes(lock, now, now)
  })
  for (;;) {
    yield* Effect.sleep(renewalInterval)
    yield* Effect.ignore(renew)
  }
}, Effect.interruptible)

/** The lock under which a lock with this content is broken. */
const breakerLockOf = (lock: string, text: string): string => {
  const owner = Option.getOrUndefined(decode(text))
  const token = owner === undefined ? "0" : (owner.token ?? `${owner.pid}n${Math.abs(Math.trunc(owner.since))}`)
  return `${lock}.${token}`
}

/**
 * Tries once to take a lock until the scope closes. Returns its holder, or undefined when the lock was taken. `base` is the lock that
 * callers ask for: the locks for breaking it are named after it. Checking can be interrupted, as a disk may hang; taking cannot.
 */
const attemptLock = (
  lock: string,
  base: string,
  isLong = false,
  depth = 0
): Effect.Effect<Holder | undefined, PlatformError.PlatformError, Files | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      // Locks written by hand may name one another.
      if (depth > maxBreakDepth) return yield* notALock(lock)
      const fs = yield* FileSystem.FileSystem
      const { self, unique } = yield* Processes
      const since = yield* Clock.currentTimeMillis
      const text = JSON.stringify({ ...(yield* self), since, token: yield* unique })
      let holder: Holder = { pid: 0, since }
      for (let turn = 0; turn < maxLooks; turn += 1) {
        const state = yield* restore(inspectLock(lock))
        if (state._tag === "Held") return state.holder
        if (state._tag === "Free") {
          if (!(yield* createLock(lock, text))) continue
          yield* Effect.addFinalizer(() => release(lock, text))
          if (isLong) yield* Effect.forkScoped(keepRenewed(lock, text))
          return undefined
        }
        const broken = Effect.gen(function* () {
          const busy = yield* attemptLock(breakerLockOf(base, state.text), base, false, depth + 1)
          if (busy !== undefined) return busy
          const now = yield* inspectLock(lock)
          if (now._tag === "Dead" && now.text === state.text) {
            yield* Effect.uninterruptible(fs.remove(lock, { force: true }))
          }
          return undefined
        })
        holder = (yield* Effect.scoped(restore(broken))) ?? holder
      }
      return holder
    })
  )

/** Tries to take a lock until the scope closes. Returns its holder, or undefined when the lock was taken. Its folder must exist. */
export const tryAcquire = (lock: string) => attemptLock(lock, lock)

/** Like `tryAcquire`, for a lock that is held for longer than a write takes: it is renewed while the scope is open. */
export const tryAcquireRenewed = (lock: string) => attemptLock(lock, lock, true)

/** The process that has a lock; undefined when none has it or that process has ended. */
export const holderOf = (lock: string): Effect.Effect<Holder | undefined, PlatformError.PlatformError, Files> =>
  Effect.map(inspectLock(lock), (state) => (state._tag === "Held" ? state.holder : undefined))

/** Whether the process of a lock has certainly ended. */
export const isAbandoned = (lock: string): Effect.Effect<boolean, PlatformError.PlatformError, Files> =>
  Effect.map(inspectLock(lock), (state) => state._tag === "Dead" && state.isSure)

/**
 * Removes what ended processes left of the lock `base`: the file `name` is that lock or one under which it was being broken. Any
 * other file stays, and so does a lock without an owner. Never fails.
 */
export const sweep = Effect.fnUntraced(function* (
  folder: string,
  name: string,
  base: string
): Effect.fn.Return<void, never, Files> {
  const path = yield* Path.Path
  if (name !== base && !(name.startsWith(`${base}.`) && /^[a-z0-9]{1,60}$/.test(name.slice(base.length + 1)))) return
  const lock = path.join(folder, name)
  // Taking it breaks it.
  yield* Effect.ignore(
    Effect.scoped(
      Effect.flatMap(isAbandoned(lock), (gone) =>
        gone ? attemptLock(lock, path.join(folder, base)) : Effect.undefined
      )
    )
  )
})

/** The path of the lock of a file, beside that file. */
export const lockFileOf = (path: Path.Path, file: string): string =>
  path.join(path.dirname(file), `.${path.basename(file)}.lock`)

/** A file that one process at a time changes, and its lock. */
interface LockedFile {
  /** The file, as error messages name it. */
  readonly file: string
  readonly lock: string
}

/** The turn of one fiber of this process at a lock, and the number of fibers that want it. */
interface Turn {
  readonly semaphore: Semaphore.Semaphore
  fibers: number
}

/** The turns at locks. Fibers of this process wait in a queue instead of retrying. */
const Turns = Context.Reference("palimpsest/services/platform/FileLock/Turns", {
  defaultValue: () => new Map<string, Turn>()
})

/** Waits for the turn of this fiber among those of this process, and keeps it until the scope closes. */
const awaitTurn = Effect.fnUntraced(function* (lock: string) {
  const turns = yield* Turns
  const turn = turns.get(lock) ?? { semaphore: Semaphore.makeUnsafe(1), fibers: 0 }
  const join = Effect.sync(() => {
    turn.fibers += 1
    turns.set(lock, turn)
  })
  const leave = Effect.sync(() => {
    turn.fibers -= 1
    if (turn.fibers === 0) turns.delete(lock)
  })
  yield* Effect.acquireRelease(join, () => leave)
  yield* turn.semaphore.takeScoped(1)
})

/**
 * Takes the lock of a file until the scope closes. Waits a bounded time for another process, and can be interrupted meanwhile.
 * Creates the folder of the lock (0700).
 */
export const acquire = Effect.fnUntraced(function* ({
  file,
  lock
}: LockedFile): Effect.fn.Return<void, FileLocked | PlatformError.PlatformError, Files | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Effect.uninterruptible(fs.makeDirectory(path.dirname(lock), { recursive: true, mode: 0o700 }))
  const end = (yield* Clock.currentTimeMillis) + maxWaitMillis
  yield* awaitTurn(lock)
  for (;;) {
    const holder = yield* tryAcquire(lock)
    if (holder === undefined) return
    if ((yield* Clock.currentTimeMillis) >= end) return yield* new FileLocked({ file, ...holder })
    yield* Effect.flatMap(Random.nextIntBetween(...retryPauseMillis), (millis) => Effect.sleep(millis))
  }
})

/** Runs `work`, which changes a file, with the lock of that file (see `acquire`). `work` is not interrupted. */
export const withLock = <A, E, R>(place: LockedFile, work: Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.andThen(acquire(place), Effect.uninterruptible(work)))
