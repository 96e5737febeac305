import { escape as escapeRegExp } from "effect/RegExp"

/** Regular expressions with the same meaning in both search engines: our own, which reads RE2's syntax, and ripgrep. */

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

const letters: Readonly<Record<string, string>> = {
  // ASCII only, as in RE2.
  d: "[0-9]",
  D: "[^0-9]",
  w: "[0-9A-Za-z_]",
  W: "[^0-9A-Za-z_]",
  b: "(?-u:\\b)",
  B: "(?-u:\\B)",
  s: "[\\t\\n\\f\\r ]",
  S: "[^\\t\\n\\f\\r ]",
  t: "\\t",
  r: "\\r",
  f: "\\f",
  v: "\\v",
  0: "\\x00"
}

const metaCharacters = /[\\.+*?()|[\]{}^$#&~-]/

/** Translates the escape at `i` to Rust's dialect. Returns it with its length in the source; undefined when Rust has no such escape. */
const escapeAt = (source: string, i: number, isInClass: boolean): readonly [string, number] | undefined => {
  const rest = source.slice(i)
  const code = /^\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\})/i.exec(rest)
  if (code !== null) return [`\\x{${code[1] ?? code[2] ?? code[3]}}`, code[0].length]
  const property = /^\\[pP]\{[A-Za-z_=]+\}/.exec(rest)
  if (property !== null) return [property[0], property[0].length]
  const char = source[i + 1] ?? ""
  if (char === "b" && isInClass) return ["\\x08", 2]
  const letter = letters[char]
  if (letter !== undefined) return char === "0" && /\d/.test(source[i + 2] ?? "") ? undefined : [letter, 2]
  if (/[A-Za-z0-9]/.test(char) || char === "") return undefined
  return [metaCharacters.test(char) ? `\\${char}` : char, 2]
}

/** Translates a pattern to Rust's dialect. Undefined when Rust cannot express it. */
const toRust = (source: string): string | undefined => {
  let text = ""
  let isInClass = false
  for (let i = 0; i < source.length;) {
    const char = source[i] ?? ""
    if (char === "\\") {
      const translated = escapeAt(source, i, isInClass)
      if (translated === undefined) return undefined
      text += translated[0]
      i += translated[1]
      continue
    }
    if (isInClass) {
      // Set operators of Rust's classes are plain characters here.
      if (char === "]") isInClass = false
      text += "[&~".includes(char) ? `\\${char}` : char
    } else if (char === "[") {
      isInClass = true
      const begin = source.startsWith("[^", i) ? "[^" : "["
      if (source[i + begin.length] === "]") return undefined
      text += begin
      i += begin.length
      continue
    } else if (char === "(" && source[i + 1] === "?") {
      const namedGroup = /^\(\?<([A-Za-z_]\w*)>/.exec(source.slice(i))
      if (namedGroup === null && !source.startsWith("(?:", i)) return undefined
      text += namedGroup === null ? "(?:" : "("
      i += namedGroup === null ? 3 : namedGroup[0].length
      continue
    } else if (char === "{") {
      text += /^\{\d+(?:,\d*)?\}/.test(source.slice(i)) ? "{" : "\\{"
    } else text += char
    i += 1
  }
  return text
}

/** Reads the pattern of a search. */
export const searchPattern = (typed: string, { isCaseSensitive, isFixed }: PatternOptions): SearchPattern => {
  const [flags = ""] = (isFixed ? null : inlineFlags.exec(typed)) ?? []
  const source = isFixed ? escapeRegExp(typed) : typed.slice(flags.length)
  return { source, rust: toRust(source), isCaseSensitive: isCaseSensitive && !flags.includes("i") }
}
