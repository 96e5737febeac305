import { Context, type Stream } from "effect"
import type { TranscriptError } from "./TranscriptError.ts"

/**
 * Reads a session out of an agent's database. `path` is that of the database, `#` and the session's id; undefined for any other
 * path. The rows come as JSON, one a line. Without a reader, no path is one of a database.
 */
export const SessionDatabase = Context.Reference<
  (path: string) => Stream.Stream<Uint8Array, TranscriptError> | undefined
>("palimpsest/services/transcripts/SessionDatabase", { defaultValue: () => () => undefined })
