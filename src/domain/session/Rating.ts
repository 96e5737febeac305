import { Schema } from "effect"

/** What the user thinks of a snapshot. A log keeps it as the label of the snapshot's message. */
export const Rating = Schema.Struct({
  verdict: Schema.Literals(["good", "bad"]),
  /** The user's reason; empty when none was given. */
  why: Schema.String
})
export type Rating = typeof Rating.Type

/** Reads `good` or `bad` and the reason after it; undefined for other words. */
export const parseRating = (words: string): Rating | undefined => {
  const [, verdict, why = ""] = /^(good|bad)\b:?\s*([\s\S]*)$/i.exec(words.trim()) ?? []
  return verdict === undefined ? undefined : { verdict: /good/i.test(verdict) ? "good" : "bad", why }
}

const prefix = "rated "

/** Returns a rating in words, as the label of the message: `rated bad: it lost the port`. */
export const ratingLabel = ({ verdict, why }: Rating): string => `${prefix}${verdict}${why === "" ? "" : `: ${why}`}`

/** Returns the rating that a label holds; undefined for another label. */
export const ratingOf = (label: string): Rating | undefined =>
  label.startsWith(prefix) ? parseRating(label.slice(prefix.length)) : undefined
