/** Regular expressions of a search, so that they mean the same to both engines that may carry it out. */

/** A pattern that is understood. */
export interface SearchPattern {
  /** For `RegExp`. */
  readonly source: string
  readonly flags: string
  /** The same for ripgrep; undefined where its engine has no such thing (looking around, references back). */
  readonly rust: string | undefined
  readonly isCaseSensitive: boolean
}

/** How a pattern is meant. */
export interface PatternOptions {
  readonly isFixed: boolean
  readonly isCaseSensitive: boolean
}

/** Flags that other dialects write at the beginning. Those about line breaks change nothing: lines have none. */
const inlineFlags = /^\(\?([imsu]+)\)/

const attempt = (source: string, flags: string): string | undefined => {
  try {
    void new RegExp(source, flags)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const letters: Readonly<Record<string, string>> = {
  // As `RegExp` means them: of ASCII.
  d: "[0-9]",
  D: "[^0-9]",
  w: "[0-9A-Za-z_]",
  W: "[^0-9A-Za-z_]",
  b: "(?-u:\\b)",
  B: "(?-u:\\B)",
  s: "\\s",
  S: "\\S",
  t: "\\t",
  r: "\\r",
  f: "\\f",
  v: "\\v",
  0: "\\x00"
}

const meta = /[\\.+*?()|[\]{}^$#&~-]/

/** The escape at `i` in the other dialect and its length, or undefined. */
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
  return [meta.test(char) ? `\\${char}` : char, 2]
}

/** A pattern for `RegExp` in the dialect of Rust; undefined where that cannot say it. */
const toRust = (source: string): string | undefined => {
  let text = ""
  let isInClass = false
  for (let i = 0; i < source.length;) {
    const char = source[i] ?? ""
    if (char === "\\") {
      const found = escapeAt(source, i, isInClass)
      if (found === undefined) return undefined
      text += found[0]
      i += found[1]
      continue
    }
    if (isInClass) {
      // What combines classes there is a plain character here.
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
      const named = /^\(\?<([A-Za-z_]\w*)>/.exec(source.slice(i))
      if (named === null && !source.startsWith("(?:", i)) return undefined
      text += named === null ? "(?:" : "("
      i += named === null ? 3 : named[0].length
      continue
    } else if (char === "{") {
      text += /^\{\d+(?:,\d*)?\}/.test(source.slice(i)) ? "{" : "\\{"
    } else text += char
    i += 1
  }
  return text
}

/** Understands a pattern, or says why it is none. */
export const parseSearch = (given: string, { isCaseSensitive, isFixed }: PatternOptions): SearchPattern | string => {
  if (isFixed) {
    const source = given.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")
    return { source, flags: isCaseSensitive ? "us" : "ius", rust: toRust(source), isCaseSensitive }
  }
  const inline = inlineFlags.exec(given)
  const source = inline === null ? given : given.slice(inline[0].length)
  const isSensitive = isCaseSensitive && inline?.[1]?.includes("i") !== true
  const flags = isSensitive ? "s" : "is"
  // Many write \" and a lone brace, which only the older rules allow.
  const strict = attempt(source, `${flags}u`)
  if (strict === undefined) {
    return { source, flags: `${flags}u`, rust: toRust(source), isCaseSensitive: isSensitive }
  }
  const wrong = attempt(source, flags)
  if (wrong !== undefined) return wrong.replace(/^Invalid regular expression: /, "")
  return { source, flags, rust: toRust(source), isCaseSensitive: isSensitive }
}

/** Lines that match one pattern and not the other. Only `RegExp` can say it. */
export const without = (pattern: SearchPattern, excluded: SearchPattern): SearchPattern | string => {
  const source = `^(?=.*(?:${pattern.source}))(?!.*(?:${excluded.source}))`
  const flags = [...pattern.flags].filter((flag) => excluded.flags.includes(flag)).join("")
  return attempt(source, flags) ?? { source, flags, rust: undefined, isCaseSensitive: pattern.isCaseSensitive }
}
