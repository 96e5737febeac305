/** The `cost` command: shows what sessions cost, and where prompt caches broke. */

import { DateTime, Effect } from "effect"
import { Command } from "effect/cli"
import { priceOf, type Prices } from "../../domain/tokens/Prices.ts"
import { inspect } from "../../services/evaluation/Inspect.ts"
import { type FoundSession, listSessions } from "../../services/transcripts/FindSessions.ts"
import type { Loaded } from "../../services/transcripts/LoadedTranscript.ts"
import { accountsOf, dimensions } from "../../services/transcripts/SessionAccounts.ts"
import { inputName } from "../../services/transcripts/TranscriptError.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import * as ReportFlags from "../flags/ReportFlags.ts"
import * as SessionFlags from "../flags/SessionFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { CostReport, costText, reportOf, type Reread } from "../output/CostReport.ts"
import * as Output from "../output/Output.ts"
import { terminalLimits } from "../output/ReportText.ts"
import { renderCostPage } from "../page/CostPage.ts"

/** Returns the files that a session read more than once, and its rated compressions. */
const insideOf = Effect.fnUntraced(function* (
  loaded: Loaded,
  { folder }: FoundSession,
  model: string | undefined,
  prices: Prices
) {
  const { events, session: read } = loaded
  const { compactions, reads } = yield* inspect(read.conversation, { cwd: folder, events, prices })
  const price = model === undefined ? undefined : priceOf(prices.table, model)
  return {
    reads: reads.map(({ path, reads: times, repeated }): Reread => ({
      path,
      reads: times,
      repeated,
      cost: price === undefined ? undefined : Math.round(repeated * (price.cacheWrite ?? price.input)) / 1e6
    })),
    ratings: compactions.flatMap(({ after, rating }) => (rating === null ? [] : [{ after, rating }]))
  }
})

/** The command `palimpsest cost [session]`. */
export const cost = Command.make(
  "cost",
  {
    session: Input.optionalArgument(
      "session",
      "File or id of one session, as find lists it, or - for standard input (default: all sessions that match the flags)"
    ),
    by: Input.choice("by", dimensions, "Print only this table"),
    ...SessionFlags.flags,
    lenient: Input.lenient,
    prices: ReportFlags.prices,
    html: ReportFlags.html,
    json: Input.json
  },
  Effect.fn("cli.cost")(function* (input) {
    const { session: name } = input
    yield* ReportFlags.checkPlace(name ?? "-", input)
    const prices = yield* ReportFlags.readPrices(input.prices)
    const filter = yield* SessionFlags.filterOf(input)
    const list = yield* Output.progress("reading the sessions of your agents")(
      listSessions(name === undefined ? filter : {})
    )
    const one = name === undefined ? undefined : yield* ConversationInput.choose(name, list)
    // Its lines are checked as every command checks them, before anything is added up.
    const loaded =
      one === undefined
        ? undefined
        : yield* ConversationInput.load({
            file: one.path,
            from: undefined,
            lenient: input.lenient,
            shortens: true
          }).pipe(ConversationInput.naming(name ?? "", one.path))
    const zone = DateTime.zoneMakeLocal()
    const day = (at: number) => DateTime.formatIsoDate(DateTime.makeZonedUnsafe(at, { timeZone: zone }))
    const accounts = yield* accountsOf(one === undefined ? list.sessions : [one], prices, {
      day,
      since: filter.since
    }).pipe(Output.progress("adding up"))
    const { ratings, reads } =
      one === undefined || loaded === undefined
        ? { ratings: null, reads: null }
        : yield* Output.progress("reading the session")(insideOf(loaded, one, accounts.by.model[0]?.name, prices))
    const problems = one === undefined ? list.problems : []
    const report = reportOf(accounts, { prices: prices.source, reads, ratings, problems })
    if (input.html !== undefined) yield* ReportFlags.writePage(input.html, renderCostPage(report, name, input.by))
    if (input.json) return yield* Output.json(CostReport, report)
    yield* SessionFlags.tellProblems(problems)
    if (report.total.requests === 0) {
      if (one !== undefined)
        return yield* Output.notice(`${name === "-" ? inputName(name) : one.path} records no usage`)
      const count = list.sessions.length
      return yield* Output.notice(
        count === 0
          ? `no sessions found (${yield* SessionFlags.lookedIn})`
          : `no usage recorded in ${Output.plural(count, "session")}${filter.since === undefined ? "" : " in that time"}`
      )
    }
    if (input.html === undefined)
      yield* Output.text(costText(report, input.by, yield* Output.style, yield* terminalLimits))
  }, Effect.scoped)
).pipe(
  Input.withExamples({
    "palimpsest cost --since 30d --by day": "Show what each day of a month cost",
    "palimpsest cost 491e126e": "Show where the prompt cache of a session broke, and what that cost",
    "palimpsest cost --folder . --html cost.html": "Write a page about the sessions of this folder"
  })
)
