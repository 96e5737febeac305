/** Decides which sessions are deleted under the user's retention settings. Without such settings every session stays. */

import { Result } from "effect"
import { lastWrittenFirst } from "./SessionOrder.ts"

/** The settings. Without either, every session stays. */
export interface RetentionSettings {
  /** A period: digits and h, d, w or m (30 days). Sessions that were not written to for longer are deleted. */
  readonly maxAge?: string | undefined
  /** How many of the newest sessions stay. */
  readonly maxCount?: number | undefined
}

/** Parsed settings. */
interface Retention {
  /** In milliseconds. */
  readonly maxAge: number | undefined
  readonly maxCount: number | undefined
}

const hour = 3_600_000
const day = 24 * hour
const units: Readonly<Record<string, number>> = { h: hour, d: day, w: 7 * day, m: 30 * day }

/** A session that was written to within the last day stays, whatever the settings. */
export const minRetentionMillis = day

const period = /^(\d+)([hdwm])$/

/** Parses a period like `36h`, `30d`, `2w` or `6m` into milliseconds. Zero and anything else give undefined. */
export const parsePeriod = (text: string): number | undefined => {
  const [, digits = "", unit = ""] = period.exec(text) ?? []
  const length = Number(digits) * (units[unit] ?? 0)
  return length > 0 && Number.isSafeInteger(length) ? length : undefined
}

/** Parses the settings. The failure names the setting and what was expected. */
export const parseRetention = ({ maxAge, maxCount }: RetentionSettings): Result.Result<Retention, string> => {
  const age = maxAge === undefined ? undefined : parsePeriod(maxAge)
  if (maxAge !== undefined && age === undefined) {
    return Result.fail(`maxAge is ${JSON.stringify(maxAge)}; expected a number above 0 and h, d, w or m, like 30d`)
  }
  if (maxAge !== undefined && age !== undefined && age < minRetentionMillis) {
    return Result.fail(`maxAge is ${JSON.stringify(maxAge)}; expected at least a day, like 24h or 30d`)
  }
  if (maxCount !== undefined && !(Number.isSafeInteger(maxCount) && maxCount > 0)) {
    return Result.fail(`maxCount is ${maxCount}; expected a whole number above 0`)
  }
  return Result.succeed({ maxAge: age, maxCount })
}

/** A session that retention decides about. */
export interface RetentionCandidate {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly updatedAt: number
  /** The process that has it open. */
  readonly holder: unknown
  /** Why it cannot be opened. */
  readonly problem: string | undefined
}

/**
 * The sessions to delete at `now`, oldest first. Never among them: the current session, one that is open, one that was written
 * to within a day, and one that cannot be opened, as its content is unknown. Sessions that stay for such a reason count towards
 * `maxCount`.
 */
export const expiredSessions = <A extends RetentionCandidate>(
  sessions: ReadonlyArray<A>,
  { maxAge, maxCount }: Retention,
  now: number,
  current?: string | undefined
): ReadonlyArray<A> => {
  const isSafe = (session: A) =>
    session.id === current ||
    session.holder !== undefined ||
    session.problem !== undefined ||
    now - session.updatedAt < minRetentionMillis
  const newestFirst = sessions.filter((session) => !isSafe(session)).sort(lastWrittenFirst)
  const places = maxCount === undefined ? Infinity : Math.max(0, maxCount - (sessions.length - newestFirst.length))
  return newestFirst
    .filter((session, place) => place >= places || (maxAge !== undefined && now - session.updatedAt > maxAge))
    .reverse()
}
