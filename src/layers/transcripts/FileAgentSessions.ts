/**
 * Finds the sessions of the agents on the disk, and reads them.
 *
 * Files are listed and read synchronously, in slices: thousands take a tenth of the time they take through the thread pool.
 */

import { Effect, Layer, RcMap } from "effect"
import { Buffer } from "node:buffer"
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs"
import { homedir } from "node:os"
import path from "node:path"
import { decode, joinBytes } from "../../domain/text/Bytes.ts"
import { isJson } from "../../domain/text/JsonObject.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import {
  AgentName,
  geminiProjects,
  maxFolderDepth,
  sessionPlace,
  type SessionRoot,
  sessionRoots
} from "../../domain/transcripts/AgentFolders.ts"
import { isRecordList, recordsByLine } from "../../domain/transcripts/RecordList.ts"
import { Environment } from "../../services/platform/Environment.ts"
import { SessionFiles } from "../../services/session/SessionFiles.ts"
import {
  AgentSessions,
  problemOf,
  type RecordPlace,
  type RecordRange,
  type SessionFile,
  type SessionProblem
} from "../../services/transcripts/AgentSessions.ts"
import { inUtf8, LineSplitter, lineText } from "../../services/transcripts/LineSplitter.ts"
import { transcriptError, type TranscriptError } from "../../services/transcripts/TranscriptError.ts"
import { maxLineBytes } from "../../services/transcripts/TranscriptReader.ts"
import * as ForeignDatabase from "./ForeignDatabase.ts"
import * as OpencodeDatabase from "./OpencodeDatabase.ts"

const chunkBytes = 512 * 1024
/** A larger document is not read. */
const maxDocumentBytes = 256 * 1024 * 1024
/** The size of the pieces in which a text without records is read. */
const textPieceBytes = 32 * 1024

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "string" ? error.code : "EIO"

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "is a directory"
}

const reasonOf = (error: unknown): string => reasons[codeOf(error)] ?? `cannot be read (${codeOf(error)})`

const attempt = <A>(file: string, read: () => A) =>
  Effect.try({ try: read, catch: (error) => transcriptError(file, 0, reasonOf(error)) })

interface Listed {
  readonly files: Array<SessionFile>
  readonly problems: Array<SessionProblem>
}

/** Returns the text of a file that not every version of an agent has; empty without it. */
const textIn = (folder: string, name: string): string => {
  try {
    return readFileSync(path.join(folder, name), "utf8").trim()
  } catch {
    return ""
  }
}

/** Lists the session files of a root, in slices. */
const listRoot = Effect.fnUntraced(function* ({ agent, path: root }: SessionRoot, { files, problems }: Listed) {
  const projects = agent === "gemini" ? geminiProjects(textIn(path.dirname(root), "projects.json")) : undefined
  const folders = [{ relative: "", depth: 0 }]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const { depth, relative } = folder
    const directory = relative === "" ? root : path.join(root, relative)
    let hint: string | undefined
    try {
      for (const entry of readdirSync(directory, { withFileTypes: true })) {
        const name = relative === "" ? entry.name : `${relative}/${entry.name}`
        if (entry.isDirectory()) {
          if (depth < maxFolderDepth[agent]) folders.push({ relative: name, depth: depth + 1 })
          continue
        }
        const place = sessionPlace(agent, name)
        if (place === undefined) continue
        const file = path.join(directory, entry.name)
        const info = statSync(file, { throwIfNoEntry: false })
        if (info?.isFile() !== true) continue
        if (projects !== undefined) {
          const project = name.slice(0, name.indexOf("/"))
          hint ??= projects.get(project) ?? textIn(path.join(root, project), ".project_root")
        }
        const updatedAt = Math.floor(info.mtimeMs)
        files.push({ agent, ...place, path: file, bytes: info.size, updatedAt, folder: hint || undefined })
      }
    } catch (error) {
      const code = codeOf(error)
      if (code !== "ENOENT" && code !== "ENOTDIR") problems.push({ path: directory, message: reasonOf(error) })
    }
    yield* Effect.yieldNow
  }
})

type Visit = (record: unknown, place: RecordPlace) => void

/** An open file, and what runs between its chunks. */
interface Opened<E> {
  readonly file: string
  readonly descriptor: number
  readonly pause: Effect.Effect<void, E>
}

/** Reads the chunks of an open file from `from` to `to`. */
const forEachChunk = Effect.fnUntraced(function* <E>(
  { descriptor, file, pause }: Opened<E>,
  { from, to = Number.MAX_SAFE_INTEGER }: RecordRange,
  take: (chunk: Uint8Array) => void
) {
  for (let at = from; at < to;) {
    // The splitter keeps parts of a chunk, so each has a buffer of its own.
    const buffer = Buffer.allocUnsafeSlow(Math.min(chunkBytes, to - at))
    const read = yield* attempt(file, () => readSync(descriptor, buffer, 0, buffer.length, at))
    if (read === 0) return
    take(buffer.subarray(0, read))
    at += read
    yield* pause
  }
})

const readLines = Effect.fnUntraced(function* <E>(opened: Opened<E>, range: RecordRange, visit: Visit) {
  const splitter = new LineSplitter()
  let { from: end, line } = range
  let broken = 0
  let isSkipping = false
  const accept = (bytes: Uint8Array, to: number): boolean => {
    if (bytes.length === 0 || isSkipping) return true
    const record = parsedOrUndefined(lineText(bytes, line))
    if (record === undefined) return false
    visit(record, { from: end, to, line })
    return true
  }
  yield* forEachChunk(opened, range, (chunk) => {
    for (const bytes of splitter.push(chunk)) {
      const to = end + bytes.length + 1
      if (!accept(bytes, to)) broken += 1
      end = to
      line += 1
      isSkipping = false
    }
    if (splitter.pending <= maxLineBytes) return
    // A line that is longer than any record is left out and not held.
    end += splitter.rest().length
    broken += isSkipping ? 0 : 1
    isSkipping = true
  })
  // A last line without a line break may be complete; else it is still being written.
  const rest = splitter.rest()
  if (rest.length > 0 && accept(rest, end + rest.length)) end += rest.length
  return { end, line, broken }
})

/** Reads a text that has no records in pieces of whole lines. */
const readText = Effect.fnUntraced(function* <E>(opened: Opened<E>, range: RecordRange, visit: Visit) {
  let { from: end, line } = range
  let held: Array<Uint8Array> = []
  let size = 0
  const give = () => {
    if (size === 0) return
    const { text } = decode(joinBytes(held))
    visit({ text }, { from: end, to: end + size, line })
    end += size
    line += text.split("\n").length - 1
    held = []
    size = 0
  }
  yield* forEachChunk(opened, range, (chunk) => {
    for (let from = 0; from < chunk.length;) {
      const brk = chunk.indexOf(10, Math.min(chunk.length, from + textPieceBytes))
      const to = brk < 0 ? chunk.length : brk + 1
      held.push(chunk.subarray(from, to))
      size += to - from
      from = to
      if (brk >= 0 || size > textPieceBytes * 4) give()
    }
  })
  give()
  return { end, line, broken: 0 }
})

/** Returns the records of a text in which they stand over several lines each; undefined for any other text. */
const recordsOver = (text: string): ReadonlyArray<unknown> | undefined => {
  const records = recordsByLine(text)
    .split("\n")
    .flatMap((line) => parsedOrUndefined(line) ?? [])
  return records.length === 0 ? undefined : records
}

/** Reads a file that is one document, or has no record on one line: its own record without the list, then the items of the list. */
const readDocument = Effect.fnUntraced(function* (
  file: SessionFile,
  { from, to = Number.MAX_SAFE_INTEGER }: RecordRange,
  visit: Visit
) {
  if (file.bytes > maxDocumentBytes) {
    return yield* transcriptError(file.path, 0, "the document is longer than 256 MiB")
  }
  const text = lineText(inUtf8()(yield* attempt(file.path, () => readFileSync(file.path))), 1)
  const document = parsedOrUndefined(text) ?? recordsOver(text)
  if (document === undefined) return yield* transcriptError(file.path, 0, "not JSON; it may be half written")
  const { history, messages, ...head } = isJson(document) ? document : { messages: document }
  const list = [messages, history].find((one) => Array.isArray(one)) ?? []
  const records = [head, ...list]
  for (const [index, record] of records.entries()) {
    if (index >= from && index < to) visit(record, { from: index, to: index + 1, line: index + 1 })
  }
  return { end: file.bytes, line: records.length + 1, broken: 0 }
})

const recordsInFile = Effect.fnUntraced(function* <E = never>(
  file: SessionFile,
  range: RecordRange,
  visit: Visit,
  pause: Effect.Effect<void, E> = Effect.void
) {
  if (file.path.endsWith(".json") && file.kind !== "text") return yield* readDocument(file, range, visit)
  return yield* Effect.acquireUseRelease(
    attempt(file.path, () => openSync(file.path, "r")),
    (descriptor) =>
      Effect.gen(function* () {
        const head = Buffer.alloc(Math.min(4_096, fstatSync(descriptor).size))
        yield* attempt(file.path, () => readSync(descriptor, head, 0, head.length, 0))
        const start = inUtf8()(head)
        if (start.includes(0)) return yield* transcriptError(file.path, 0, "is binary; expected UTF-8 text")
        if (file.kind !== "text" && (start !== head || isRecordList(lineText(start, 1))))
          return yield* readDocument(file, range, visit)
        const read = file.kind === "text" ? readText : readLines
        const opened = { file: file.path, descriptor, pause: Effect.andThen(pause, Effect.yieldNow) }
        return yield* read(opened, range, visit)
      }),
    (descriptor) => Effect.sync(() => closeSync(descriptor))
  )
})

/** Databases that are open. One process reads a database for all that follows in short order. */
const openDatabases = Effect.map(
  RcMap.make({ lookup: ForeignDatabase.open, idleTimeToLive: "2 seconds" }),
  (databases) =>
    <A>(file: string, use: (database: ForeignDatabase.ForeignDatabase) => Effect.Effect<A, TranscriptError>) =>
      RcMap.get(databases, file).pipe(
        Effect.flatMap(use),
        Effect.scoped,
        // The process ended with what was interrupted.
        Effect.onInterrupt(() => RcMap.invalidate(databases, file))
      )
)

/** The agents' sessions on this machine, in the folders that the environment names. */
export const layer: Layer.Layer<AgentSessions, never, Environment | SessionFiles> = Layer.effect(
  AgentSessions,
  Effect.gen(function* () {
    const environment = yield* Environment
    const own = yield* SessionFiles
    const inDatabase = yield* openDatabases
    const roots = Effect.map(environment.variables, (variables) =>
      sessionRoots({ home: homedir(), variables, ownSessions: own.folder })
    )
    const listDatabase = Effect.fnUntraced(function* (file: string, { files, problems }: Listed) {
      if (statSync(file, { throwIfNoEntry: false }) === undefined) return
      const found = yield* Effect.result(inDatabase(file, (database) => OpencodeDatabase.list(database, file)))
      if (found._tag === "Success") for (const each of found.success) files.push(each)
      else problems.push(problemOf(file, found.failure.message))
    })
    const files = Effect.fnUntraced(function* (agents: ReadonlyArray<AgentName> = AgentName.literals) {
      const listed: Listed = { files: [], problems: [] }
      for (const root of yield* roots) {
        if (!agents.includes(root.agent)) continue
        if (root.agent === "opencode") yield* listDatabase(root.path, listed)
        else yield* listRoot(root, listed)
      }
      listed.files.sort((a, b) => b.updatedAt - a.updatedAt || (a.path < b.path ? -1 : 1))
      return listed
    })
    const records = <E = never>(
      file: SessionFile,
      range: RecordRange,
      visit: Visit,
      pause?: Effect.Effect<void, E>
    ) => {
      if (file.agent !== "opencode") return recordsInFile(file, range, visit, pause)
      const place = OpencodeDatabase.placeIn(file.path)
      if (place === undefined && file.path.endsWith(".json")) return recordsInFile(file, range, visit, pause)
      return place === undefined
        ? Effect.fail(transcriptError(file.path, 0, "names no session of a database"))
        : inDatabase(place.file, (database) => OpencodeDatabase.records(database, place.id, range, visit)).pipe(
            Effect.mapError(({ message }) => transcriptError(file.path, 0, problemOf(place.file, message).message))
          )
    }
    return { roots, files, records }
  })
)
