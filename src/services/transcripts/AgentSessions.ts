/** The contract of reading sessions where their agents keep them: files, records and problems. */

import { Context, type Effect } from "effect"
import type { AgentName, SessionPlace, SessionRoot } from "../../domain/transcripts/AgentFolders.ts"
import type { TranscriptError } from "./TranscriptError.ts"

/** A session file of an agent, or a session in an agent's database. */
export interface SessionFile extends SessionPlace {
  readonly agent: AgentName
  /** The path of the file; for a session in a database, the path of the database, `#` and the id. */
  readonly path: string
  readonly bytes: number
  /** Milliseconds since 1970. */
  readonly updatedAt: number
  /** The folder that the session belongs to, where its place says so. The records of most sessions say it themselves. */
  readonly folder: string | undefined
}

/** Whether a file has one record a line, so that the beginning can be read alone, and what was added since. */
export const hasRecordLines = (file: SessionFile): boolean => file.agent !== "opencode" && file.path.endsWith(".jsonl")

/** A folder or file that cannot be read. */
export interface SessionProblem {
  readonly path: string
  readonly message: string
}

/** Makes the problem of a file that cannot be read. */
export const problemOf = (path: string, message: string): SessionProblem => ({
  path,
  message: message.replace(`${path}: `, "")
})

/** A part of a file, to read its records alone: bytes `from` to `to`, or positions in a document or database. */
export interface RecordRange {
  readonly from: number
  /** The end of the file when absent. */
  readonly to?: number
  /** The number of the line that begins at `from`, from 1. */
  readonly line: number
}

/** Where a record lies. */
export type RecordPlace = Required<RecordRange>

/** What reading records found beside them. */
export interface RecordsRead {
  /** The end of the last whole record. What follows is not complete yet. */
  readonly end: number
  /** The number of the line that begins there. */
  readonly line: number
  /** Lines that are no JSON. */
  readonly broken: number
}

/** The sessions of every agent on this machine. Reads only, and changes no file of an agent. */
export class AgentSessions extends Context.Service<
  AgentSessions,
  {
    /** The folders below which the agents keep their sessions. None of them needs to exist. */
    readonly roots: Effect.Effect<ReadonlyArray<SessionRoot>>
    /** Lists the sessions of these agents, or of all, newest first. A folder that does not exist is no problem. */
    readonly files: (agents?: ReadonlyArray<AgentName>) => Effect.Effect<{
      readonly files: ReadonlyArray<SessionFile>
      readonly problems: ReadonlyArray<SessionProblem>
    }>
    /**
     * Reads the records of a session in order, as JSON values, in constant memory. Lines that are no JSON are counted. Our own
     * logs are followed by the texts of their blobs. `pause` runs each time before more of a file is read.
     */
    readonly records: <E = never>(
      file: SessionFile,
      range: RecordRange,
      visit: (record: unknown, place: RecordPlace) => void,
      pause?: Effect.Effect<void, E>
    ) => Effect.Effect<RecordsRead, TranscriptError | E>
  }
>()("palimpsest/services/transcripts/AgentSessions") {}
