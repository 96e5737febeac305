import { isJson, type Json } from "./MessageCodec.ts"

/** Adds the counts of two answers: numbers with the same name are added, and any other value is the newer answer's. */
export const addedCounts = (one: unknown, other: unknown): unknown => {
  if (typeof one === "number" && typeof other === "number") return one + other
  if (!isJson(one) || !isJson(other)) return other ?? one
  const sums: Record<string, unknown> = { ...one }
  for (const [key, value] of Object.entries(other)) sums[key] = addedCounts(one[key], value)
  return sums
}

/** Returns the latest counts of one answer: a later event may report more than an earlier one. */
export const latestCounts = (earlier: unknown, later: unknown): unknown => {
  if (!isJson(earlier) || !isJson(later)) return later ?? earlier
  const known: Json = Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null))
  return { ...earlier, ...known }
}
