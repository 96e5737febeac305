/** Adds up what sessions took and cost, and finds where prompt caches broke. */

import { Effect } from "effect"
import { cacheBreaks, type CacheBreak } from "../../domain/evaluation/CacheBreaks.ts"
import { nothingSpent, spend, type Spent } from "../../domain/evaluation/SessionCost.ts"
import type { Prices } from "../../domain/tokens/Prices.ts"
import { type RecordedRequest, tokensAnswered } from "../../domain/transcripts/facts/ScanState.ts"
import { ReportProgress } from "../platform/Progress.ts"
import { AgentSessions, type SessionFile } from "./AgentSessions.ts"
import type { FoundSession } from "./FindSessions.ts"
import { scanFile, SessionIndex } from "./SessionIndex.ts"

/** What costs are added up by. */
export const dimensions = ["session", "folder", "day", "model", "agent"] as const
export type Dimension = (typeof dimensions)[number]

/** One row: a session, a folder, a day, a model or an agent. */
export interface Account extends Spent {
  readonly name: string
  /** The session, for rows of sessions. */
  readonly session: FoundSession | undefined
  readonly breaks: number
  /** US dollars that the breaks cost. */
  readonly breakCost: number
}

/** A break, and the session in which it is. */
export interface SessionBreak extends CacheBreak {
  readonly session: FoundSession
}

/** What sessions cost. */
export interface Accounts {
  readonly total: Account
  readonly by: Readonly<Record<Dimension, ReadonlyArray<Account>>>
  /** Most expensive first. */
  readonly breaks: ReadonlyArray<SessionBreak>
  /** Sessions with requests. Those of a fork can all be repeated. */
  readonly sessions: number
  /** Requests that a file repeats of another one, and that were counted once. */
  readonly repeated: number
}

const nothing = (name: string, session?: FoundSession): Account => ({
  ...nothingSpent,
  name,
  session,
  breaks: 0,
  breakCost: 0
})

/** One request in the session where it was made. */
interface Booked {
  readonly session: FoundSession
  readonly request: RecordedRequest
  readonly lost: CacheBreak | undefined
}

/**
 * Returns every request once. Files of resumed sessions and of subagents repeat requests: the oldest session keeps them, and the
 * record with the longer answer is the whole one.
 */
const bookings = Effect.fnUntraced(function* (
  sessions: ReadonlyArray<FoundSession>,
  prices: Prices,
  { day, since = 0 }: AccountOptions
) {
  const index = yield* SessionIndex
  const agents = yield* AgentSessions
  /** The requests of a file that lies elsewhere. */
  const scanned = (file: SessionFile) => Effect.map(scanFile(agents, file), ({ requests }) => requests)
  const booked = new Map<string, Booked>()
  const oldestFirst = [...sessions].sort((a, b) => (a.startedAt ?? a.updatedAt) - (b.startedAt ?? b.updatedAt))
  const report = yield* ReportProgress
  const withRequests = new Set<FoundSession>()
  let repeated = 0
  for (const [at, session] of oldestFirst.entries()) {
    report({ done: at, total: oldestFirst.length, unit: "sessions" })
    const files = yield* index.requests(session.files)
    for (const file of session.files) {
      const requests = files.get(file.path) ?? (yield* Effect.orElseSucceed(scanned(file), () => []))
      const lost = new Map(cacheBreaks(requests, prices, day).map((one) => [one.request, one]))
      for (const request of requests) {
        if (request.at >= since) withRequests.add(session)
        const key = `${session.agent} ${request.id}`
        const known = booked.get(key)
        if (request.isCopied === true) repeated += 1
        else if (known === undefined) booked.set(key, { session, request, lost: lost.get(request.id) })
        else {
          repeated += 1
          if (tokensAnswered(request.usage) > tokensAnswered(known.request.usage))
            booked.set(key, { ...known, request })
        }
      }
    }
    yield* Effect.yieldNow
  }
  return { booked: booked.values(), sessions: withRequests.size, repeated }
})

const byCost = (a: Account, b: Account): number => b.cost - a.cost || b.sent - a.sent || (a.name < b.name ? -1 : 1)

/** What is added up. */
export interface AccountOptions {
  /** Names the day of a time, in milliseconds since 1970. */
  readonly day: (at: number) => string
  /** Requests before this time do not count. */
  readonly since: number | undefined
}

/** Adds up the requests of sessions. */
export const accountsOf = Effect.fn("SessionAccounts.accountsOf")(function* (
  sessions: ReadonlyArray<FoundSession>,
  prices: Prices,
  options: AccountOptions
) {
  const { day, since = 0 } = options
  const { booked, ...counts } = yield* bookings(sessions, prices, options)
  const rows = new Map(dimensions.map((dimension) => [dimension, new Map<string, Account>()]))
  let total = nothing("total")
  const breaks: Array<SessionBreak> = []
  for (const { lost, request, session } of booked) {
    if (request.at < since) continue
    const added = (account: Account): Account => ({
      ...account,
      ...spend(account, request, prices),
      breaks: account.breaks + (lost === undefined ? 0 : 1),
      breakCost: account.breakCost + (lost?.cost ?? 0)
    })
    const names = {
      session: session.path,
      folder: session.folder ?? "unknown",
      day: day(request.at),
      model: request.model,
      agent: session.agent
    }
    for (const [dimension, accounts] of rows) {
      const name = names[dimension]
      const account = accounts.get(name) ?? nothing(name, dimension === "session" ? session : undefined)
      accounts.set(name, added(account))
    }
    total = added(total)
    if (lost !== undefined) breaks.push({ ...lost, session })
  }
  const listed = (dimension: Dimension) => [...(rows.get(dimension)?.values() ?? [])].sort(byCost)
  return {
    total,
    by: {
      session: listed("session"),
      folder: listed("folder"),
      day: listed("day").sort((a, b) => (a.name < b.name ? 1 : -1)),
      model: listed("model"),
      agent: listed("agent")
    },
    breaks: breaks.sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0)),
    ...counts
  }
})
