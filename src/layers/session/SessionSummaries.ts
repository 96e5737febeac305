import { Effect } from "effect"
import { LogReader } from "../../domain/session/LogReader.ts"
import { headOf, titleOf } from "../../domain/session/SessionHead.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { headlessLog, lineError, type SessionSummary } from "../../services/session/SessionStore.ts"
import { type Catalogue, type FileStamp, listSessions, type LogRow, withEnding } from "./SessionCatalogue.ts"
import { logFile, readStart, type SessionFolder, titleFile } from "./SessionFolder.ts"
import { sessionHolder } from "./SessionLock.ts"

/** Summarises sessions for a list: from the catalogue when it is current, else from the first bytes of the log. */

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
export const notAFile = (id: string): string => `session ${id} is not a regular file`

const unreadableRow = (problem: string): LogRow => ({ ...headOf([]), problem })

/** Reads the list's data about a log; undefined when the log is gone. */
export const readLogRow =
  (folder: SessionFolder) =>
  (id: string, { bytes, isFile, problem }: FileStamp): Effect.Effect<LogRow | undefined> =>
    isFile
      ? Effect.catch(readHead(folder, id, bytes), (error) => Effect.succeed(unreadableRow(error.message)))
      : Effect.succeed(unreadableRow(problem ?? notAFile(id)))

/** Reads the title of a session; undefined when it has none. */
export const readTitle =
  (folder: SessionFolder) =>
  (id: string): Effect.Effect<string | undefined> =>
    readStart(folder, titleFile(folder, id), titleBytes).pipe(
      Effect.map((bytes) => (bytes === undefined ? undefined : titleOf(Bytes.decode(bytes).text) || undefined)),
      Effect.orElseSucceed(() => undefined)
    )

/** The summaries of these sessions, without those that are gone by now. `names` are the names in the folder. */
export const summarize = Effect.fnUntraced(function* (
  folder: SessionFolder,
  catalogue: Catalogue,
  ids: ReadonlyArray<string>,
  names: ReadonlySet<string>
): Effect.fn.Return<ReadonlyArray<SessionSummary>> {
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
