/** Says what a search for secrets does not cover. */

import { Effect } from "effect"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { SessionProblem } from "../../services/transcripts/AgentSessions.ts"
import type { Unsearched } from "../../services/transcripts/RedactSession.ts"
import * as Output from "./Output.ts"

const maxPlaces = 5

const listed = (what: string, places: ReadonlyArray<string>): string => {
  const more = places.length - maxPlaces
  return `${what}: ${places.slice(0, maxPlaces).join(", ")}${more > 0 ? ` and ${Output.number(more)} more` : ""}`
}

const reasons: ReadonlyArray<readonly [Unsearched["what"], string]> = [
  ["bytes", "bytes of pictures or files were not searched"],
  ["broken record", "a record that is not whole was searched as plain text"]
]

/** Prints which parts of a copy could not be searched as they are. `file`: where they are, if that is not the session itself. */
export const tellUnsearched = Effect.fnUntraced(function* (unsearched: ReadonlyArray<Unsearched>, file?: string) {
  for (const [what, reason] of reasons) {
    const places = unsearched.flatMap((one) => (one.what === what ? [one.place] : []))
    if (places.length > 0) {
      yield* Output.notice(listed(file === undefined ? reason : `${printableLine(file)}: ${reason}`, places))
    }
  }
})

/** Prints which files of a session could not be searched. */
export const tellUnreadable = Effect.fnUntraced(function* (problems: ReadonlyArray<SessionProblem>) {
  for (const { message, path } of problems) {
    yield* Output.notice(`${printableLine(path)} was not searched for secrets: ${printableLine(message)}`)
  }
})
