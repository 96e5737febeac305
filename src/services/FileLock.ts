import { Clock, Effect, FileSystem, Option, Path, PlatformError, Random, Schema, type Scope, Semaphore } from "effect"
import { encode } from "../domain/Bytes.ts"
import { isNotFound } from "../domain/DiskTrouble.ts"
import { fromJson } from "../domain/JsonText.ts"
import { ProcessOwner } from "../domain/ProcessOwner.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import { freshTemporaryName, Processes, standingOf } from "./Processes.ts"

/**
 * Locks between processes, as files: who makes the file has the lock, and it says who that is. The lock of a process that is
 * gone is broken by the next one that wants it. Reading what a lock protects needs none, as files are replaced whole.
 *
 * A broken lock is taken away by one process only: before it removes the file, it takes a lock of its own for that, named
 * after what the dead lock says, and looks again. So nobody removes a lock that somebody took meanwhile. If it is killed while
 * it does so, its own lock is broken in the same way.
 */

/** What a lock file says. */
const Lock = Schema.Struct({
  ...ProcessOwner.fields,
  /** When it was taken, in milliseconds since 1970. */
  since: Schema.Finite,
  /** No other lock says the same. */
  token: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[a-z0-9]{1,40}$/)))
})
const LockJson = fromJson(Lock)
const decode = Schema.decodeOption(LockJson)

/** Who has a lock. */
export interface Holder {
  /** 0: it does not say yet. */
  readonly pid: number
  /** In milliseconds since 1970. */
  readonly since: number
}

/** A lock file that says nothing is being written right now, unless it is older than this (milliseconds). */
const unreadableAge = 10_000
/** Of a process on another machine or in another container nobody can tell whether it runs: its lock counts so long. */
const foreignAge = 10 * 60_000
/** So often a lock that is kept for long says that it still counts. */
const renewal = "1 minute"
/** How long one waits for a lock that is held for as long as it takes to write a file. */
const patience = 30_000
/** Milliseconds between two attempts, at least and at most: not the same for all who wait. */
const pause = [2, 25] as const
/** Others that break the same lock are done within this many looks. */
const looks = 1_000
/** So many were killed one after the other while they broke the lock of the one before. */
const deepest = 16
/** A finalizer must not wait for a disk that hangs. */
const finalizerDeadline = "5 seconds"

/** Somebody else is at work on a file, and did not end in time. */
export class FileLocked extends Schema.TaggedError<FileLocked>()("FileLocked", {
  file: Schema.String,
  pid: Schema.Int,
  /** Milliseconds since 1970. */
  since: Schema.Finite
}) {
  override get message() {
    const who = this.pid === 0 ? "another process" : `process ${this.pid}`
    return `${quoted(this.file)} is being changed by ${who}; end it or wait for it, then try again`
  }
}

type Files = FileSystem.FileSystem | Path.Path

/** How it stands with a lock. */
type Look =
  | { readonly _tag: "Free" }
  | { readonly _tag: "Held"; readonly holder: Holder }
  /** `isSure`: its process is gone, and not only nobody can tell of it any more. */
  | { readonly _tag: "Dead"; readonly text: string; readonly isSure: boolean }

const noLock = (lock: string) =>
  PlatformError.systemError({
    _tag: "BadResource",
    module: "FileSystem",
    method: "open",
    pathOrDescriptor: lock,
    description: `${quoted(lock)} is no lock of this program's; remove it`
  })

/** What a lock says. It is never a link, and reading a pipe would not end. */
const textOf = Effect.fnUntraced(function* (lock: string) {
  const fs = yield* FileSystem.FileSystem
  const { type } = yield* fs.lstat(lock)
  if (type === "File") return yield* fs.readFileString(lock)
  return yield* noLock(lock)
})

const look = Effect.fnUntraced(
  function* (lock: string): Effect.fn.Return<Look, PlatformError.PlatformError, Files> {
    const fs = yield* FileSystem.FileSystem
    const text = yield* textOf(lock)
    const found = decode(text)
    const standing = Option.isNone(found) ? "unknown" : yield* standingOf(found.value)
    if (Option.isSome(found) && standing === "running") return { _tag: "Held", holder: found.value }
    if (standing === "gone") return { _tag: "Dead", text, isSure: true }
    const { mtime } = yield* fs.stat(lock)
    const made = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
    const age = (yield* Clock.currentTimeMillis) - made
    return age > (Option.isSome(found) ? foreignAge : unreadableAge)
      ? { _tag: "Dead", text, isSure: false }
      : { _tag: "Held", holder: Option.getOrElse(found, () => ({ pid: 0, since: made })) }
  },
  Effect.catchIf(isNotFound, () => Effect.succeed<Look>({ _tag: "Free" }))
)

const discard = (file: string) =>
  FileSystem.FileSystem.use((fs) =>
    fs
      .remove(file, { force: true })
      .pipe(Effect.retry({ times: 2 }), Effect.timeoutOption(finalizerDeadline), Effect.ignore({ log: "Warn" }))
  )

const isThereAlready = ({ reason }: PlatformError.PlatformError) => reason._tag === "AlreadyExists"

/** Makes the lock file, which says this: whether nobody else had it. */
const make = Effect.fnUntraced(function* (
  lock: string,
  text: string
): Effect.fn.Return<boolean, PlatformError.PlatformError, Files> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const temporary = path.join(path.dirname(lock), yield* freshTemporaryName)
  const write = (file: string) =>
    Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* fs.open(file, { flag: "wx", mode: 0o600 })
        yield* handle.writeAll(encode(text)).pipe(Effect.onError(() => discard(file)))
      })
    )
  const orTaken = <R>(made: Effect.Effect<void, PlatformError.PlatformError, R>) =>
    made.pipe(
      Effect.as(true),
      // Asked again by a network that lost the answer, a disk says of our own file that it is there already.
      Effect.catchIf(isThereAlready, () =>
        textOf(lock).pipe(
          Effect.map((found) => found === text),
          Effect.catchIf(isNotFound, () => Effect.succeed(false))
        )
      )
    )
  // Written first and then linked into place: a lock is there whole or not at all, whenever its maker is killed.
  return yield* Effect.acquireUseRelease(
    write(temporary),
    () =>
      orTaken(fs.link(temporary, lock)).pipe(
        // Some file systems have no links. Whoever took an empty lock for a forgotten one has removed it by now.
        Effect.catch(() =>
          orTaken(write(lock)).pipe(
            Effect.flatMap((made) =>
              made ? Effect.map(fs.readFileString(lock), (found) => found === text) : Effect.succeed(false)
            )
          )
        )
      ),
    () => discard(temporary)
  )
}, Effect.uninterruptible)

/** Removes a lock, if it is still the one that says this. */
const release = (lock: string, text: string) =>
  FileSystem.FileSystem.use((fs) =>
    fs.readFileString(lock).pipe(
      Effect.flatMap((found) => (found === text ? fs.remove(lock) : Effect.void)),
      Effect.catchIf(isNotFound, () => Effect.void),
      Effect.retry({ times: 2 }),
      Effect.timeoutOption(finalizerDeadline),
      Effect.ignore({ log: "Warn" })
    )
  )

/** Says again and again that a lock is held, to those who cannot ask for its process. */
const renewed = Effect.fnUntraced(function* (lock: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  const renew = Effect.gen(function* () {
    if ((yield* textOf(lock)) !== text) return
    const now = (yield* Clock.currentTimeMillis) / 1_000
    yield* fs.utimes(lock, now, now)
  })
  for (;;) {
    yield* Effect.sleep(renewal)
    yield* Effect.ignore(renew)
  }
}, Effect.interruptible)

/** The name of the lock under which a lock that says this is broken. */
const breaker = (lock: string, text: string): string => {
  const found = Option.getOrUndefined(decode(text))
  const token = found === undefined ? "0" : (found.token ?? `${found.pid}n${Math.abs(Math.trunc(found.since))}`)
  return `${lock}.${token}`
}

/**
 * One attempt at a lock, which is kept until the scope closes; undefined: it is ours. `base` is the lock that it is all about: also
 * that of who breaks a breaker's is named after it. Looking may be interrupted, as a disk may hang; taking may not.
 */
const attempt = (
  lock: string,
  base: string,
  isLong = false,
  depth = 0
): Effect.Effect<Holder | undefined, PlatformError.PlatformError, Files | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      // Locks that somebody wrote by hand may name one another.
      if (depth > deepest) return yield* noLock(lock)
      const fs = yield* FileSystem.FileSystem
      const { self, unique } = yield* Processes
      const since = yield* Clock.currentTimeMillis
      const text = JSON.stringify({ ...(yield* self), since, token: yield* unique })
      let holder: Holder = { pid: 0, since }
      for (let turn = 0; turn < looks; turn += 1) {
        const found = yield* restore(look(lock))
        if (found._tag === "Held") return found.holder
        if (found._tag === "Free") {
          if (!(yield* make(lock, text))) continue
          yield* Effect.addFinalizer(() => release(lock, text))
          if (isLong) yield* Effect.forkScoped(renewed(lock, text))
          return undefined
        }
        const broken = Effect.gen(function* () {
          const busy = yield* attempt(breaker(base, found.text), base, false, depth + 1)
          if (busy !== undefined) return busy
          const now = yield* look(lock)
          if (now._tag === "Dead" && now.text === found.text) {
            yield* Effect.uninterruptible(fs.remove(lock, { force: true }))
          }
          return undefined
        })
        holder = (yield* Effect.scoped(restore(broken))) ?? holder
      }
      return holder
    })
  )

/** Takes a lock until the scope closes, or says who has it; undefined: it is ours. Its folder has to be there. */
export const tryHold = (
  lock: string
): Effect.Effect<Holder | undefined, PlatformError.PlatformError, Files | Scope.Scope> => attempt(lock, lock)

/** The same for a lock that is kept for longer than a write takes. */
export const tryHoldLong = (
  lock: string
): Effect.Effect<Holder | undefined, PlatformError.PlatformError, Files | Scope.Scope> => attempt(lock, lock, true)

/** Who has a lock; undefined: nobody, or one that is gone. */
export const holderOf = (lock: string): Effect.Effect<Holder | undefined, PlatformError.PlatformError, Files> =>
  Effect.map(look(lock), (found) => (found._tag === "Held" ? found.holder : undefined))

/** Whether a lock is that of a process that is gone for sure: not of one of which nobody here can tell. */
export const isGone = (lock: string): Effect.Effect<boolean, PlatformError.PlatformError, Files> =>
  Effect.map(look(lock), (found) => found._tag === "Dead" && found.isSure)

/**
 * Takes away what processes that are gone for sure left of the lock of this name in its folder: the lock, and those under which it was
 * being broken. Nobody else's file is touched, however it is called: what does not say an owner stays. Never fails.
 */
export const sweep = Effect.fnUntraced(function* (
  folder: string,
  name: string,
  base: string
): Effect.fn.Return<void, never, Files> {
  const path = yield* Path.Path
  if (name !== base && !(name.startsWith(`${base}.`) && /^[a-z0-9]{1,60}$/.test(name.slice(base.length + 1)))) return
  const lock = path.join(folder, name)
  // To take it is to break it.
  yield* Effect.ignore(
    Effect.scoped(
      Effect.flatMap(isGone(lock), (gone) => (gone ? attempt(lock, path.join(folder, base)) : Effect.undefined))
    )
  )
})

/** Where the lock of a file lies: beside it. */
export const besides = (path: Path.Path, file: string): string =>
  path.join(path.dirname(file), `.${path.basename(file)}.lock`)

/** What is changed by one process at a time, and the lock that says by which. */
export interface Place {
  /** The file as a person knows it. */
  readonly file: string
  readonly lock: string
}

/** Who waits in this process waits in a row, not by looking again and again. */
const rows = new Map<string, { readonly turn: Semaphore.Semaphore; count: number }>()

/** This process's turn at a lock, until the scope closes. */
const inRow = Effect.fnUntraced(function* (lock: string): Effect.fn.Return<void, never, Scope.Scope> {
  const row = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const there = rows.get(lock) ?? { turn: Semaphore.makeUnsafe(1), count: 0 }
      rows.set(lock, there)
      there.count += 1
      return there
    }),
    (there) =>
      Effect.sync(() => {
        there.count -= 1
        if (there.count === 0) rows.delete(lock)
      })
  )
  yield* Effect.acquireRelease(row.turn.take(1), () => row.turn.release(1), { interruptible: true })
})

/**
 * Takes the lock of a file until the scope closes. One waits for who has it, for a bounded time, and may be interrupted
 * meanwhile. The folder of the lock is made (0700).
 */
export const hold = Effect.fnUntraced(function* ({
  file,
  lock
}: Place): Effect.fn.Return<void, FileLocked | PlatformError.PlatformError, Files | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Effect.uninterruptible(fs.makeDirectory(path.dirname(lock), { recursive: true, mode: 0o700 }))
  const end = (yield* Clock.currentTimeMillis) + patience
  yield* inRow(lock)
  for (;;) {
    const holder = yield* tryHold(lock)
    if (holder === undefined) return
    if ((yield* Clock.currentTimeMillis) >= end) return yield* new FileLocked({ file, ...holder })
    yield* Effect.flatMap(Random.nextIntBetween(...pause), (millis) => Effect.sleep(millis))
  }
})

/** Does what changes a file while nobody else does (see `hold`): `work` reads it as it is then, and is not interrupted. */
export const locked = <A, E, R>(
  place: Place,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E | FileLocked | PlatformError.PlatformError, Exclude<R, Scope.Scope> | Files> =>
  Effect.scoped(Effect.andThen(hold(place), Effect.uninterruptible(work)))
