/** What reading a conversation from a file returns, and what it takes. */

import type { Effect, FileSystem, Path, Stdio } from "effect"
import type { LongLog } from "../../domain/session/LongLog.ts"
import { applyEvent, emptySession, type Session, type SessionEvent } from "../../domain/session/Session.ts"
import type { SourceFormat, Transcript } from "../../domain/transcripts/Transcript.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"

/** A conversation read from a file. */
export interface Loaded {
  readonly format: SourceFormat
  /** The conversation as events of a session log, `Started` first. `session` is their fold. */
  readonly events: ReadonlyArray<SessionEvent>
  readonly session: Session
  /** Records that are not part of the conversation, by kind. */
  readonly skipped: Readonly<Record<string, number>>
  /** The number of the last line when it was incomplete and left out. */
  readonly torn: number | undefined
  readonly bytes: number
  /** The content of another agent's file; undefined for a session log. */
  readonly transcript: Transcript | undefined
  /** The session log beside the file, when the file was changed after it was written with that log. */
  readonly sidecar: Session | undefined
  /** Set for a log that was too long for memory, when the caller accepts one: `events` and `session` are then its own. */
  readonly long: LongLog | undefined
}

/** The events of a session, as reading its log gives them. */
export const loadedFrom = (events: ReadonlyArray<SessionEvent>): Loaded => ({
  format: "palimpsest",
  events,
  session: events.reduce(applyEvent, emptySession),
  bytes: 0,
  skipped: {},
  torn: undefined,
  transcript: undefined,
  sidecar: undefined,
  long: undefined
})

/** The result of a reader: everything that does not depend on the file's bytes and neighbours. */
export type ReadTranscript = Omit<Loaded, "bytes" | "sidecar">

/** The estimated memory for reading a conversation, from its size. */
export interface MemoryNeed {
  /** Bytes of the file. */
  readonly bytes: number
  /** Bytes of memory. */
  readonly memory: number
}

/** Options for reading a file. */
export interface LoadOptions {
  /** The format; detected when absent. */
  readonly from?: SourceFormat
  /** Skips and counts lines that cannot be read. */
  readonly lenient?: boolean
  /** Shortens the texts of a session log that is too long for memory. */
  readonly shortens?: boolean
  /** Runs before a conversation is read that needs much memory. */
  readonly warn?: (need: MemoryNeed) => Effect.Effect<void>
}

/** The services that a reader needs. The parts of a session log may be in files beside it. */
export type ReadRequirements = FileSystem.FileSystem | Path.Path | TokenCounter | TempStore

/** The services that reading a conversation from a file needs. */
export type LoadRequirements = Stdio.Stdio | ReadRequirements
