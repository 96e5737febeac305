/** Reads session logs as files from any origin: every event is checked against the earlier ones. */

import { Effect, FileSystem, Path, Result } from "effect"
import { checkNextEvent, logSoFar } from "../../domain/session/EventOrder.ts"
import {
  type DecodedLine,
  decodeLine,
  type LineProblem,
  lineProblemText,
  restoreSpilled
} from "../../domain/session/LogFormat.ts"
import { LongLogReader } from "../../domain/session/LongLog.ts"
import { applyEvent, emptySession, type SessionEvent, type Spilled } from "../../domain/session/Session.ts"
import { decode } from "../../domain/text/Bytes.ts"
import { type Problem, recordProblem } from "../../domain/transcripts/Problem.ts"
import { Skipped } from "../../domain/transcripts/Skipped.ts"
import { blobFolderOf, TempStore } from "../session/TempStore.ts"
import { transcriptError, unreadable } from "./TranscriptError.ts"
import type { RecordLines } from "./TranscriptReader.ts"

/** Memory limit for the events of a log of which the beginnings of texts are enough, and the memory of one event, in bytes. */
const maxHeldBytes = 64_000_000
const eventCost = { byte: 2, least: 1_700 }

const lineProblem = (line: number, problem: LineProblem): Problem => recordProblem("", lineProblemText(problem), line)

/** Returns the folders that may hold the blobs of a log. */
const blobFolders = (path: string, paths: Path.Path): ReadonlyArray<string> => {
  const { dir, name } = paths.parse(path)
  // A log that belongs to a file of another format is stored among its blobs.
  return [...new Set([blobFolderOf(path), paths.join(dir, `${name}.blobs`), ...(dir.endsWith(".blobs") ? [dir] : [])])]
}

const readBlob = Effect.fnUntraced(function* (path: string, number: number, note: Spilled) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const store = yield* TempStore
  if (path === "-") {
    return yield* transcriptError(
      path,
      number,
      `the stored part ${note.hash} is not in the log; read the file by its name, with its folder of blobs beside it`
    )
  }
  const folders = blobFolders(path, paths)
  for (const folder of folders) {
    const bytes = yield* Effect.result(fs.readFile(paths.join(folder, note.hash)))
    if (Result.isFailure(bytes)) {
      if (bytes.failure.reason._tag === "NotFound") continue
      return yield* transcriptError(path, number, unreadable(paths.join(folder, note.hash), bytes.failure).message)
    }
    if (bytes.success.length !== note.size || (yield* store.hash(bytes.success)) !== note.hash) {
      return yield* transcriptError(path, number, `the stored part ${paths.join(folder, note.hash)} is damaged`)
    }
    return decode(bytes.success).text
  }
  return yield* transcriptError(
    path,
    number,
    `the stored part ${note.hash} is missing; expected it in ${folders.join(" or ")}`
  )
})

/** Returns the event of a line with its stored parts, and their characters. */
const withSpilled = Effect.fnUntraced(function* (path: string, number: number, line: DecodedLine) {
  const texts = new Map<string, string>()
  for (const [key, note] of line.spilled) texts.set(key, yield* readBlob(path, number, note))
  const event = restoreSpilled(line, texts)
  if (Result.isFailure(event)) return yield* transcriptError(path, number, lineProblemText(event.failure))
  const chars = [...texts.values()].reduce((total, { length }) => total + length, 0)
  return { event: event.success, chars }
})

/** Reads the lines of a session log. `shortens`: of a log too long for memory, the texts are shortened. */
export const sessionLogLines = (path: string, lenient: boolean, shortens: boolean): RecordLines => {
  const skipped = new Skipped()
  let events: Array<SessionEvent> = []
  let sizes: Array<number> = []
  let session = emptySession
  let bytes = 0
  /** Set once the log is too long. */
  let long: LongLogReader | undefined
  const add = (event: SessionEvent, size: number): void => {
    if (long !== undefined) {
      long.add(event, size)
      session = long.log.session
      return
    }
    session = applyEvent(session, event)
    events.push(event)
    if (!shortens) return
    sizes.push(size)
    bytes += eventCost.least + eventCost.byte * size
    if (bytes <= maxHeldBytes) return
    long = new LongLogReader()
    for (const [at, held] of events.entries()) long.add(held, sizes[at] ?? 0)
    events = []
    sizes = []
    session = long.log.session
  }
  return {
    line: Effect.fnUntraced(function* (value, text, number) {
      const decoded = decodeLine(value)
      if (Result.isFailure(decoded)) {
        const problem = decoded.failure
        return problem._tag === "NewerVersion"
          ? yield* transcriptError(path, number, lineProblemText(problem))
          : lineProblem(number, problem)
      }
      if (decoded.success === undefined) {
        skipped.add("ignorable event")
        return undefined
      }
      const { chars, event } = yield* withSpilled(path, number, decoded.success)
      const problem = checkNextEvent(logSoFar(session), event, lenient)
      if (problem !== undefined) return lineProblem(number, problem)
      add(event, text.length + chars)
      return undefined
    }),
    end: Effect.suspend(() => {
      if (session.started === undefined) {
        return Effect.fail(transcriptError(path, 0, "expected the event Started, which opens every palimpsest log"))
      }
      const log = long?.log
      return Effect.succeed({
        events: log?.events ?? events,
        session,
        skipped: skipped.counts,
        transcript: undefined,
        long: log
      })
    })
  }
}
