import { Effect } from "effect"
import type { SessionEvent } from "../../domain/session/Session.ts"
import type { SourceFormat } from "../../domain/transcripts/Transcript.ts"
import { chooseSession } from "../../services/transcripts/ChooseSession.ts"
import { type FoundSession, listSessions } from "../../services/transcripts/FindSessions.ts"
import { inputName } from "../../services/transcripts/TranscriptError.ts"
import * as Output from "../output/Output.ts"
import * as ConversationInput from "./ConversationInput.ts"

/** Finds what a command that works on sessions is given: one of them, or a conversation that is none. */

/** A session, or a conversation that is none. */
export type Chosen =
  | { readonly _tag: "Session"; readonly session: FoundSession }
  /** From standard input, or a history for the Gemini API. `name` is what messages call it. */
  | {
      readonly _tag: "Conversation"
      readonly name: string
      readonly format: SourceFormat
      readonly events: ReadonlyArray<SessionEvent>
    }

const read = (file: string, from: SourceFormat | undefined) =>
  Effect.map(ConversationInput.load({ file, from, lenient: false }), ({ events, format }): Chosen => ({
    _tag: "Conversation",
    name: inputName(file),
    format,
    events
  }))

/** Finds the session that a command names, or reads the conversation, in the format `from`. Fails when there is neither. */
export const choose = Effect.fn("SessionOrConversation.choose")(function* (
  name: string,
  from: SourceFormat | undefined
) {
  if (name === "-" || from !== undefined) return yield* read(name, from)
  const list = yield* Output.progress("reading the sessions of your agents")(listSessions())
  return yield* chooseSession(name, list).pipe(
    Effect.map((session): Chosen => ({ _tag: "Session", session })),
    Effect.catchTag("TranscriptError", (error) =>
      error.kind === "NotASession" ? read(name, from) : Effect.fail(ConversationInput.unreadable(error))
    )
  )
})
