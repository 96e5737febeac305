import { Effect } from "effect"
import { statSync } from "node:fs"
import type { DatabaseSync } from "node:sqlite"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import type {
  RecordPlace,
  RecordRange,
  RecordsRead,
  SessionFile,
  SessionProblem
} from "../../services/transcripts/AgentSessions.ts"
import { transcriptError, type TranscriptError } from "../../services/transcripts/TranscriptError.ts"
import { sqlite } from "../platform/NodeSqlite.ts"

/**
 * Reads opencode's database: the tables `session`, `message` and `part`, whose `data` is JSON. It is opened for reading only.
 */

const openDatabase = (file: string) =>
  Effect.flatMap(sqlite, (found) =>
    found === undefined
      ? Effect.fail(transcriptError(file, 0, "is a database, which this Node cannot read; use Node 22.13 or newer"))
      : Effect.try({
          try: () => new found.DatabaseSync(file, { readOnly: true }),
          catch: (error) => transcriptError(file, 0, `cannot be opened (${String(error)})`)
        })
  )

const within = <A>(file: string, use: (database: DatabaseSync) => A): Effect.Effect<A, TranscriptError> =>
  Effect.acquireUseRelease(
    openDatabase(file),
    (database) =>
      Effect.try({
        try: () => use(database),
        catch: (error) =>
          transcriptError(file, 0, `cannot be read (${error instanceof Error ? error.message : "unknown"})`)
      }),
    (database) => Effect.sync(() => database.close())
  )

const listed = `select s.id, s.parent_id as parent, s.directory, s.time_updated as updated,
  (select coalesce(sum(length(p.data)), 0) from part p where p.session_id = s.id) as bytes from session s`

/** Adds the sessions of a database to a list. A database that does not exist adds nothing. */
export const list = (
  file: string,
  found: { readonly files: Array<SessionFile>; readonly problems: Array<SessionProblem> }
): Effect.Effect<void> =>
  Effect.suspend(() =>
    statSync(file, { throwIfNoEntry: false })?.isFile() === true
      ? within(file, (database) => {
          for (const { bytes, directory, id, parent, updated } of database.prepare(listed).iterate()) {
            found.files.push({
              agent: "opencode",
              id: String(id),
              parent: typeof parent === "string" ? parent : undefined,
              kind: typeof parent === "string" ? "subagent" : "session",
              path: `${file}#${String(id)}`,
              bytes: Number(bytes),
              updatedAt: Number(updated),
              folder: typeof directory === "string" ? directory : undefined
            })
          }
        })
      : Effect.void
  ).pipe(
    Effect.catch(({ message }) =>
      Effect.sync(() => {
        found.problems.push({ path: file, message: message.replace(`${file}: `, "") })
      })
    )
  )

const queries = [
  { kind: "session", sql: "select * from session where id = ?" },
  { kind: "message", sql: "select id, time_created, data from message where session_id = ? order by time_created, id" },
  {
    kind: "part",
    sql: "select id, message_id, time_created, data from part where session_id = ? order by time_created, id"
  }
]

/** A session in a database. */
export interface Place {
  readonly file: string
  readonly id: string
}

/** Returns the database and the id in the path of a session; undefined for the path of a file. */
export const placeIn = (path: string): Place | undefined => {
  const [, file, id] = /^(.+)#(ses_[\w-]+)$/.exec(path) ?? []
  return file === undefined || id === undefined ? undefined : { file, id }
}

/** Calls `visit` for each row of a session: its own, its messages, then their parts. Their `data` is parsed. */
export const forEachRow = (
  { file, id }: Place,
  visit: (row: Readonly<Record<string, unknown>>, index: number) => void
): Effect.Effect<number, TranscriptError> =>
  within(file, (database) => {
    let index = 0
    for (const { kind, sql } of queries) {
      for (const row of database.prepare(sql).iterate(id)) {
        const data = typeof row.data === "string" ? parsedOrUndefined(row.data) : undefined
        visit({ ...row, kind, data }, index)
        index += 1
      }
    }
    return index
  })

/** Reads a session: its row, its messages, then their parts. Positions count the rows. */
export const records = (
  { path }: SessionFile,
  { from, to = Number.MAX_SAFE_INTEGER }: RecordRange,
  visit: (record: unknown, place: RecordPlace) => void
): Effect.Effect<RecordsRead, TranscriptError> =>
  Effect.suspend(() => {
    const place = placeIn(path)
    if (place === undefined) return Effect.fail(transcriptError(path, 0, "names no session of a database"))
    const rows = forEachRow(place, (row, index) => {
      if (index >= from && index < to) visit(row, { from: index, to: index + 1, line: index + 1 })
    })
    return Effect.map(rows, (end) => ({ end, line: end + 1, broken: 0 }))
  })
