/**
 * An index of all sessions in a SQLite file, with the words of each stretch of records (FTS5 without contents: the texts stay in
 * the files of the agents). It can be deleted at any time.
 *
 * One file: the tables, and when a row of them is out of date.
 */

import { Clock, Effect, Layer, Option, Schema } from "effect"
import { Buffer } from "node:buffer"
import { chmodSync, closeSync, openSync, readSync, rmSync } from "node:fs"
import path from "node:path"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { errorText } from "../../domain/text/ErrorText.ts"
import { isJson } from "../../domain/text/JsonObject.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import {
  newScan,
  type RecordedRequest,
  type ScanState,
  type SessionFacts
} from "../../domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../domain/transcripts/facts/SessionScan.ts"
import { searchedTexts } from "../../domain/transcripts/facts/SessionSearch.ts"
import { ReportProgress } from "../../services/platform/Progress.ts"
import { hashSync } from "../../services/session/Sha256.ts"
import {
  AgentSessions,
  problemOf,
  type RecordRange,
  type SessionFile,
  type SessionProblem,
  hasRecordLines
} from "../../services/transcripts/AgentSessions.ts"
import { type IndexedSession, SessionIndex } from "../../services/transcripts/SessionIndex.ts"
import { transcriptError } from "../../services/transcripts/TranscriptError.ts"
import { makeFoldersSync } from "../platform/MakeFolders.ts"
import { sqlite } from "../platform/NodeSqlite.ts"

/** The version of the tables and their content. */
const version = 15

const tables = `
  create table if not exists file (
    id integer primary key, path text not null unique, agent text not null, bytes integer not null, updated integer not null,
    head text not null, tail text not null, done integer not null, line integer not null, broken integer not null, facts text not null
  );
  create table if not exists scan (file integer primary key, requests text not null, rest text not null);
  create table if not exists stretch (id integer primary key, file integer not null, "from" integer not null, "to" integer not null, line integer not null);
  create index if not exists stretch_file on stretch (file);
  create virtual table if not exists words using fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = "unicode61 remove_diacritics 2"
  );
`

/** Characters of text in one stretch, after which the next starts. */
const stretchChars = 32_768
/** Bytes read between two commits. An interrupted update keeps what was committed. */
const commitBytes = 64 * 1024 * 1024
/** Bytes of a mark. */
const markBytes = 1_024
/** Age below which a file may still change without a new time. */
const settleMillis = 2_500

/** Opens the index. A missing or damaged one is made anew. */
const openIndex = (open: new (file: string) => DatabaseSync, folder: string): DatabaseSync => {
  const file = path.join(folder, `sessions-${version}.sqlite`)
  const opened = (): DatabaseSync => {
    makeFoldersSync(folder, 0o700)
    closeSync(openSync(file, "a", 0o600))
    chmodSync(file, 0o600)
    const database = new open(file)
    try {
      database.exec("pragma busy_timeout = 1000; pragma journal_mode = wal; pragma synchronous = normal")
      database.exec("pragma cache_size = -16000; pragma temp_store = memory; pragma journal_size_limit = 1000000")
      database.exec(tables)
      return database
    } catch (error) {
      database.close()
      throw error
    }
  }
  try {
    return opened()
  } catch (error) {
    // Another process writes: the file is fine.
    if (/locked|busy/i.test(String(error))) throw error
    for (const ending of ["", "-wal", "-shm"]) rmSync(file + ending, { force: true })
    return opened()
  }
}

/** The hash of bytes `from` to `to` of a file. */
const markOf = (file: string, from: number, to: number): string => {
  const descriptor = openSync(file, "r")
  try {
    const bytes = Buffer.alloc(Math.max(0, to - from))
    const read = readSync(descriptor, bytes, 0, bytes.length, from)
    return hashSync(bytes.subarray(0, read).toString("latin1")).slice(0, 16)
  } finally {
    closeSync(descriptor)
  }
}

/** The hashes of the beginning of a file, and of what stands before `end`, by which a file that only grew is recognized. */
const marksOf = (file: string, end: number) => ({
  head: markOf(file, 0, Math.min(markBytes, end)),
  tail: markOf(file, Math.max(0, end - markBytes), end)
})

/** What the index knows of a file. */
const FileRow = Schema.Struct({
  id: Schema.Number,
  path: Schema.String,
  bytes: Schema.Number,
  updated: Schema.Number,
  head: Schema.String,
  tail: Schema.String,
  done: Schema.Number,
  line: Schema.Number,
  broken: Schema.Number
})
type FileRow = typeof FileRow.Type
const isFileRow = Schema.is(FileRow)

const factsOf = (text: unknown): SessionFacts => {
  const value = typeof text === "string" ? parsedOrUndefined(text) : undefined
  return isJson(value) ? { prompts: 0, ...value } : { prompts: 0 }
}

/** The requests as this program stored them. */
const requestsIn = (text: unknown): ScanState["requests"] => {
  const value: unknown = typeof text === "string" ? parsedOrUndefined(text) : undefined
  return Array.isArray(value) ? value : []
}

const makeStatements = (database: DatabaseSync) => ({
  files: database.prepare("select id, path, bytes, updated, head, tail, done, line, broken from file"),
  factsOf: database.prepare("select facts from file where id = ?"),
  removeFile: database.prepare("delete from file where id = ?"),
  removeScan: database.prepare("delete from scan where file = ?"),
  removeWords: database.prepare("delete from words where rowid in (select id from stretch where file = ?)"),
  removeStretches: database.prepare("delete from stretch where file = ?"),
  addFile: database.prepare(
    "insert into file (path, agent, bytes, updated, head, tail, done, line, broken, facts) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
  ),
  changeFile: database.prepare(
    "update file set bytes = ?, updated = ?, head = ?, tail = ?, done = ?, line = ?, broken = ?, facts = ? where id = ?"
  ),
  scan: database.prepare("select requests, rest from scan where file = ?"),
  putScan: database.prepare("insert or replace into scan (file, requests, rest) values (?, ?, ?)"),
  addStretch: database.prepare('insert into stretch (file, "from", "to", line) values (?, ?, ?, ?)'),
  addWords: database.prepare("insert into words (rowid, text) values (?, ?)"),
  find: database.prepare(
    'select f.path as path, s."from" as "from", s."to" as "to", s.line as line from words w join stretch s on s.id = w.rowid join file f on f.id = s.file where words match ? order by s.id'
  ),
  requests: database.prepare("select s.requests from scan s join file f on f.id = s.file where f.path = ?"),
  facts: database.prepare("select path, broken, facts from file")
})
type Statements = { readonly [Key in keyof ReturnType<typeof makeStatements>]: StatementSync }

const forget = (statements: Statements, id: number): void => {
  statements.removeWords.run(id)
  statements.removeStretches.run(id)
  statements.removeScan.run(id)
}

const unreadRow = [-1, 0, "", "", 0, 1, 0, '{"prompts":0}'] as const

/** Forgets what was read of a file; the next update reads all of it. A savepoint would do the same and flush the words each time. */
const abandon = (statements: Statements, id: number): void => {
  forget(statements, id)
  statements.changeFile.run(...unreadRow, id)
}

/** Collects the texts of records into stretches. */
const stretches = (statements: Statements, id: number) => {
  let texts: Array<string> = []
  let size = 0
  let open: { readonly from: number; readonly line: number } | undefined
  let end = 0
  const close = () => {
    if (open === undefined || size === 0) return
    const { lastInsertRowid } = statements.addStretch.run(id, open.from, end, open.line)
    statements.addWords.run(lastInsertRowid, texts.join("\n"))
    texts = []
    size = 0
    open = undefined
  }
  return {
    close,
    add: (record: unknown, { from, line, to }: { from: number; to: number; line: number }) => {
      open ??= { from, line }
      end = to
      for (const text of searchedTexts(record)) {
        texts.push(text)
        size += text.length
      }
      if (size > stretchChars) close()
    }
  }
}

/** Returns where reading goes on: after what was read, when the file only grew; else undefined. */
const grownFrom = (file: SessionFile, row: FileRow): RecordRange | undefined => {
  if (!hasRecordLines(file) || file.bytes < row.done || row.done === 0) return undefined
  const { head, tail } = marksOf(file.path, row.done)
  return head === row.head && tail === row.tail ? { from: row.done, line: row.line } : undefined
}

/** Reads a part of a file. The file may be gone since it was listed. */
const attempt = <A>(file: SessionFile, read: () => A) =>
  Effect.try({ try: read, catch: (error) => transcriptError(file.path, 0, errorText(error)) })

/** The index that is open. */
interface Index {
  readonly database: DatabaseSync
  readonly statements: Statements
  readonly agents: AgentSessions["Service"]
}

/** Reads the new records of a file into the tables. Returns the number of bytes. */
const readFile = Effect.fnUntraced(function* (
  { agents, statements }: Index,
  file: SessionFile,
  row: FileRow | undefined,
  now: number
) {
  const grown = row === undefined ? undefined : yield* attempt(file, () => grownFrom(file, row))
  const id = row?.id
  const state = newScan()
  if (id !== undefined && grown === undefined) forget(statements, id)
  if (id !== undefined && grown !== undefined) {
    const kept = statements.scan.get(id)
    const rest = typeof kept?.rest === "string" ? parsedOrUndefined(kept.rest) : undefined
    Object.assign(state.facts, factsOf(statements.factsOf.get(id)?.facts))
    for (const each of requestsIn(kept?.requests)) state.requests.push(each)
    if (isJson(rest)) Object.assign(state, rest, { facts: state.facts, requests: state.requests })
  }
  const key = id ?? Number(statements.addFile.run(file.path, file.agent, ...unreadRow).lastInsertRowid)
  const words = stretches(statements, key)
  const from = grown ?? { from: 0, line: 1 }
  const read = yield* agents
    .records(file, from, (record, place) => {
      if (file.kind !== "text") scanRecord(state, file.agent, record)
      words.add(record, place)
    })
    .pipe(Effect.onError(() => Effect.sync(() => abandon(statements, key))))
  words.close()
  const broken = read.broken + (grown === undefined ? 0 : (row?.broken ?? 0))
  const { head, tail } = yield* attempt(file, () =>
    hasRecordLines(file) ? marksOf(file.path, read.end) : { head: "", tail: "" }
  )
  // A file that may still change within the same tick is read again by the next update.
  const updated = file.agent !== "opencode" && now - file.updatedAt < settleMillis ? 0 : file.updatedAt
  const facts = JSON.stringify(state.facts)
  statements.changeFile.run(file.bytes, updated, head, tail, read.end, read.line, broken, facts, key)
  const { changes, last } = state
  statements.putScan.run(key, JSON.stringify(state.requests), JSON.stringify({ changes, last }))
  return read.end - from.from
})

const transaction = <A, E, R>({ database }: Index, work: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => database.exec("begin immediate")),
    () => work,
    () => Effect.sync(() => database.exec("commit"))
  )

const removeRows = ({ statements }: Index, rows: ReadonlyArray<FileRow>) =>
  Effect.sync(() => {
    for (const { id } of rows) {
      forget(statements, id)
      statements.removeFile.run(id)
    }
  })

/** Reads files whose rows are out of date, and commits after every `commitBytes`. Returns those that cannot be read. */
const readFiles = Effect.fnUntraced(function* (
  index: Index,
  files: ReadonlyArray<SessionFile>,
  rows: ReadonlyMap<string, FileRow>
) {
  const report = yield* ReportProgress
  const now = yield* Clock.currentTimeMillis
  const problems: Array<SessionProblem> = []
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  let at = 0
  const readSome = Effect.gen(function* () {
    for (let bytes = 0; at < files.length && bytes < commitBytes; at += 1) {
      const file = files[at]
      if (file === undefined) return
      report({ done, total, unit: "bytes" })
      const read = yield* Effect.result(readFile(index, file, rows.get(file.path), now))
      if (read._tag === "Success") bytes += read.success
      else problems.push(problemOf(file.path, read.failure.message))
      done += file.bytes
    }
  })
  while (at < files.length) yield* transaction(index, readSome)
  return problems
})

const update = Effect.fnUntraced(
  function* (index: Index, all: ReadonlyArray<SessionFile>) {
    const rows = new Map(
      index.statements.files
        .all()
        .filter(isFileRow)
        .map((row) => [row.path, row])
    )
    const paths = new Set(all.map((file) => file.path))
    const removed = [...rows].flatMap(([path, row]) => (paths.has(path) ? [] : [row]))
    if (removed.length > 0) yield* transaction(index, removeRows(index, removed))
    const stale = all.filter((file) => {
      const row = rows.get(file.path)
      return row === undefined || row.bytes !== file.bytes || row.updated !== file.updatedAt
    })
    return yield* readFiles(index, stale, rows)
  },
  // A full disk, or another process that writes for long, leaves the index as it is.
  Effect.catchDefect((defect) =>
    Effect.succeed<Array<SessionProblem>>([
      {
        path: "the index of sessions",
        message: `cannot be updated now (${defect instanceof Error ? defect.message : "unknown"}); what is new is missing`
      }
    ])
  )
)

const sessionsIn = ({ facts }: Statements) =>
  new Map(
    facts
      .all()
      .map(({ broken, facts: text, path: file }): readonly [string, IndexedSession] => [
        String(file),
        { facts: factsOf(text), broken: Number(broken) }
      ])
  )

const requestsOf = ({ requests }: Statements, files: ReadonlyArray<SessionFile>) => {
  const byFile = new Map<string, ReadonlyArray<RecordedRequest>>()
  for (const { path: file } of files) {
    const row = requests.get(file)
    if (row !== undefined) byFile.set(file, requestsIn(row.requests))
  }
  return byFile
}

/** The stretches that have a word with each of these prefixes, by file. */
const rangesWith = ({ find }: Statements, prefixes: ReadonlyArray<string>) => {
  if (prefixes.length === 0) return undefined
  const ranges = new Map<string, Array<RecordRange>>()
  const query = prefixes.map((prefix) => `"${prefix.replaceAll('"', "")}"*`).join(" AND ")
  for (const row of find.iterate(query)) {
    const file = String(row.path)
    const list = ranges.get(file) ?? []
    ranges.set(file, list)
    list.push({ from: Number(row.from), to: Number(row.to), line: Number(row.line) })
  }
  return ranges
}

const make = Effect.fnUntraced(function* (database: DatabaseSync) {
  const statements = makeStatements(database)
  const index: Index = { database, statements, agents: yield* AgentSessions }
  return SessionIndex.of({
    isKept: true,
    update: (files) => update(index, files),
    sessions: () => Effect.sync(() => sessionsIn(statements)),
    requests: (files) => Effect.sync(() => requestsOf(statements, files)),
    ranges: (prefixes) => Effect.sync(() => rangesWith(statements, prefixes))
  })
})

/** The index in a folder, which is created with mode 0700. A Node without SQLite reads the files instead. */
export const layer = (folder: string): Layer.Layer<SessionIndex, never, AgentSessions> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const found = yield* sqlite
      if (found === undefined) return SessionIndex.layerReading
      const database = yield* Effect.try({ try: () => openIndex(found.DatabaseSync, folder), catch: errorText }).pipe(
        Effect.tapError((message) => Effect.logDebug(`the index of sessions cannot be opened: ${message}`)),
        Effect.option
      )
      if (Option.isNone(database)) return SessionIndex.layerReading
      return Layer.effect(
        SessionIndex,
        Effect.acquireRelease(Effect.succeed(database.value), (open) => Effect.sync(() => open.close())).pipe(
          Effect.flatMap(make)
        )
      )
    })
  )
