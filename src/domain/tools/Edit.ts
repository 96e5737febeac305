/** Finds and replaces a text in a file. Offsets are UTF-16 units. */

import { Result, Schema } from "effect"
import { type ComparisonBudget, distance, maxComparisonSteps } from "../text/EditDistance.ts"
import { withoutExtraEscapes } from "./ModelEscapes.ts"

/** The matching strategies in the order in which they are tried; the first with a match decides. */
export const EditStrategy = Schema.Literals(["exact", "flexible", "regex", "unescaped", "fuzzy"])
export type EditStrategy = typeof EditStrategy.Type

/** A replacement to make. */
export interface Replacement {
  readonly oldText: string
  readonly newText: string
  /** The number of matches required, or any. */
  readonly places: number | "any"
}

/** A text with its replacements made. */
interface Edited {
  readonly text: string
  readonly strategy: EditStrategy
  readonly places: number
}

/** The reason why nothing was replaced, in the words of Gemini CLI, and the number of matches. */
export interface EditFault {
  readonly type: "edit_no_occurrence_found" | "edit_expected_occurrence_mismatch" | "edit_no_change"
  readonly found: number
}

/** A range of a text and its replacement. */
interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

type Strategy = (text: string, oldText: string, newText: string) => ReadonlyArray<Splice>

/** Maximum characters of a text for strategies other than `exact`. */
const maxLooseMatchChars = 4 * 1024 * 1024

// --- line ends -----------------------------------------------------------------------------------------------------------

const unix = (text: string): string => text.replaceAll("\r\n", "\n")

/** Returns whether the lines of a text end with CR LF: all of them, or most. */
export const hasCrLf = (text: string): boolean => {
  let crLf = 0
  let all = 0
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) {
    all += 1
    if (text.charCodeAt(at - 1) === 13) crLf += 1
  }
  return crLf * 2 > all
}

/** Returns a text with all its line ends as CR LF. */
export const withCrLf = (text: string): string => text.replace(/\r?\n/g, "\r\n")

/** Maps offsets of the text without CR LF to offsets of the original. */
const originalOffsets = (original: string): ((offset: number) => number) => {
  const breaks: Array<number> = []
  for (let at = original.indexOf("\r\n"); at >= 0; at = original.indexOf("\r\n", at + 2))
    breaks.push(at - breaks.length)
  return (offset) => {
    let low = 0
    let high = breaks.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((breaks[middle] ?? 0) < offset) low = middle + 1
      else high = middle
    }
    return offset + low
  }
}

// --- lines ---------------------------------------------------------------------------------------------------------------

interface Line {
  readonly start: number
  /** The end of the line, without its line break. */
  readonly end: number
  readonly text: string
}

const linesOf = (text: string): ReadonlyArray<Line> => {
  const lines: Array<Line> = []
  for (let start = 0; start < text.length;) {
    const at = text.indexOf("\n", start)
    const end = at < 0 ? text.length : at
    lines.push({ start, end, text: text.slice(start, end) })
    start = end + 1
  }
  return lines
}

const indentOf = (line: string): string => /^[^\S\n]*/.exec(line)?.[0] ?? ""

/** Moves a block to another indentation. Indentation beyond that of the first line stays; blank lines become empty. */
const indented = (block: string, indent: string): string => {
  const lines = block.split("\n")
  const own = indentOf(lines.find((line) => line.trim() !== "") ?? "")
  return lines
    .map((line) => {
      if (line.trim() === "") return ""
      return indent + (line.startsWith(own) ? line.slice(own.length) : line.trimStart())
    })
    .join("\n")
}

/** Returns the offsets of a sequence in another one, without overlaps (Knuth, Morris, Pratt: linear). */
const occurrences = <A>(all: ReadonlyArray<A>, sequence: ReadonlyArray<A>): ReadonlyArray<number> => {
  const fallback: Array<number> = [0]
  for (let at = 1, length = 0; at < sequence.length; at += 1) {
    while (length > 0 && sequence[at] !== sequence[length]) length = fallback[length - 1] ?? 0
    if (sequence[at] === sequence[length]) length += 1
    fallback.push(length)
  }
  const offsets: Array<number> = []
  for (let at = 0, length = 0; at < all.length; at += 1) {
    while (length > 0 && all[at] !== sequence[length]) length = fallback[length - 1] ?? 0
    if (all[at] === sequence[length]) length += 1
    if (length < sequence.length) continue
    offsets.push(at - length + 1)
    length = 0
  }
  return offsets
}

/** Whole lines and their replacement. */
interface Block {
  readonly oldLines: ReadonlyArray<string>
  readonly text: string
  /** Whether the lines are removed, leaving not even an empty line. */
  readonly removes: boolean
}

/** The break after the last line is not part of the lines to match. It stays unless the lines are removed. */
const blockOf = (oldText: string, newText: string): Block => {
  const ends = oldText.endsWith("\n")
  return {
    oldLines: (ends ? oldText.slice(0, -1) : oldText).split("\n"),
    text: ends && newText.endsWith("\n") ? newText.slice(0, -1) : newText,
    removes: ends && newText === ""
  }
}

/** Replaces lines by a block with the indentation of the first line. */
const lineSplices = (
  text: string,
  lines: ReadonlyArray<Line>,
  at: number,
  { removes, text: block, oldLines }: Block
): ReadonlyArray<Splice> => {
  const first = lines[at]
  const last = lines[at + oldLines.length - 1]
  if (first === undefined || last === undefined) return []
  const end = removes ? Math.min(last.end + 1, text.length) : last.end
  return [{ start: first.start, end, text: indented(block, indentOf(first.text)) }]
}

// --- strategies ----------------------------------------------------------------------------------------------------------

const exact: Strategy = (text, oldText, newText) => {
  const splices: Array<Splice> = []
  for (let at = text.indexOf(oldText); at >= 0; at = text.indexOf(oldText, at + oldText.length)) {
    splices.push({ start: at, end: at + oldText.length, text: newText })
  }
  return splices
}

/** Matches whole lines that differ only in surrounding white space. */
const flexible: Strategy = (text, oldText, newText) => {
  const block = blockOf(oldText, newText)
  const trimmedOld = block.oldLines.map((line) => line.trim())
  // If the longest line is missing, which is the usual case, nothing else has to be compared.
  const longestLine = trimmedOld.reduce((one, other) => (other.length > one.length ? other : one), "")
  if (longestLine === "" || !text.includes(longestLine)) return []
  const lines = linesOf(text)
  const trimmed = lines.map((line) => line.text.trim())
  return occurrences(trimmed, trimmedOld).flatMap((at) => lineSplices(text, lines, at, block))
}

const tokenPattern = /[\p{L}\p{M}\p{N}_$]+|[^\s\p{L}\p{M}\p{N}_$]/gu

/**
 * Matches the same words and signs from the beginning of a line, with any white space between them. Gemini CLI uses one regular
 * expression; this compares tokens, so a word never matches part of a longer one, and the time is linear.
 */
const regex: Strategy = (text, oldText, newText) => {
  const oldTokens = oldText.match(tokenPattern) ?? []
  if (oldTokens.length === 0 || [...new Set(oldTokens)].some((token) => !text.includes(token))) return []
  const tokens: Array<string> = []
  const starts: Array<number> = []
  for (const match of text.matchAll(tokenPattern)) {
    tokens.push(match[0])
    starts.push(match.index)
  }
  const block = blockOf(oldText, newText)
  return occurrences(tokens, oldTokens).flatMap((at) => {
    const from = starts[at] ?? 0
    const start = text.lastIndexOf("\n", from - 1) + 1
    const indent = text.slice(start, from)
    if (indent.trim() !== "") return []
    const last = at + oldTokens.length - 1
    const end = (starts[last] ?? 0) + (tokens[last] ?? "").length
    const rest = block.removes ? (/[^\S\n]*\n/y.exec(text.slice(end, end + 1_000))?.[0] ?? "") : ""
    return [{ start, end: end + rest.length, text: indented(block.text, indent) }]
  })
}

/** Matches text that the model escaped once too often and that is unescaped in the file. */
const unescapedExact: Strategy = (text, oldText, newText) => {
  const search = withoutExtraEscapes(oldText)
  return search === oldText || search === "" ? [] : exact(text, search, withoutExtraEscapes(newText))
}

// --- fuzzy ---------------------------------------------------------------------------------------------------------------

/** An edit costs as much as this number of characters may differ in a text: a tenth may. White space costs a tenth of an edit. */
const editCost = 10
/** Minimum length for fuzzy matching: shorter texts resemble too much. */
const minFuzzyChars = 10
const withoutSpace = (text: string): string => text.replace(/\s+/g, "")

/** Counts characters of a window against those of the text to match: a cheap lower bound of the distance. */
class Inventory {
  private readonly difference = new Int32Array(256)
  private missing = 0
  private surplus = 0

  /** Adds a text to the window (`by` 1) or removes it (-1). */
  add(text: string, by: 1 | -1): void {
    for (let at = 0; at < text.length; at += 1) {
      const unit = text.charCodeAt(at) & 255
      const before = this.difference[unit] ?? 0
      const after = before + by
      this.difference[unit] = after
      this.surplus += Math.max(after, 0) - Math.max(before, 0)
      this.missing += Math.max(-after, 0) - Math.max(-before, 0)
    }
  }

  /** A lower bound of the number of edits that turn one text into the other. */
  get leastEdits(): number {
    return Math.max(this.missing, this.surplus)
  }
}

/** Matches the same number of lines with small differences. The best match comes first; overlapping ones are dropped. */
const fuzzy: Strategy = (text, oldText, newText) => {
  if (oldText.trim().length < minFuzzyChars) return []
  const block = blockOf(oldText, newText)
  const trimmedOld = block.oldLines.map((line) => line.trimEnd())
  const lines = linesOf(text)
  const joined = trimmedOld.join("\n")
  const bare = withoutSpace(joined)
  const maxCost = joined.length
  const maxEdits = Math.floor(maxCost / editCost)
  const work: ComparisonBudget = { left: maxComparisonSteps }
  const bareLines = lines.map((line) => withoutSpace(line.text))

  const inventory = new Inventory()
  inventory.add(bare, -1)
  const candidates: Array<{ readonly at: number; readonly cost: number }> = []
  for (const [last, bareLine] of bareLines.entries()) {
    inventory.add(bareLine, 1)
    const at = last - trimmedOld.length + 1
    if (at > 0) inventory.add(bareLines[at - 1] ?? "", -1)
    if (at < 0 || inventory.leastEdits > maxEdits) continue
    const edits = distance(bareLines.slice(at, last + 1).join(""), bare, maxEdits, work)
    if (edits <= maxEdits) {
      const shown = lines.slice(at, last + 1).map((line) => line.text.trimEnd())
      const maxTotalEdits = edits + maxCost - edits * editCost
      const all = distance(shown.join("\n"), joined, maxTotalEdits, work)
      if (all <= maxTotalEdits) candidates.push({ at, cost: edits * editCost + all - edits })
    }
    // An incomplete search would find only some of the matches, so it returns none.
    if (work.left <= 0) return []
  }
  candidates.sort((a, b) => a.cost - b.cost)
  const usedLines = new Set<number>()
  return candidates
    .filter(({ at }) => {
      const own = trimmedOld.map((_, index) => at + index)
      if (own.some((line) => usedLines.has(line))) return false
      for (const line of own) usedLines.add(line)
      return true
    })
    .flatMap(({ at }) => lineSplices(text, lines, at, block))
    .sort((a, b) => a.start - b.start)
}

const strategies: ReadonlyArray<readonly [EditStrategy, Strategy]> = [
  ["exact", exact],
  ["flexible", flexible],
  ["regex", regex],
  ["unescaped", unescapedExact],
  ["fuzzy", fuzzy]
]

// --- the whole -----------------------------------------------------------------------------------------------------------

const spliced = (content: string, splices: ReadonlyArray<Splice>): string => {
  const offsetOf = originalOffsets(content)
  const end = hasCrLf(content) ? withCrLf : (text: string) => text
  const parts: Array<string> = []
  let from = 0
  for (const splice of splices) {
    parts.push(content.slice(from, offsetOf(splice.start)), end(splice.text))
    from = offsetOf(splice.end)
  }
  return parts.join("") + content.slice(from)
}

/**
 * Replaces a text: at exact matches, else at matches that differ in white space, escapes or small details. Everything else stays as
 * it is, line ends included. New lines end as most lines of the text do.
 */
export const edit = (content: string, { newText, oldText, places }: Replacement): Result.Result<Edited, EditFault> => {
  if (oldText === newText) return Result.fail({ type: "edit_no_change", found: 0 })
  const text = unix(content)
  const search = unix(oldText)
  const replacement = unix(newText)
  if (search === "") return Result.fail({ type: "edit_no_occurrence_found", found: 0 })
  for (const [strategy, find] of strategies) {
    if (strategy !== "exact" && text.length > maxLooseMatchChars) break
    const splices = find(text, search, replacement)
    if (splices.length === 0) continue
    if (places !== "any" && splices.length !== places) {
      return Result.fail({ type: "edit_expected_occurrence_mismatch", found: splices.length })
    }
    const edited = spliced(content, splices)
    return edited === content
      ? Result.fail({ type: "edit_no_change", found: splices.length })
      : Result.succeed({ text: edited, strategy, places: splices.length })
  }
  return Result.fail({ type: "edit_no_occurrence_found", found: 0 })
}
