import { Effect, Ref } from "effect"
import { priceOf, pricesWith } from "../../../domain/tokens/Prices.ts"
import { dollars } from "../../output/InspectReport.ts"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** `/cost`: shows what the answers since the session was opened cost. `/stats` counts the whole session. */
export const cost: SlashCommand = {
  name: "cost",
  usage: "",
  help: "Show what this conversation cost since you opened it; /stats counts all of it",
  run: Effect.fnUntraced(function* (session) {
    if (session.recording !== undefined) return yield* say(session, "A recording answers: nothing was spent.")
    const { model, models } = yield* session.chat.settings
    const { source, table } = pricesWith(models)
    const spent = yield* Ref.get(session.cost)
    yield* say(
      session,
      priceOf(table, model) === undefined
        ? `No price of ${model} is known.`
        : `${dollars(spent)} since you opened this session, without summaries (/stats counts them). Prices: ${source}.`
    )
  })
}
