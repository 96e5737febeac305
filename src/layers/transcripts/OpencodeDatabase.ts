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
  { kind: "part", sql: "select id, time_created, data from part where session_id = ? order by time_created, id" }
]

/** Reads a session: its row, its messages, then their parts. Positions count the rows. */
export const records = (
  { path }: SessionFile,
  { from, to = Number.MAX_SAFE_INTEGER }: RecordRange,
  visit: (record: unknown, place: RecordPlace) => void
): Effect.Effect<RecordsRead, TranscriptError> => {
  const at = path.lastIndexOf("#")
  return within(path.slice(0, at), (database) => {
    let index = 0
    for (const { kind, sql } of queries) {
      for (const row of database.prepare(sql).iterate(path.slice(at + 1))) {
        if (index >= from && index < to) {
          const data = typeof row.data === "string" ? parsedOrUndefined(row.data) : undefined
          visit({ ...row, kind, data }, { from: index, to: index + 1, line: index + 1 })
        }
        index += 1
      }
    }
    return { end: index, line: index + 1, broken: 0 }
  })
}
