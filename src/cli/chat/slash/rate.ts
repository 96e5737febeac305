import { Effect } from "effect"
import { parseRating, ratingLabel } from "../../../domain/session/Rating.ts"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** `/rate good|bad [why]`: rates the snapshot of the last compression. The rating is the snapshot's label, so the log keeps it. */
export const rate: SlashCommand = {
  name: "rate",
  usage: "good|bad [why]",
  help: "Rate the last compression; inspect, cost and /tree show it",
  run: Effect.fnUntraced(function* (session, argument) {
    const { chat } = session
    const rating = parseRating(argument)
    if (rating === undefined) {
      return yield* say(session, "Say good or bad, and why if you like, for example: /rate bad it lost the port")
    }
    const { nodes } = yield* chat.tree
    const snapshot = [...nodes.values()].findLast(({ isOnPath, kind }) => isOnPath && kind === "compression")
    if (snapshot === undefined) return yield* say(session, "There is no compression to rate.")
    yield* chat.label(snapshot.id, ratingLabel(rating))
    yield* say(session, `Rated ${rating.verdict} (${snapshot.id}).`)
  })
}
