import { Result } from "effect"

/**
 * Which sessions may go, where a person said that some should (spec 11). Unasked, none: sessions that vanish by default are
 * what people complained of (users.md, pain 5).
 */

/** What a person may set. Without either, every session stays. */
export interface RetentionSettings {
  /** A period: digits and h, d, w or m (30 days). Sessions that nobody wrote to for longer may go. */
  readonly maxAge?: string | undefined
  /** How many sessions stay, the newest. */
  readonly maxCount?: number | undefined
}

/** Settings that were understood. */
export interface Retention {
  /** In milliseconds. */
  readonly maxAge: number | undefined
  readonly maxCount: number | undefined
}

const hour = 3_600_000
const day = 24 * hour
const units: Readonly<Record<string, number>> = { h: hour, d: day, w: 7 * day, m: 30 * day }

/** No session that was written to within this many milliseconds goes, whatever is set (spec 11: `minRetention`, one day). */
export const minRetention = day

const period = /^(\d+)([hdwm])$/

/** The milliseconds of a period like `36h`, `30d`, `2w` or `6m`; undefined where it is none. Zero is none (spec 11). */
export const periodOf = (text: string): number | undefined => {
  const [, digits = "", unit = ""] = period.exec(text) ?? []
  const length = Number(digits) * (units[unit] ?? 0)
  return length > 0 && Number.isSafeInteger(length) ? length : undefined
}

/** Settings as limits, or which of them is wrong and what was expected. */
export const retentionOf = ({ maxAge, maxCount }: RetentionSettings): Result.Result<Retention, string> => {
  const age = maxAge === undefined ? undefined : periodOf(maxAge)
  if (maxAge !== undefined && age === undefined) {
    return Result.fail(`maxAge is ${JSON.stringify(maxAge)}; expected a number above 0 and h, d, w or m, like 30d`)
  }
  if (age !== undefined && age < minRetention) {
    return Result.fail(`maxAge is ${JSON.stringify(maxAge)}; expected at least a day, like 24h or 30d`)
  }
  if (maxCount !== undefined && !(Number.isSafeInteger(maxCount) && maxCount > 0)) {
    return Result.fail(`maxCount is ${maxCount}; expected a whole number above 0`)
  }
  return Result.succeed({ maxAge: age, maxCount })
}

/** What has to be known of a session to judge it. */
export interface Aging {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly updatedAt: number
  /** Who writes it. */
  readonly holder: unknown
  /** Why it cannot be opened. */
  readonly problem: string | undefined
}

/**
 * The sessions that may go at `now`, the oldest first. Never the current one, one that somebody writes, one that was written to
 * within a day, or one that cannot be opened: what is in that is not known. Those that stay for such a reason count.
 */
export const expired = <A extends Aging>(
  sessions: ReadonlyArray<A>,
  { maxAge, maxCount }: Retention,
  now: number,
  current?: string | undefined
): ReadonlyArray<A> => {
  const isSafe = (session: A) =>
    session.id === current ||
    session.holder !== undefined ||
    session.problem !== undefined ||
    now - session.updatedAt < minRetention
  const newestFirst = sessions
    .filter((session) => !isSafe(session))
    .sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1))
  const places = maxCount === undefined ? Infinity : Math.max(0, maxCount - (sessions.length - newestFirst.length))
  return newestFirst
    .filter((session, place) => place >= places || (maxAge !== undefined && now - session.updatedAt > maxAge))
    .reverse()
}
