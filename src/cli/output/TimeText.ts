/** Formats times for the user: how long ago they were, or as ISO 8601. */

import { DateTime } from "effect"

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Formats how long ago a time was: `just now`, `5 min ago`, `3 h ago`, `2 d ago`, then the day (UTC). */
export const ago = (at: number, now: number): string => {
  const passed = now - at
  if (passed < minute) return "just now"
  if (passed < hour) return `${Math.floor(passed / minute)} min ago`
  if (passed < day) return `${Math.floor(passed / hour)} h ago`
  return passed < 30 * day ? `${Math.floor(passed / day)} d ago` : iso(at).slice(0, 10)
}

/** Formats milliseconds since 1970 as ISO 8601. */
export const iso = (at: number): string => DateTime.formatIso(DateTime.makeUnsafe(at))
