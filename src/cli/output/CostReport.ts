import { Record, Schema } from "effect"
import { EntryId } from "../../domain/conversation/Conversation.ts"
import { Spent } from "../../domain/evaluation/SessionCost.ts"
import { Rating } from "../../domain/session/Rating.ts"
import type { Account, Accounts, SessionBreak } from "../../services/transcripts/SessionAccounts.ts"
import { orNull, Time } from "./JsonFields.ts"

/** The output of `cost --json`. */

const Sums = Schema.Struct({
  /** The folder, day, model or agent; for a session the path of its file. */
  name: Schema.String,
  /** The title of a session. */
  title: Schema.optionalKey(Schema.String),
  /** The id of a session. */
  id: Schema.optionalKey(Schema.String),
  ...Spent.fields,
  breaks: Schema.Natural,
  /** US dollars that cache breaks cost. */
  breakCost: Schema.Finite
})

const Break = Schema.Struct({
  agent: Schema.String,
  path: Schema.String,
  at: Time,
  request: Schema.String,
  model: Schema.String,
  cause: Schema.String,
  detail: Schema.String,
  avoid: Schema.String,
  /** Tokens that the cache could have served, and those that it did. */
  expected: Schema.Natural,
  served: Schema.Natural,
  cost: orNull(Schema.Finite)
})

/** A file that was read more than once. */
export const Reread = Schema.Struct({
  path: Schema.String,
  reads: Schema.Natural,
  /** Tokens of the repeats. */
  repeated: Schema.Natural,
  /** US dollars for sending them once; null without a price. */
  cost: orNull(Schema.Finite)
})
export type Reread = typeof Reread.Type

/** The report. */
export const CostReport = Schema.Struct({
  currency: Schema.Literal("USD"),
  /** The source of the prices. */
  prices: Schema.String,
  sessions: Schema.Natural,
  total: Sums,
  session: Schema.Array(Sums),
  folder: Schema.Array(Sums),
  day: Schema.Array(Sums),
  model: Schema.Array(Sums),
  agent: Schema.Array(Sums),
  breaks: Schema.Array(Break),
  /** For one session; null for several. */
  reads: Schema.NullOr(Schema.Array(Reread)),
  /** The user's ratings of compressions in force, oldest first, each after an entry. For one session; null for several. */
  ratings: Schema.NullOr(Schema.Array(Schema.Struct({ after: Schema.NullOr(EntryId), rating: Rating }))),
  /** Requests that several files record, counted once. */
  repeated: Schema.Natural,
  problems: Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))
})
export type CostReport = typeof CostReport.Type

const dollarsExactly = (cost: number): number => Math.round(cost * 1e6) / 1e6

const sumsOf = ({ session, ...account }: Account): typeof Sums.Type => ({
  ...account,
  ...(session === undefined ? {} : { id: session.id }),
  ...(session?.title === undefined ? {} : { title: session.title }),
  cost: dollarsExactly(account.cost),
  breakCost: dollarsExactly(account.breakCost)
})

const breakOf = ({ cost, session, ...rest }: SessionBreak): typeof Break.Type => ({
  ...rest,
  agent: session.agent,
  path: session.path,
  ...(cost === undefined ? {} : { cost: dollarsExactly(cost) })
})

/** Makes a report of accounts. */
export const reportOf = (
  { breaks, by, repeated, sessions, total }: Accounts,
  about: Pick<CostReport, "prices" | "ratings" | "reads" | "problems">
): CostReport => ({
  currency: "USD",
  sessions,
  ...about,
  total: sumsOf(total),
  ...Record.map(by, (accounts) => accounts.map(sumsOf)),
  breaks: breaks.map(breakOf),
  repeated
})
