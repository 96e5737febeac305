import { Context, Effect } from "effect"
import type { TranscriptError } from "./TranscriptError.ts"

/**
 * Finds the path of a session of any agent by its id or the beginning of it. Without a locator, a name is a path. It lists the
 * sessions, which takes longer than to open a file.
 */
export const SessionLocator = Context.Reference<(name: string) => Effect.Effect<string, TranscriptError>>(
  "palimpsest/services/transcripts/SessionLocator",
  { defaultValue: () => Effect.succeed }
)
