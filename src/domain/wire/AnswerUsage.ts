/** The tokens of an answer, as counted by the provider. */

import { isJson, type Json } from "../text/JsonObject.ts"
import { valueEnd } from "../text/JsonSource.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import type { Usage } from "../tokens/Tokens.ts"

/** A number, which some servers write as a text; undefined for any other value. */
const numberIn = (value: unknown): number | undefined => {
  const read = typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value
  return typeof read === "number" && Number.isFinite(read) ? read : undefined
}

/** A count at a path; zero if there is none. */
export const numberAt = (value: Json, ...path: ReadonlyArray<string>): number => {
  let at: unknown = value
  for (const key of path) at = isJson(at) ? at[key] : undefined
  return Math.round(Math.max(0, numberIn(at) ?? 0))
}

/** A number that an answer states, such as the tokens of a request; undefined if it states none. */
export const naturalAt = (answer: unknown, key: string): number | undefined => {
  const stated = isJson(answer) ? numberIn(answer[key]) : undefined
  return stated !== undefined && Number.isInteger(stated) && stated >= 0 ? stated : undefined
}

/** Tokens above which the count of one request is taken for an error: more than the largest windows hold (ten million). */
const maxBelievable = 20_000_000

/** Reads the counts of a provider, as its dialect has them. Returns undefined when there are none, or none that can be true. */
export const usageOf = (read: (counts: Json) => Usage, counts: unknown): Usage | undefined => {
  const usage = isJson(counts) ? read(counts) : undefined
  const total = usage === undefined ? 0 : usage.prompt + usage.answer + usage.thoughts
  return total > 0 && total <= maxBelievable ? usage : undefined
}

/** The usage of a piece of an answer, where it has any. */
export const counted = (read: (counts: Json) => Usage, counts: unknown): { readonly usage?: Usage } => {
  const usage = usageOf(read, counts)
  return usage === undefined ? {} : { usage }
}

/** Adds the counts of two answers: numbers with the same name are added, lists joined, and any other value is the newer answer's. */
export const addedCounts = (one: unknown, other: unknown): unknown => {
  const [before, added] = [numberIn(one), numberIn(other)]
  if (before !== undefined && added !== undefined) return before + added
  if (Array.isArray(one) && Array.isArray(other)) return [...one, ...other]
  if (!isJson(one) || !isJson(other)) return other ?? one
  const sums: Record<string, unknown> = { ...one }
  for (const [key, value] of Object.entries(other)) sums[key] = addedCounts(one[key], value)
  return sums
}

/** Returns the latest counts of one answer: a later event may report more than an earlier one, or nothing, as null or zero. */
export const latestCounts = (earlier: unknown, later: unknown): unknown => {
  if (!isJson(earlier) || !isJson(later)) return later ?? earlier
  const stated = Object.entries(later).filter(
    ([key, value]) => value !== null && (numberIn(value) !== 0 || !(key in earlier))
  )
  return { ...earlier, ...Object.fromEntries(stated) }
}

/** Counts without an end in a text, each of which is followed to its end. */
const maxCut = 32

const countsKey = /"usage(?:Metadata)?"\s*:\s*(?=\{)/g

/** Finds the latest counts in the first and last part of an answer that was passed on unread. */
export const countsIn = (texts: ReadonlyArray<string>): unknown => {
  let counts: unknown
  for (const text of texts) {
    let read = 0
    let cut = 0
    for (const { 0: key, index } of text.matchAll(countsKey)) {
      // Within counts that were read, or after many that the text cuts off: the arguments of a call may look like counts.
      if (index < read || cut > maxCut) continue
      const start = index + key.length
      const end = valueEnd(text, start)
      if (end > 0) counts = latestCounts(counts, parsedOrUndefined(text.slice(start, end)))
      else cut += 1
      read = Math.max(read, end)
    }
  }
  return counts
}
