import type { Usage } from "../tokens/Tokens.ts"
import { natural } from "./JsonRecord.ts"

/** The usage of a request as agents record it. */

const count = (value: unknown): number | undefined => natural(value ?? 0)

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
  const input = count(counts.input)
  const cached = count(counts.cacheRead)
  const cacheWrite = count(counts.cacheWrite)
  const answer = count(counts.output)
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
