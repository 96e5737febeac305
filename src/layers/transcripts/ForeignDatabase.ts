/**
 * Reads a SQLite database that another program made, or another person.
 *
 * Node's SQLite cannot be interrupted, and a file can keep it busy for ever: a view without an end, or pages that refer to each
 * other. So a process of its own reads the database, which can be killed in the middle of a statement; a thread could not be, and
 * would keep this program from ending. It opens the file for reading only and reads stored columns of tables: no views, no virtual
 * tables, no computed columns. Time, rows and bytes of an answer are bounded.
 */

import { Effect, type Scope, Semaphore } from "effect"
import { spawn } from "node:child_process"
import { statSync } from "node:fs"
import process from "node:process"
import { decode } from "../../domain/text/Bytes.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import { isJson, type Json } from "../../domain/text/JsonObject.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { textAt } from "../../domain/transcripts/JsonRecord.ts"
import { LineSplitter } from "../../services/transcripts/LineSplitter.ts"
import { transcriptError, type TranscriptError } from "../../services/transcripts/TranscriptError.ts"
import { maxLineBytes } from "../../services/transcripts/TranscriptReader.ts"
import { sqlite } from "../platform/NodeSqlite.ts"

/** A question to a database, in statements of ours. */
export interface DatabaseQuestion {
  /** The tables that the statements read, with the columns. In a statement, `{table}` stands for those that the table has. */
  readonly tables: Readonly<Record<string, ReadonlyArray<string>>>
  /** With `row`, it selects only keys: `id`, and `at`, by which the rows are sorted. The database sorts nothing, so it needs no space. */
  readonly sql: string
  readonly params: ReadonlyArray<string>
  /** Selects the row of a key. */
  readonly row?: string
  readonly maxRows: number
}

/** A database that is open for reading. Once it did not answer in time, it is not asked again. */
export interface ForeignDatabase {
  /** Calls `visit` for each row of the answer. */
  readonly ask: (question: DatabaseQuestion, visit: (row: Json) => void) => Effect.Effect<void, TranscriptError>
}

/** Time for one question. */
const maxSeconds = 60
const lost = "the process that reads it ended"
const late = `there was no answer within ${maxSeconds} s`
/** Characters of all rows of an answer. */
const maxAnswerChars = 512 * 1024 * 1024
/** Characters of a key; those of real ones are some 30. */
const maxKeyChars = 1_000

/**
 * The program of the process. It is a text and not a file, because the built program is one bundle. A thread reads the questions:
 * it sees the end of standard input, and so of the program that asks, while a statement runs.
 */
const program = `
const { writeSync } = require("node:fs")
const { Worker } = require("node:worker_threads")
const [file, questions, ...limits] = process.argv.slice(1)
const [maxRowChars, maxAnswerChars, maxKeyChars] = limits.map(Number)

let held = []
let heldChars = 0
const flush = () => {
  const bytes = Buffer.from(held.join(""))
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at)
  held = []
  heldChars = 0
}
const print = (value) => {
  const line = JSON.stringify(value, (key, cell) => (ArrayBuffer.isView(cell) ? null : cell)) + "\\n"
  held.push(line)
  heldChars += line.length
  if (heldChars > 65536) flush()
  return line.length
}

let opened
const database = () => {
  if (opened !== undefined) return opened
  const { DatabaseSync } = require("node:sqlite")
  opened = new DatabaseSync(file, { readOnly: true })
  opened.exec("pragma trusted_schema = off; pragma cell_size_check = on; pragma query_only = on; pragma mmap_size = 0")
  return opened
}

// Returns the columns that the table has. As SQLite understood the schema: its rows can say something else, and a table can have a pragma's name.
const check = (name, columns) => {
  const table = database().prepare("pragma main.table_list(" + name + ")").get()
  if (table === undefined) throw new Error("it has no table " + name)
  if (table.type !== "table") {
    throw new Error(name + " is a " + (table.type === "view" ? "view" : table.type + " table") + "; only plain tables are read")
  }
  const existing = database().prepare("pragma main.table_xinfo(" + name + ")").all().filter((column) => columns.includes(column.name.toLowerCase()))
  const computed = existing.find(({ hidden }) => hidden !== 0)
  if (computed !== undefined) throw new Error(name + "." + computed.name + " is computed; only stored values are read")
  return existing.map((column) => column.name.toLowerCase()).join(", ")
}

function* keys(statement, params) {
  for (const key of statement.iterate(...params)) {
    if (typeof key.id !== "string" || key.id.length > maxKeyChars) throw new Error("an id is longer than " + maxKeyChars + " characters")
    yield { id: key.id, at: Number(key.at) || 0 }
  }
}

function* bounded(rows, maxRows) {
  let count = 0
  for (const row of rows) {
    count += 1
    if (count > maxRows) throw new Error("it holds more than " + maxRows + " rows")
    yield row
  }
}

function* rowsOf({ maxRows, params, row, sql, tables }) {
  const columns = {}
  for (const [name, known] of Object.entries(tables)) columns[name] = check(name, known)
  const prepare = (text) => database().prepare(text.replace(/\\{(\\w+)\\}/g, (_, name) => columns[name]))
  if (row === undefined) return yield* bounded(prepare(sql).iterate(...params), maxRows)
  const sorted = [...bounded(keys(prepare(sql), params), maxRows)].sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
  const one = prepare(row)
  for (const { id } of sorted) {
    const found = one.get(id)
    if (found !== undefined) yield found
  }
}

const answer = (question) => {
  let chars = 0
  for (const row of rowsOf(question)) {
    let rowChars = 0
    for (const cell of Object.values(row)) if (typeof cell === "string") rowChars += cell.length
    if (rowChars > maxRowChars) throw new Error("a row is longer than " + maxRowChars + " characters")
    chars += print({ row })
    if (chars > maxAnswerChars) throw new Error("the answer is longer than " + maxAnswerChars + " characters")
  }
}

// An answer that nobody takes, or a lack of memory.
process.on("uncaughtException", () => process.kill(process.pid, "SIGKILL"))
// With streams of its own: connected to those of the process, it would make writing to them fail where a reader is slow.
new Worker(questions, { eval: true, stdout: true, stderr: true }).on("message", (question) => {
  try {
    // Own JSON: the process that reads the answers wrote it.
    answer(JSON.parse(question))
    print({ end: true })
  } catch (error) {
    print({ error: String(error.message) })
  }
  flush()
})
`

/** The program of the thread: a question is a line. */
const questionThread = `
const { read } = require("node:fs")
const { StringDecoder } = require("node:string_decoder")
const { parentPort } = require("node:worker_threads")
const decoder = new StringDecoder("utf8")
const chunk = Buffer.alloc(65536)
let pending = ""
const next = () =>
  read(0, chunk, 0, chunk.length, null, (error, size) => {
    if (error || size === 0) return process.kill(process.pid, "SIGKILL")
    const lines = (pending + decoder.write(chunk.subarray(0, size))).split("\\n")
    pending = lines.pop()
    for (const line of lines) parentPort.postMessage(line)
    next()
  })
next()
`

/** Returns why a path cannot be a database; opening a pipe would wait for a writer. SQLite also opens the files beside it. */
const fileProblem = (file: string): string | undefined => {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return "cannot be opened (no such file)"
  for (const ending of ["", "-wal", "-shm", "-journal"]) {
    if (statSync(file + ending, { throwIfNoEntry: false })?.isFile() === false) {
      return `cannot be opened (${ending === "" ? "it" : `the file with the ending ${ending}`} is not a regular file)`
    }
  }
  return undefined
}

const reasonIn = (reply: unknown): string => (isJson(reply) && textAt(reply, "error")) || "unknown"

const start = (file: string) => {
  const limits = [maxLineBytes, maxAnswerChars, maxKeyChars].map(String)
  const child = spawn(process.execPath, ["-e", program, "--", file, questionThread, ...limits], {
    env: {},
    stdio: ["pipe", "pipe", "ignore"],
    windowsHide: true
  })
  child.stdin.on("error", () => {})
  return child
}

type Unreadable = (reason: string) => Effect.Effect<never, TranscriptError>

/** Asks a question, and takes the rows of its answer. */
const answered = (
  child: ReturnType<typeof start>,
  question: DatabaseQuestion,
  visit: (row: Json) => void,
  unreadable: Unreadable
): Effect.Effect<void, TranscriptError> =>
  Effect.callback((resume) => {
    const splitter = new LineSplitter()
    const leave = () => {
      child.stdout.off("data", onData)
      child.off("close", onClose)
    }
    const settle = (result: Effect.Effect<void, TranscriptError>) => {
      leave()
      resume(result)
    }
    const onLine = (line: Uint8Array) => {
      const reply = parsedOrUndefined(decode(line).text)
      if (isJson(reply) && isJson(reply.row)) visit(reply.row)
      else settle(isJson(reply) && reply.end === true ? Effect.void : unreadable(reasonIn(reply)))
    }
    const onData = (chunk: Uint8Array) => {
      try {
        splitter.push(chunk).forEach(onLine)
      } catch (error) {
        settle(Effect.die(error))
      }
    }
    const onClose = () => settle(unreadable(lost))
    child.stdout.on("data", onData)
    child.on("close", onClose)
    child.stdin.write(`${JSON.stringify(question)}\n`)
    return Effect.sync(leave)
  })

/** Opens a database for reading. The process that reads it starts here and ends with the scope. */
export const open = Effect.fn("ForeignDatabase.open")(function* (
  file: string
): Effect.fn.Return<ForeignDatabase, TranscriptError, Scope.Scope> {
  if ((yield* sqlite) === undefined) {
    return yield* transcriptError(file, 0, "is a database, which this Node cannot read; use Node 22.13 or newer")
  }
  const problem = yield* Effect.try({
    try: () => fileProblem(file),
    catch: (error) => transcriptError(file, 0, `cannot be opened (${String(error)})`)
  })
  if (problem !== undefined) return yield* transcriptError(file, 0, problem)
  const unreadable: Unreadable = (reason) => Effect.fail(transcriptError(file, 0, `cannot be read (${reason})`))
  const child = yield* Effect.acquireRelease(
    Effect.try({ try: () => start(file), catch: errorText }).pipe(Effect.catch(unreadable)),
    (started) => Effect.sync(() => started.kill("SIGKILL"))
  )
  const alone = yield* Semaphore.make(1)
  /** Why the process answers no more. */
  let ended: string | undefined
  const end = (reason: string) => {
    ended ??= reason
    child.kill("SIGKILL")
  }
  child.on("error", (error) => end(error.message))
  child.on("close", () => end(lost))
  return {
    ask: (question, visit) =>
      Effect.suspend(() =>
        ended === undefined ? answered(child, question, visit, unreadable) : unreadable(ended)
      ).pipe(
        Effect.timeoutOrElse({
          duration: `${maxSeconds} seconds`,
          orElse: () =>
            Effect.suspend(() => {
              end(late)
              return unreadable(late)
            })
        }),
        // The rest of an answer would be taken for the next one.
        Effect.onInterrupt(() => Effect.sync(() => end("the reading was interrupted"))),
        alone.withPermit
      )
  }
})
