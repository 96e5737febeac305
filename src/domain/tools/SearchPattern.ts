import { Result } from "effect"
import { escape as escapeRegExp } from "effect/RegExp"
import { errorText } from "../text/ErrorText.ts"

/** Regular expressions with the same meaning in both search engines: JavaScript's `RegExp` and ripgrep. */

/** A parsed pattern. */
export interface SearchPattern {
  /** The source for `RegExp`. */
  readonly source: string
  readonly flags: string
  /** The source for ripgrep. Undefined when its engine lacks a feature: lookaround, backreferences. */
  readonly rust: string | undefined
  readonly isCaseSensitive: boolean
}

/** The reason why a pattern is invalid, in the words of `RegExp`. */
export interface PatternProblem {
  readonly _tag: "InvalidPattern"
  readonly message: string
}

const invalid = (message: string): Result.Result<never, PatternProblem> =>
  Result.fail({ _tag: "InvalidPattern", message })

/** Options for reading a pattern. */
export interface PatternOptions {
  readonly isFixed: boolean
  readonly isCaseSensitive: boolean
}

/** Flags that other dialects write at the beginning. Those about line breaks have no effect, because each line is matched alone. */
const inlineFlags = /^\(\?([imsu]+)\)/

/** Returns the reason why `RegExp` rejects a pattern. */
const syntaxProblem = (source: string, flags: string): string | undefined => {
  try {
    void new RegExp(source, flags)
    return undefined
  } catch (error) {
    return errorText(error)
  }
}

const letters: Readonly<Record<string, string>> = {
  // ASCII only, as in `RegExp`.
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

/** Translates a `RegExp` pattern to Rust's dialect. Undefined when Rust cannot express it. */
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

/** Parses a pattern. */
export const parseSearch = (
  typed: string,
  { isCaseSensitive, isFixed }: PatternOptions
): Result.Result<SearchPattern, PatternProblem> => {
  if (isFixed) {
    const source = escapeRegExp(typed)
    return Result.succeed({ source, flags: isCaseSensitive ? "us" : "ius", rust: toRust(source), isCaseSensitive })
  }
  const inline = inlineFlags.exec(typed)
  const source = inline === null ? typed : typed.slice(inline[0].length)
  const isSensitive = isCaseSensitive && inline?.[1]?.includes("i") !== true
  const flags = isSensitive ? "s" : "is"
  // Many patterns have \" or a lone brace, which only the legacy syntax allows.
  const strict = syntaxProblem(source, `${flags}u`)
  if (strict === undefined) {
    return Result.succeed({ source, flags: `${flags}u`, rust: toRust(source), isCaseSensitive: isSensitive })
  }
  const wrong = syntaxProblem(source, flags)
  if (wrong !== undefined) return invalid(wrong.replace(/^Invalid regular expression: /, ""))
  return Result.succeed({ source, flags, rust: toRust(source), isCaseSensitive: isSensitive })
}

/** Returns a pattern for the lines that match `pattern` and not `excluded`. Only `RegExp` can express it. */
export const excluding = (
  pattern: SearchPattern,
  excluded: SearchPattern
): Result.Result<SearchPattern, PatternProblem> => {
  const source = `^(?=.*(?:${pattern.source}))(?!.*(?:${excluded.source}))`
  const flags = [...pattern.flags].filter((flag) => excluded.flags.includes(flag)).join("")
  const problem = syntaxProblem(source, flags)
  return problem === undefined
    ? Result.succeed({ source, flags, rust: undefined, isCaseSensitive: pattern.isCaseSensitive })
    : invalid(problem)
}
