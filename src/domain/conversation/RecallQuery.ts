import { Result } from "effect"
import { escape as escapeRegExp } from "effect/RegExp"
import { errorText } from "../text/ErrorText.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"

/**
 * The patterns of a search and of an excerpt. They come from a model or a user and run on texts from anywhere, so a pattern that could take too long is
 * not run.
 */

/** A regular expression whose time on a line is bounded. */
export interface LinePattern {
  readonly pattern: RegExp
  /** Characters of a line that are matched at a time. */
  readonly window: number
  /** Whether only the beginning or the end of a line can match. */
  readonly anchor: "start" | "end" | undefined
}

/** Why a pattern is not run. */
export type PatternProblem =
  /** `detail` is the engine's message. */
  { readonly _tag: "Invalid"; readonly detail: string } | { readonly _tag: "Slow" }

/** A problem in words, in one line. */
export const patternProblemText = (problem: PatternProblem): string =>
  problem._tag === "Invalid"
    ? problem.detail
    : "the pattern could take too long: it repeats a group that repeats or chooses, or repeats too often"

/** The parsed pattern of a search. */
export interface RecallQuery extends LinePattern {
  /** The words of the pattern in lower case. Texts that hold all of them are the answer where no line matches. */
  readonly words: ReadonlyArray<string>
  /** Why the pattern is searched for as plain text. */
  readonly problem: string | undefined
}

/** A match within a line. */
export interface LineMatch {
  readonly start: number
  readonly end: number
  /** The greater, the more specific: 2 for a match of whole words, or the number of words on the line, whole ones twice. */
  readonly weight: number
}

const maxPatternChars = 1_000
const maxWords = 16

/** The flags that other dialects write at the beginning. */
const inlineFlags = /^\(\?[imsux]+\)/
const escapeSequence = /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|k<[^>]*>|[^])/g
const groupOpening = /\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?/g

/** The structure of a pattern: each escape and each class is a letter, and a reference back is a repetition. */
const skeleton = (source: string): string =>
  source
    .replace(escapeSequence, (escaped) => (/^\\[1-9k]/.test(escaped) ? "+" : "a"))
    .replace(/\[[^\]]*\]/g, "a")
    .replace(groupOpening, "(")

/** The cost of one repetition: `a{3}` costs little, but must not be repeated itself. */
const repetitionCost = (quantifier: string): number =>
  quantifier.startsWith("?")
    ? 0.25
    : !quantifier.startsWith("{")
      ? 1
      : /\d{3}/.test(quantifier)
        ? Infinity
        : quantifier.includes(",")
          ? 1
          : 0.1

/**
 * Returns the number of repetitions whose lengths a backtracking engine tries in combination: its time on `n` characters grows with a power of `n` one
 * higher. Infinity where a repeated group repeats or chooses, which can take exponential time.
 */
const costOf = (structure: string): number => {
  let cost = 0
  const groups: Array<number> = []
  for (const [token, quantifier = ""] of structure.matchAll(/\)?([*+?]|\{\d+(?:,\d*)?\})\??|[()|]/g)) {
    if (token === "(") groups.push(cost)
    // A choice within a group counts as a little repetition.
    else if (token === "|") cost += 0.01
    else if (token.startsWith(")")) {
      const before = groups.pop() ?? 0
      if (quantifier !== "" && !quantifier.startsWith("?") && cost > before) return Infinity
      cost += quantifier === "" ? 0 : repetitionCost(quantifier)
    } else cost += repetitionCost(quantifier)
  }
  return cost
}

/**
 * Characters of a line that are matched at a time, by cost; a match then takes a fraction of a second at worst. A
 * pattern that costs more is not run.
 */
const windows = [4_000, 2_000, 400, 120]

/** Matches anything at the ends of a pattern. It changes no result and takes time. */
const emptyEnds = /^\^?(?:\.[*]\??)+|(?<!\\)(?:\.[*]\??)+\$?$/g

const wordsOf = (text: string): ReadonlyArray<string> => {
  const words =
    text
      .toLowerCase()
      .replace(/\\[a-z]/g, " ")
      .match(/[\p{L}\p{N}_](?:[\p{L}\p{N}_./@:-]*[\p{L}\p{N}_])?/gu) ?? []
  return [...new Set(words)].filter((word) => word.length > 2).slice(0, maxWords)
}

/** Parses a regular expression from a user or a model, and checks that its time is bounded. */
export const parsePattern = (pattern: string, flags = "u"): Result.Result<LinePattern, PatternProblem> => {
  const valid = Result.try({
    try: () => new RegExp(pattern, flags),
    catch: (error): PatternProblem => ({
      _tag: "Invalid",
      detail: errorText(error)
    })
  })
  if (Result.isFailure(valid)) return Result.fail(valid.failure)
  const source = pattern.replace(emptyEnds, "")
  const structure = skeleton(source)
  const window = windows[Math.max(0, Math.ceil(costOf(structure) - 0.5))]
  if (window === undefined) return Result.fail({ _tag: "Slow" })
  const anchor = structure.includes("^") ? "start" : structure.includes("$") ? "end" : undefined
  return Result.succeed({ pattern: new RegExp(source, flags), window, anchor })
}

const caseFlags = (text: string): string => (/\p{Lu}/u.test(text) ? "u" : "iu")

const plainText = (text: string): LinePattern => ({
  pattern: new RegExp(escapeRegExp(text), caseFlags(text)),
  window: 4_000,
  anchor: undefined
})

/**
 * Parses the pattern of a search: a regular expression, or else plain text. It ignores case unless it has a capital letter. Returns undefined for a
 * blank one.
 */
export const parseQuery = (pattern: string): RecallQuery | undefined => {
  const written = pattern.slice(0, maxPatternChars).replace(inlineFlags, "")
  if (written.trim() === "") return undefined
  const parsed = parsePattern(written, caseFlags(written.replace(escapeSequence, "")))
  const words = wordsOf(written)
  return {
    ...Result.getOrElse(parsed, () => plainText(written)),
    words: words.length === 1 && words[0] === written.toLowerCase() ? [] : words,
    problem: Result.isFailure(parsed) ? patternProblemText(parsed.failure) : undefined
  }
}

const isWordAt = (line: string, at: number): boolean => /[\p{L}\p{N}_]/u.test(line.charAt(at))

/** Returns the first match in a line from a place on. A match in a line longer than the window is found if it is at most three quarters as long as that. */
export function* matchIn(
  { anchor, pattern, window }: LinePattern,
  line: string,
  begin = 0
): SlicedWork<LineMatch | undefined> {
  if (anchor === "start" && begin > 0) return undefined
  const step = Math.ceil(window / 4)
  const first = anchor === "end" ? Math.max(begin, line.length - window) : begin
  const last = anchor === "start" ? 0 : Math.max(first, line.length - window)
  for (let from = first; ; from = Math.min(from + step, last)) {
    const found = pattern.exec(line.length <= window && from === 0 ? line : line.slice(from, from + window))
    if (found !== null) {
      const start = from + found.index
      const end = start + found[0].length
      return { start, end, weight: end > start && !isWordAt(line, start - 1) && !isWordAt(line, end) ? 2 : 1 }
    }
    if (from >= last) return undefined
    yield window * 10
  }
}

const standsIn = (line: string, word: string): boolean => {
  for (let at = line.indexOf(word); at >= 0; at = line.indexOf(word, at + 1)) {
    if (!isWordAt(line, at - 1) && !isWordAt(line, at + word.length)) return true
  }
  return false
}

/** Returns the words of a query on a line: the place of the first, and their weight. */
export const wordsIn = ({ words }: RecallQuery, line: string): LineMatch | undefined => {
  const lower = line.toLowerCase()
  const present = words.filter((word) => lower.includes(word))
  const [first] = present
  if (first === undefined) return undefined
  const start = lower.indexOf(first)
  return {
    start,
    end: start + first.length,
    weight: present.length + present.filter((word) => standsIn(lower, word)).length
  }
}
