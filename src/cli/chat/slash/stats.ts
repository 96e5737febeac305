/** The slash commands `/stats` and `/cost`: show prompts, tokens, compressions and cost. */

import { Effect, Ref } from "effect"
import { dollars } from "../../../domain/text/NumberText.ts"
import { priceOf, pricesWith, tokensOfCost } from "../../../domain/tokens/Prices.ts"
import { inspect } from "../../../services/evaluation/Inspect.ts"
import { SessionStore } from "../../../services/session/SessionStore.ts"
import { definitions } from "../../output/Columns.ts"
import { costText } from "../../output/OutcomeText.ts"
import { number, plural, share } from "../../output/Output.ts"
import { say, type SlashCommand, tableColumns } from "./ChatSession.ts"

type Row = readonly [label: string, value: string]

/** `/stats`: shows prompts, tokens, compressions and cost of the session. */
export const stats: SlashCommand = {
  name: "stats",
  help: "Show prompts, tokens, compressions and cost",
  run: Effect.fnUntraced(function* (session) {
    const { chat, id, recording, terminal } = session
    // As the status line counts, with the instruction and the tools.
    const used = yield* chat.usage
    const scale = used.scale ?? 1
    const whole = yield* chat.whole
    // Only the log has the cost of compressions, and a new session has no log yet.
    const events = yield* SessionStore.use((store) => store.events(id)).pipe(
      Effect.catchIf(
        ({ reason }) => reason._tag === "SessionNotFound",
        () => Effect.succeed([])
      )
    )
    const { compactions, compressing, cost, messages, tokens, turns, usage } = yield* inspect(whole.conversation, {
      events,
      prices: pricesWith((yield* chat.settings).models),
      ...(whole.model === undefined ? {} : { model: whole.model })
    })
    const all = tokensOfCost(cost)
    const summaries = tokensOfCost(compressing)
    const hasUsage = usage !== null || summaries.requests > 0
    const summaryCost = compressing.total === null ? "" : `, ${costText(compressing.total)}`
    const rows: ReadonlyArray<Row | undefined> = [
      ["session", id],
      ["prompts", `${number(turns)} (${plural(messages, "message")})`],
      [
        "window",
        `${number(used.tokens)} of ${number(used.limit)} tokens (${share(used.tokens, used.limit)}), with the system prompt and tools`
      ],
      [
        "messages",
        `about ${number(Math.round(tokens.view * scale))} tokens in the window, ${number(Math.round(tokens.all * scale))} in total`
      ],
      ["compressions", number(compactions.length)],
      hasUsage
        ? [
            "usage",
            `${number(all.sent)} tokens sent (${share(all.cached, all.sent)} from a cache), ${number(all.answered)} received`
          ]
        : undefined,
      cost.total === null || recording !== undefined
        ? undefined
        : ["cost", `${costText(cost.total)}${cost.estimated ? " (estimated)" : ""}`],
      summaries.requests > 0
        ? [
            "summaries",
            `${plural(summaries.requests, "call")} of that: ${number(summaries.sent)} tokens sent, ${number(summaries.answered)} received${summaryCost}`
          ]
        : undefined
    ]
    const shown = rows.filter((row) => row !== undefined)
    yield* terminal.write(`${definitions(shown, yield* tableColumns(session))}\n`)
  })
}

/** `/cost`: shows what the answers since the session was opened cost. `/stats` counts the whole session. */
export const cost: SlashCommand = {
  name: "cost",
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
