import { isJson, type Json } from "../model/MessageForm.ts"

/** Adds the counts of two answers, whatever form they have: numbers of the same name are added, all else is the newer one's. */
export const addedCounts = (one: unknown, other: unknown): unknown => {
  if (typeof one === "number" && typeof other === "number") return one + other
  if (!isJson(one) || !isJson(other)) return other ?? one
  const sums: Record<string, unknown> = { ...one }
  for (const [key, value] of Object.entries(other)) sums[key] = addedCounts(one[key], value)
  return sums
}

/** The counts of one answer, of which a later event may tell more than an earlier one. */
export const latestCounts = (earlier: unknown, later: unknown): unknown => {
  if (!isJson(earlier) || !isJson(later)) return later ?? earlier
  const known: Json = Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null))
  return { ...earlier, ...known }
}
