/** Reads single fields of records whose form is not known: texts, times, counts, usage and kinds. */

import type { Json } from "../text/JsonObject.ts"
import { isTime } from "../text/Time.ts"
import type { Usage } from "../tokens/Tokens.ts"

/** Returns the text under a key; undefined when there is none or the value is not a text. */
export const textAt = (record: Json, key: string): string | undefined => {
  const value = record[key]
  return typeof value === "string" ? value : undefined
}

/** Returns a time in milliseconds since 1970; undefined for what is none, or no time of a date. */
export const instant = (value: unknown): number | undefined =>
  typeof value === "number" && isTime(value) ? value : undefined

/** Returns a record's `timestamp` (ISO text or number) in milliseconds since 1970. */
export const timeAt = ({ timestamp }: Json): number | undefined =>
  instant(typeof timestamp === "string" ? Date.parse(timestamp) : timestamp)

/** Returns a count; undefined for any other value. */
export const natural = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined

/**
 * Returns the usage of one call from a provider's counts: tokens sent without cache, read from a cache, written to a cache,
 * and generated. Undefined when a count is invalid, or when nothing was counted (an aborted call).
 */
export const usageOf = (counts: {
  readonly input: unknown
  readonly cacheRead: unknown
  readonly cacheWrite: unknown
  readonly output: unknown
}): Usage | undefined => {
  const input = natural(counts.input ?? 0)
  const cached = natural(counts.cacheRead ?? 0)
  const cacheWrite = natural(counts.cacheWrite ?? 0)
  const answer = natural(counts.output ?? 0)
  if (input === undefined || cached === undefined || cacheWrite === undefined || answer === undefined) return undefined
  const prompt = input + cached + cacheWrite
  if (prompt + answer === 0 || !Number.isSafeInteger(prompt)) return undefined
  return { prompt, answer, thoughts: 0, cached, ...(typeof counts.cacheWrite === "number" ? { cacheWrite } : {}) }
}

/** The inverse of `usageOf`. Tokens of unknown kind count as sent without cache. */
export const countsOf = (usage: Usage | undefined) => {
  const { answer = 0, cacheWrite = 0, cached = 0, prompt = 0, thoughts = 0 } = usage ?? {}
  return { input: Math.max(0, prompt - cached - cacheWrite), cacheRead: cached, cacheWrite, output: answer + thoughts }
}

/** Adds the dollars that an agent recorded. 0 stands where it knows no price. */
export const withCost = (usage: Usage | undefined, cost: unknown): Usage | undefined =>
  usage !== undefined && typeof cost === "number" && Number.isFinite(cost) && cost > 0 ? { ...usage, cost } : usage

/** Returns the kind of a record; one that names none is of an unknown kind. */
export const kindAt = (record: Json): string => textAt(record, "type") ?? "unknown record"

/** Returns the kinds that a table lists: names, by what stands before them. */
export const kindsIn = (table: Readonly<Record<string, string>>): ReadonlySet<string> =>
  new Set(
    Object.entries(table).flatMap(([prefix, names]) =>
      names
        .trim()
        .split(/\s+/)
        .map((name) => prefix + name.replaceAll("-without-", " without "))
    )
  )

/** Passes over records of these kinds. A fold that names them does not compile when its agent's decoder learns another one. */
export const passOver = <Kind extends string>(_record: { readonly _tag: NoInfer<Kind> }): undefined => undefined
