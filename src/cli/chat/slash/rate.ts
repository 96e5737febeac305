import { Effect } from "effect"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** `/rate good|bad [why]`: rates the snapshot of the last compression. The rating is the snapshot's label, so the log keeps it. */
export const rate: SlashCommand = {
  name: "rate",
  usage: "good|bad [why]",
  help: "Rate the last compression; /tree shows it, and the log keeps it",
  run: Effect.fnUntraced(function* (session, argument) {
    const { chat } = session
    const [, verdict, why = ""] = /^(good|bad)(?:\s+([\s\S]+))?$/i.exec(argument) ?? []
    if (verdict === undefined) {
      return yield* say(session, "Say good or bad, and why if you like, for example: /rate bad it lost the port")
    }
    const { nodes } = yield* chat.tree
    const snapshot = [...nodes.values()].findLast(({ isOnPath, kind }) => isOnPath && kind === "compression")
    if (snapshot === undefined) return yield* say(session, "There is no compression to rate.")
    yield* chat.label(snapshot.id, `rated ${verdict.toLowerCase()}${why === "" ? "" : `: ${why}`}`)
    yield* say(session, `Rated ${verdict.toLowerCase()} (${snapshot.id}).`)
  })
}
