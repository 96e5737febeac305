/** Regular expressions with the same meaning in both search engines: our own, which reads RE2's syntax, and ripgrep. */

import { escape as escapeRegExp } from "effect/RegExp"

/** The pattern of a search. */
export interface SearchPattern {
  /** In RE2's syntax. */
  readonly source: string
  /** In ripgrep's. Undefined where the two may differ. */
  readonly rust: string | undefined
  readonly isCaseSensitive: boolean
}

/** Options for reading a pattern. */
interface PatternOptions {
  readonly isFixed: boolean
  readonly isCaseSensitive: boolean
}

/** Flags that other dialects write at the beginning. Those about line breaks have no effect, because each line is matched alone. */
const inlineFlags = /^\(\?([imsu]+)\)/

/** Escapes that Rust reads otherwise: ASCII only, as in RE2. */
const letters: Readonly<Record<string, string>> = {
  d: "[0-9]",
  D: "[^0-9]",
  w: "[0-9A-Za-z_]",
  W: "[^0-9A-Za-z_]",
  b: "(?-u:\\b)",
  B: "(?-u:\\B)",
  s: "[\\t\\n\\f\\r ]",
  S: "[^\\t\\n\\f\\r ]"
}

/** What Rust reads as RE2 does, but for escapes: an escape, a class without operators of Rust's, a group without a name, a count, another character. */
const parts =
  /\\(?:[bBdDsSwWtrfv]|[^\w\s])|\[\^?(?:\\(?:[dDsSwWtrfv]|[^\w\s])|(?!--)[^\\[\]&~])+\]|\((?:\?:|(?!\?))|\{\d+(?:,\d*)?\}|[^\\[\](]/gu

/** An escape as Rust writes it, which escapes no character without a meaning. */
const escapeOf = (escape: string, char: string): string =>
  letters[char] ?? (/[\\.+*?()|[\]{}^$#&~trfv-]/.test(char) ? escape : char)

/** Bytes that are no UTF-8, which our own engine reads as U+FFFD, and Rust as no character. */
const invalidBytes = "(?-u:[\\x80-\\xff]{1,3})"

/** A part of a pattern in Rust's dialect. It may match more: our own engine reads the files once more. */
const rustOf = (part: string): string => {
  if (part === "{") return "\\{"
  // Our own engine reads lines without the carriage return at their end, and takes any other for a character.
  if (part === "$") return "(?:\\r?$)"
  const text = part.replace(/\\(.)/gu, escapeOf)
  const isNegated = text.includes("[^")
  return part === "." || isNegated || part.includes("\ufffd") ? `(?:${text}|${invalidBytes})` : text
}

/** Translates a pattern to Rust's dialect. Undefined when it has a part that the two may read differently. */
const toRust = (source: string): string | undefined => {
  const all = source.match(parts) ?? []
  if (all.join("") !== source) return undefined
  return all.map(rustOf).join("")
}

/** Reads the pattern of a search. */
export const searchPattern = (typed: string, { isCaseSensitive, isFixed }: PatternOptions): SearchPattern => {
  const [flags = ""] = (isFixed ? null : inlineFlags.exec(typed)) ?? []
  const source = isFixed ? escapeRegExp(typed) : typed.slice(flags.length)
  return { source, rust: toRust(source), isCaseSensitive: isCaseSensitive && !flags.includes("i") }
}
