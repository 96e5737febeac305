/** Keeps sessions as files of a folder: their logs, titles, locks and blobs. */

import { Effect, Equal, FileSystem, Layer, Option, Path, type PlatformError, Schema } from "effect"
import { Hash } from "../../domain/content/Handle.ts"
import { LogLines } from "../../domain/session/Checkpoint.ts"
import { encodeLine } from "../../domain/session/LogFormat.ts"
import { LogReader } from "../../domain/session/LogReader.ts"
import { applyEvent, emptySession, type SessionEvent, type Started } from "../../domain/session/Session.ts"
import { headOf, titleOf } from "../../domain/session/SessionHead.ts"
import { lastWrittenFirst } from "../../domain/session/SessionOrder.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import {
  allOrNothing,
  badSessionId,
  headlessLog,
  isSessionId,
  lineError,
  type OpenSession,
  sessionError,
  SessionNotFound,
  SessionStore,
  type SessionStoreError,
  sessionUnavailable,
  type StoredBlob
} from "../../services/session/SessionStore.ts"
import { BlobFolder } from "../../services/session/TempStore.ts"
import * as TranscriptExport from "../../services/transcripts/TranscriptExport.ts"
import { openSink } from "./FileLogSink.ts"
import { openWriter } from "./LogWriter.ts"
import {
  type Catalogue,
  type FileStamp,
  forgetSession,
  listSessions,
  type LogRow,
  makeCatalogue,
  withEnding
} from "./SessionCatalogue.ts"
import {
  blobFolder,
  discard,
  inFolder,
  logFile,
  openBlobs,
  publishFile,
  readStart,
  type SessionFolder,
  sessionIds,
  syncFolder,
  titleFile
} from "./SessionFolder.ts"
import { lockNewId, lockSession, sessionHolder, sweepAbandoned } from "./SessionLock.ts"
import { readEvents, readLog } from "./SessionLogReader.ts"
import { withSessionErrors } from "./SessionStoreErrors.ts"

// Summarises sessions for a list: from the catalogue when it is current, else from the first bytes of the log.

/** Maximum bytes of a log that a list reads. For most logs the first few are enough. */
const headBytes = 64 * 1024
const shortHeadBytes = 8 * 1024
/** Bytes read of a title file: more than any title has. */
const titleBytes = 4 * 1024
/** Locks that a list reads at once. */
const lockConcurrency = 16

/**
 * Returns the head of a log from its first `maxBytes`, and why the log cannot be opened, if these bytes show that; undefined
 * when the log is gone.
 */
const readHeadWithin = Effect.fnUntraced(function* (folder: SessionFolder, id: string, size: number, maxBytes: number) {
  const bytes = yield* readStart(folder, logFile(folder, id), Math.min(size, maxBytes))
  if (bytes === undefined) return undefined
  const reader = new LogReader(0)
  const lines = reader.push(bytes)
  const head = headOf(lines.map(({ event }) => event))
  const { problem } = reader
  if (problem !== undefined) return { ...head, problem: lineError(id, problem.line, problem.problem).message }
  // A first line longer than the bytes read is not necessarily wrong.
  const isHeadless = head.startedAt === undefined && (lines.length > 0 || size <= maxBytes)
  return { ...head, problem: isHeadless ? headlessLog(id).message : undefined }
})

/** Returns the head of a log from as few bytes as possible. */
const readHead = Effect.fnUntraced(function* (folder: SessionFolder, id: string, size: number) {
  const short = yield* readHeadWithin(folder, id, size, shortHeadBytes)
  if (short?.firstPrompt !== undefined || short?.problem !== undefined || size <= shortHeadBytes) return short
  return yield* readHeadWithin(folder, id, size, headBytes)
})

/** Returns why a session cannot be opened whose log is a folder, a pipe or a device. */
const notAFile = (id: string): string => `session ${id} is not a regular file`

const unreadableRow = (problem: string): LogRow => ({ ...headOf([]), problem })

/** Reads the list's data about a log; undefined when the log is gone. */
const readLogRow =
  (folder: SessionFolder) =>
  (id: string, { bytes, isFile, problem }: FileStamp) =>
    isFile
      ? Effect.catch(readHead(folder, id, bytes), (error) => Effect.succeed(unreadableRow(error.message)))
      : Effect.succeed(unreadableRow(problem ?? notAFile(id)))

/** Reads the title of a session; undefined when it has none. */
const readTitle = (folder: SessionFolder) => (id: string) =>
  readStart(folder, titleFile(folder, id), titleBytes).pipe(
    Effect.map((bytes) => (bytes === undefined ? undefined : titleOf(Bytes.decode(bytes).text) || undefined)),
    Effect.orElseSucceed(() => undefined)
  )

/** The summaries of these sessions, without those that are gone by now. `names` are the names in the folder. */
const summarize = Effect.fnUntraced(function* (
  folder: SessionFolder,
  catalogue: Catalogue,
  ids: ReadonlyArray<string>,
  names: ReadonlySet<string>
) {
  const sessions = yield* listSessions(catalogue, ids, names)
  const holders = new Map(
    yield* Effect.forEach(
      withEnding(names, ".lock"),
      (id) => Effect.map(sessionHolder(folder, id), (holder) => [id, holder] as const),
      { concurrency: lockConcurrency }
    )
  )
  return sessions.map(({ row: { id, log, title }, stamp: { bytes, updatedAt } }) => {
    const holder = holders.get(id)
    return {
      ...log,
      id,
      title,
      bytes,
      updatedAt,
      startedAt: log.startedAt ?? updatedAt,
      holder: holder === undefined ? undefined : { pid: holder.pid, since: holder.since }
    }
  })
})

const isHash = Schema.is(Hash)

const notFound = (id: string) => sessionError(new SessionNotFound({ id }))

/** What tells the file of a log from one that takes its place. Undefined: there is none. */
const logOf = (folder: SessionFolder, id: string) =>
  folder.fs.stat(logFile(folder, id)).pipe(
    Effect.map(({ birthtime, ino, type }) => ({ type, ino: Option.getOrNull(ino), born: Option.getOrNull(birthtime) })),
    Effect.catchIf(isNotFound, () => Effect.succeed(undefined))
  )

/**
 * Works with the log of a session, and fails with `SessionNotFound` if there is none. Another request may delete the session meanwhile, and store a
 * new one under its id: then this works with that one.
 */
const withLog = <A, R>(
  folder: SessionFolder,
  operation: string,
  id: string,
  work: Effect.Effect<A, PlatformError.PlatformError | SessionStoreError, R>
): Effect.Effect<A, PlatformError.PlatformError | SessionStoreError, R> =>
  Effect.gen(function* () {
    const log = isSessionId(id) ? yield* logOf(folder, id) : undefined
    if (log === undefined) return yield* notFound(id)
    // Reading a pipe would never end.
    if (log.type !== "File") return yield* sessionUnavailable(operation, notAFile(id))
    return yield* Effect.catch(work, (error) =>
      Effect.flatMap(logOf(folder, id), (now) =>
        Equal.equals(now, log) ? Effect.fail(error) : withLog(folder, operation, id, work)
      )
    )
  })

const createSession = Effect.fnUntraced(function* (folder: SessionFolder, started: Started) {
  const { fs } = folder
  const id = started.session
  const file = logFile(folder, id)
  const line = `${encodeLine(started)}\n`
  yield* lockNewId(folder, id)
  const blobs = yield* openBlobs(folder, id)
  const lines = new LogLines()
  const size = Bytes.encode(line).length
  lines.add(started, 0, size)
  const state = { session: applyEvent(emptySession, started), lines, complete: true, good: size, torn: 0 }
  return yield* publishFile(folder, line, (temporary) =>
    // A deleted session may have left its title, and a new one has none.
    fs.remove(titleFile(folder, id), { force: true }).pipe(
      Effect.andThen(fs.rename(temporary, file)),
      Effect.andThen(syncFolder(folder)),
      Effect.andThen(openSink(folder, id, blobs)),
      Effect.flatMap((sink) => openWriter(sink, state))
    )
  ).pipe(Effect.onError(() => discard(folder, file)))
})

const openSession = Effect.fnUntraced(function* (folder: SessionFolder, id: string) {
  const { fs } = folder
  const file = logFile(folder, id)
  yield* lockSession(folder, id)
  const blobs = yield* openBlobs(folder, id)
  const log = yield* readLog(folder, id, blobs)
  const { complete, good, session, torn } = log
  const cut = Effect.scoped(
    Effect.flatMap(fs.open(file, { flag: "r+" }), (handle) => Effect.andThen(handle.truncate(good), handle.sync))
  )
  if (torn > 0) yield* Effect.uninterruptible(cut)
  const sink = yield* openSink(folder, id, blobs)
  return { session, complete, torn, log: yield* openWriter(sink, log) } satisfies OpenSession
})

const addSession = Effect.fnUntraced(function* (folder: SessionFolder, events: ReadonlyArray<SessionEvent>) {
  const [started] = events
  if (started?._tag !== "Started" || !isSessionId(started.session)) return yield* badSessionId()
  const id = started.session
  yield* lockNewId(folder, id)
  // A deleted session may have left its title.
  yield* folder.fs.remove(titleFile(folder, id), { force: true })
  yield* TranscriptExport.write(logFile(folder, id), "palimpsest", events).pipe(
    Effect.provideService(BlobFolder, folder.blobFolders),
    inFolder(folder),
    Effect.mapError((error) => sessionUnavailable("create", error.message, error))
  )
}, Effect.scoped)

const readSession = (folder: SessionFolder, id: string) =>
  Effect.scoped(Effect.flatMap(openBlobs(folder, id), (blobs) => readEvents(folder, id, blobs)))

const listBlobs = Effect.fnUntraced(function* (folder: SessionFolder, id: string) {
  const { fs } = folder
  if (!isSessionId(id) || !(yield* fs.exists(logFile(folder, id)))) return yield* notFound(id)
  const names = yield* fs
    .readDirectory(blobFolder(folder, id))
    .pipe(Effect.catchIf(isNotFound, () => Effect.succeed([])))
  const bytesOf = (hash: Hash) =>
    Effect.flatMap(openBlobs(folder, id), (blobs) => blobs.get(hash)).pipe(
      Effect.mapError((error) => sessionUnavailable("read", error.message, error)),
      Effect.scoped
    )
  return names.flatMap((name): Array<StoredBlob> => (isHash(name) ? [{ hash: name, bytes: bytesOf(name) }] : []))
})

/** The names in the folder, after removing what killed processes left there. */
const folderNames = (folder: SessionFolder) =>
  folder.fs.readDirectory(folder.directory).pipe(
    Effect.catchIf(isNotFound, () => Effect.succeed([])),
    Effect.tap((names) => sweepAbandoned(folder, names))
  )

const listSummaries = Effect.fnUntraced(function* (folder: SessionFolder, catalogue: Catalogue) {
  const names = yield* folderNames(folder)
  const summaries = yield* summarize(folder, catalogue, sessionIds(names), new Set(names))
  return summaries.toSorted(lastWrittenFirst)
})

const summaryOf = Effect.fnUntraced(function* (folder: SessionFolder, catalogue: Catalogue, id: string) {
  const names = new Set([`${id}.title`, `${id}.lock`])
  const [summary] = isSessionId(id) ? yield* summarize(folder, catalogue, [id], names) : []
  return summary ?? (yield* notFound(id))
})

const renameSession = Effect.fnUntraced(function* (
  folder: SessionFolder,
  catalogue: Catalogue,
  id: string,
  title: string
) {
  const { fs } = folder
  if (!isSessionId(id) || !(yield* fs.exists(logFile(folder, id)))) return yield* notFound(id)
  yield* publishFile(folder, `${titleOf(title)}\n`, (temporary) =>
    Effect.andThen(fs.rename(temporary, titleFile(folder, id)), syncFolder(folder))
  )
  yield* forgetSession(catalogue, id)
})

/** Whether any file of a session is left, even of one whose removal was interrupted. */
const anyFileLeft = Effect.fnUntraced(function* (folder: SessionFolder, id: string) {
  for (const file of [logFile(folder, id), titleFile(folder, id), blobFolder(folder, id)]) {
    if (yield* folder.fs.exists(file)) return true
  }
  return false
})

const removeSession = Effect.fnUntraced(function* (folder: SessionFolder, catalogue: Catalogue, id: string) {
  const { fs } = folder
  if (!isSessionId(id) || !(yield* anyFileLeft(folder, id))) return yield* notFound(id)
  yield* lockSession(folder, id)
  // The log is removed first, and durably: without it, the other files are no session.
  yield* Effect.uninterruptible(Effect.andThen(fs.remove(logFile(folder, id), { force: true }), syncFolder(folder)))
  yield* fs.remove(titleFile(folder, id), { force: true })
  yield* fs.remove(blobFolder(folder, id), { recursive: true, force: true })
  yield* forgetSession(catalogue, id)
}, Effect.scoped)

/** Runs `use` for a valid id; other ids fail. */
const withValidId = <A, E, R>(id: string, use: Effect.Effect<A, E, R>) =>
  isSessionId(id) ? use : Effect.fail(badSessionId())

/**
 * Sessions as files of `directory`, which is created (mode 0700) with the first session.
 *
 * Details: a session is `<id>.jsonl`, one event a line (mode 0600); `<id>.jsonl.blobs`, its parts of 8 KiB and more, written
 * before their line; `<id>.title`, once it has a title; and `<id>.lock` while a process has it open. An append that succeeded
 * is on disk. One that failed or was interrupted left the log as it was; when even that cannot be restored, the log takes no
 * more appends until it is opened again, which cuts off the incomplete line.
 *
 * **Example** (Keeping sessions in a folder)
 *
 * ```ts
 * import { Effect, Layer, Path } from "effect"
 * import { Session } from "palimpsest"
 * import { FileSessionStore, FileTempStore } from "palimpsest/node"
 * import { MemoryFileSystem } from "palimpsest/testing"
 *
 * // On a disk, NodeServices.layer of @effect/platform-node takes the place of the two below.
 * const Store = FileSessionStore.layer("/sessions").pipe(
 *   Layer.provide(FileTempStore.folders),
 *   Layer.provide([MemoryFileSystem.layer(), Path.layer])
 * )
 * const list = Session.SessionStore.use((store) => store.list)
 * console.log(await Effect.runPromise(Effect.provide(list, Store))) // => []
 * ```
 */
export const layer = (
  directory: string
): Layer.Layer<SessionStore, never, FileSystem.FileSystem | Path.Path | BlobFolder> =>
  Layer.effect(
    SessionStore,
    Effect.gen(function* () {
      const folder: SessionFolder = {
        directory,
        fs: yield* FileSystem.FileSystem,
        path: yield* Path.Path,
        blobFolders: yield* BlobFolder
      }
      const catalogue = yield* makeCatalogue(directory, { log: readLogRow(folder), title: readTitle(folder) })
      return {
        create: Effect.fn("SessionStore.create")(
          (started) => withValidId(started.session, allOrNothing(createSession(folder, started))),
          withSessionErrors("create")
        ),
        add: Effect.fn("SessionStore.add")((events) => addSession(folder, events), withSessionErrors("create")),
        blobs: Effect.fn("SessionStore.blobs")((id) => listBlobs(folder, id), withSessionErrors("read")),
        events: Effect.fn("SessionStore.events")(
          (id) => withLog(folder, "read", id, readSession(folder, id)),
          withSessionErrors("read")
        ),
        open: Effect.fn("SessionStore.open")(
          (id) => withLog(folder, "open", id, allOrNothing(openSession(folder, id))),
          withSessionErrors("open")
        ),
        list: folderNames(folder).pipe(
          Effect.map(sessionIds),
          withSessionErrors("list"),
          Effect.withSpan("SessionStore.list")
        ),
        summaries: listSummaries(folder, catalogue).pipe(
          withSessionErrors("list"),
          Effect.withSpan("SessionStore.summaries")
        ),
        summary: Effect.fn("SessionStore.summary")((id) => summaryOf(folder, catalogue, id), withSessionErrors("list")),
        rename: Effect.fn("SessionStore.rename")(
          (id, title) => renameSession(folder, catalogue, id, title),
          withSessionErrors("rename")
        ),
        remove: Effect.fn("SessionStore.remove")(
          (id) => removeSession(folder, catalogue, id),
          withSessionErrors("remove")
        )
      }
    })
  )
