/** The lock of a session, `<id>.lock`: one process at a time writes a session. */

import { Effect } from "effect"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import { SessionExists, SessionLocked, sessionError } from "../../services/session/SessionStore.ts"
import { blobFolder, inFolder, logFile, type SessionFolder, titleFile } from "./SessionFolder.ts"

const lockFile = ({ directory, path }: SessionFolder, id: string): string => path.join(directory, `${id}.lock`)

/** The lock of a session, or a lock under which such a lock is broken. The first group is the session's id. */
const lockName = /^([\w-]{1,64})\.lock(?:\.[a-z0-9]{1,60})?$/

/** Names under which older versions wrote unfinished logs and titles. */
const isOldTemporary = (name: string): boolean => /^(?:[\w-]{1,64}\.new|\.[\w-]{1,64}\.title\.\d+-\d+\.tmp)$/.test(name)

/**
 * Takes the lock of a session until the scope closes. Fails with `SessionLocked` while another process has it. A lock whose
 * process has ended is taken over, and that process's unfinished blobs are removed.
 */
export const lockSession = Effect.fnUntraced(function* (folder: SessionFolder, id: string) {
  const file = lockFile(folder, id)
  const provide = inFolder(folder)
  const wasLeft = (yield* folder.fs.exists(file)) && (yield* provide(FileLock.holderOf(file))) === undefined
  const holder = yield* provide(FileLock.tryAcquireRenewed(file))
  if (holder !== undefined) return yield* sessionError(new SessionLocked({ id, ...holder }))
  if (wasLeft) yield* provide(StaleFiles.sweep(blobFolder(folder, id)))
})

/** Takes the lock of an id that no session has. Fails with `SessionExists` when a session has it. */
export const lockNewId = Effect.fnUntraced(function* (folder: SessionFolder, id: string) {
  const { directory, fs } = folder
  const vacant = fs
    .exists(logFile(folder, id))
    .pipe(Effect.flatMap((exists) => (exists ? Effect.fail(sessionError(new SessionExists({ id }))) : Effect.void)))
  // Checked before the lock too: of a session in use, "it exists" is the more helpful answer.
  yield* vacant
  yield* fs.makeDirectory(directory, { recursive: true, mode: 0o700 })
  yield* lockSession(folder, id)
  yield* vacant
})

/** The process that has a session's lock; undefined when none has it or the lock cannot be read. */
export const sessionHolder = (folder: SessionFolder, id: string): Effect.Effect<FileLock.Holder | undefined> =>
  inFolder(folder)(FileLock.holderOf(lockFile(folder, id))).pipe(Effect.orElseSucceed(() => undefined))

/** Removes what a killed process left under one lock: the lock, and the files of an import that did not finish. */
const sweepLock = Effect.fnUntraced(function* (folder: SessionFolder, name: string, id: string) {
  const { directory, fs, path } = folder
  const file = path.join(directory, name)
  if (name !== `${id}.lock`) return yield* FileLock.sweep(directory, name, `${id}.lock`)
  if (!(yield* FileLock.isAbandoned(file)) || (yield* FileLock.tryAcquire(file)) !== undefined) return
  if (yield* fs.exists(logFile(folder, id))) return yield* StaleFiles.sweep(blobFolder(folder, id))
  yield* fs.remove(titleFile(folder, id), { force: true })
  yield* fs.remove(blobFolder(folder, id), { recursive: true, force: true })
}, Effect.scoped)

/** Removes what killed processes left among these names of the folder: temporary files, locks, unfinished imports. Never fails. */
export const sweepAbandoned = Effect.fnUntraced(function* (folder: SessionFolder, names: ReadonlyArray<string>) {
  const provide = inFolder(folder)
  yield* provide(StaleFiles.sweepNames(folder.directory, names, { temporary: isOldTemporary }))
  for (const name of names) {
    const id = lockName.exec(name)?.[1]
    if (id !== undefined) yield* Effect.ignore(provide(sweepLock(folder, name, id)))
  }
})
