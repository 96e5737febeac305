/** The contract of finding a session by its id. */

import { Context, Effect } from "effect"
import type { FoundSession } from "./FindSessions.ts"
import type { TranscriptError } from "./TranscriptError.ts"

/** Where a session is, and the title that its agent gave it. */
export type LocatedSession = Pick<FoundSession, "path" | "title">

/**
 * Finds a session of any agent by its id or the beginning of it. Without a locator, a name is a path. It lists the
 * sessions, which takes longer than to open a file.
 */
export const SessionLocator = Context.Reference<(name: string) => Effect.Effect<LocatedSession, TranscriptError>>(
  "palimpsest/services/transcripts/SessionLocator",
  { defaultValue: () => (path) => Effect.succeed({ path, title: undefined }) }
)
