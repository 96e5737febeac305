import { firstUnits } from "./Bytes.ts"
import { plainText } from "./Content.ts"
import { printable } from "./Inspection.ts"
import { redact } from "./Redaction.ts"
import { entriesOf } from "./LogFormat.ts"
import type { SessionEvent } from "./Session.ts"

/** What a list says of a session, from the first lines of its log. */

/** Characters of a title and of the first words that are shown. */
export const titleLength = 200

/** A text as a title: one line that is safe for a terminal, clipped. */
export const titleOf = (text: string): string =>
  firstUnits(printable(redact(firstUnits(text, titleLength * 8))), titleLength).trim()

/** What the first lines of a log tell. */
export interface SessionHead {
  readonly firstPrompt: string | undefined
  readonly model: string | undefined
  readonly cwd: string | undefined
  /** The session of the agent that started this one's; undefined: a person began it. */
  readonly parent: string | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number | undefined
}

/** The beginning of the first words that a person said in these events; not a program's, not a tool's. */
const firstPrompt = (events: ReadonlyArray<SessionEvent>): string | undefined => {
  for (const event of events) {
    for (const { author, content } of entriesOf(event)) {
      const words = content.role === "user" && author === undefined ? titleOf(plainText(content)) : ""
      if (words !== "") return words
    }
  }
  return undefined
}

/** What these events, the first of a log, tell of the session. */
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
