/** The list's data about a session, from the first lines of its log. */

import { plainText } from "../content/Content.ts"
import { firstUnits } from "../text/Bytes.ts"
import { printableLine } from "../text/InvisibleCharacters.ts"
import { redact } from "../text/Redaction.ts"
import { type SessionEvent, entriesOf } from "./Session.ts"

/** The longest title or first prompt that is shown, in characters. */
const maxTitleChars = 200

/** Makes a title of a text: one line, clipped, safe for a terminal, without secrets. */
export const titleOf = (text: string): string =>
  firstUnits(printableLine(redact(firstUnits(text, maxTitleChars * 8))), maxTitleChars).trim()

/** The head of a session. */
export interface SessionHead {
  readonly firstPrompt: string | undefined
  readonly model: string | undefined
  readonly cwd: string | undefined
  /** The session whose agent started this one; undefined for a session that the user started. */
  readonly parent: string | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number | undefined
}

/** Returns the beginning of the first message that the user wrote, ignoring those of programs and tools. */
const firstPrompt = (events: ReadonlyArray<SessionEvent>): string | undefined => {
  for (const event of events) {
    for (const { author, content } of entriesOf(event)) {
      const words = content.role === "user" && author === undefined ? titleOf(plainText(content)) : ""
      if (words !== "") return words
    }
  }
  return undefined
}

/** The head of the session that begins with these events. */
export const headOf = (events: ReadonlyArray<SessionEvent>): SessionHead => {
  const started = events[0]?._tag === "Started" ? events[0] : undefined
  return {
    firstPrompt: firstPrompt(events),
    model: started?.model,
    cwd: started?.cwd,
    parent: started?.parent,
    startedAt: started?.at
  }
}
