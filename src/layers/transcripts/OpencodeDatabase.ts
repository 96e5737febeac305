/** Reads opencode's database: the tables `session`, `message` and `part`, whose `data` is JSON. */

import { Effect, Layer, Stream } from "effect"
import { encode } from "../../domain/text/Bytes.ts"
import type { Json } from "../../domain/text/JsonObject.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { instant, natural, textAt } from "../../domain/transcripts/JsonRecord.ts"
import type { RecordPlace, RecordRange, SessionFile } from "../../services/transcripts/AgentSessions.ts"
import { transcriptError } from "../../services/transcripts/TranscriptError.ts"
import { SessionDatabase } from "../../services/transcripts/Transcripts.ts"
import { type DatabaseQuestion, type ForeignDatabase, open as openDatabase } from "./ForeignDatabase.ts"

/** Sessions of a database. */
const maxSessions = 100_000
/** Messages of a session, and parts of a session. */
const maxRows = 1_000_000

const session = ["id", "parent_id", "directory", "title", "revert"]
const message = ["id", "session_id", "time_created", "data"]
const part = ["id", "message_id", "session_id", "time_created", "data"]

const listed: DatabaseQuestion = {
  tables: { session: [...session, "time_updated"], message, part },
  sql: `select s.id, s.parent_id as parent, s.directory, s.time_updated as updated,
    (select coalesce(sum(octet_length(p.data)), 0) from main.part p where p.session_id = s.id) as bytes from main.session s`,
  params: [],
  maxRows: maxSessions
}

/** Lists the sessions of a database. */
export const list = Effect.fnUntraced(function* (database: ForeignDatabase, file: string) {
  const files: Array<SessionFile> = []
  yield* database.ask(listed, (row) => {
    const parent = textAt(row, "parent")
    files.push({
      agent: "opencode",
      id: String(row.id),
      parent,
      kind: parent === undefined ? "session" : "subagent",
      path: `${file}#${String(row.id)}`,
      bytes: natural(row.bytes) ?? 0,
      updatedAt: instant(row.updated) ?? 0,
      folder: textAt(row, "directory")
    })
  })
  return files
})

/** The rows of a session, by table. */
const questions = (id: string): Readonly<Record<string, DatabaseQuestion>> => {
  const ofSession = { params: [id], maxRows }
  const inTable = (table: string, columns: ReadonlyArray<string>): DatabaseQuestion => ({
    ...ofSession,
    tables: { [table]: columns },
    sql: `select id, time_created as at from main.${table} where session_id = ?`,
    row: `select {${table}} from main.${table} where id = ?`
  })
  return {
    session: { ...ofSession, tables: { session }, sql: "select {session} from main.session where id = ?" },
    message: inTable("message", message),
    part: inTable("part", part)
  }
}

/** A session in a database. */
export interface DatabasePlace {
  readonly file: string
  readonly id: string
}

/** Returns the database and the id in the path of a session; undefined for the path of a file. */
export const placeIn = (path: string): DatabasePlace | undefined => {
  const [, file, id] = /^(.+)#(ses_[\w-]+)$/.exec(path) ?? []
  return file === undefined || id === undefined ? undefined : { file, id }
}

/** Calls `visit` for each row of a session: its own, its messages, then their parts. Their `data` is parsed. Returns the number of rows. */
export const forEachRow = Effect.fnUntraced(function* (
  database: ForeignDatabase,
  id: string,
  visit: (row: Json, index: number) => void
) {
  let index = 0
  for (const [kind, question] of Object.entries(questions(id))) {
    yield* database.ask(question, (row) => {
      const data = typeof row.data === "string" ? parsedOrUndefined(row.data) : undefined
      visit({ ...row, kind, data }, index)
      index += 1
    })
  }
  return index
})

/** Reads a session: its row, its messages, then their parts. Positions count the rows. */
export const records = (
  database: ForeignDatabase,
  id: string,
  { from, to = Number.MAX_SAFE_INTEGER }: RecordRange,
  visit: (record: unknown, place: RecordPlace) => void
) =>
  forEachRow(database, id, (row, index) => {
    if (index >= from && index < to) visit(row, { from: index, to: index + 1, line: index + 1 })
  }).pipe(Effect.map((end) => ({ end, line: end + 1, broken: 0 })))

const rowsOf = Effect.fnUntraced(function* (path: string, { file, id }: DatabasePlace) {
  const database = yield* openDatabase(file)
  const rows: Array<Uint8Array> = []
  yield* forEachRow(database, id, (row) => rows.push(encode(`${JSON.stringify(row)}\n`)))
  return rows.length > 0 ? rows : yield* transcriptError(path, 0, `${file} holds no session ${id}`, "UnknownSession")
}, Effect.scoped)

/** Reads sessions of opencode's database as rows, one a line. */
export const sessions: Layer.Layer<never> = Layer.succeed(SessionDatabase, (path) => {
  const place = placeIn(path)
  return place === undefined ? undefined : Stream.unwrap(Effect.map(rowsOf(path, place), Stream.fromArray))
})
