import { Result, Schema } from "effect"
import { unescaped } from "./Escapes.ts"

/** How a text in a file is found and replaced (spec 14, replace). Offsets are UTF-16 units. */

/** The ways of looking for a text, in the order in which they are tried; the first that finds anything decides. */
export const EditStrategy = Schema.Literals(["exact", "flexible", "regex", "unescaped", "fuzzy"])
export type EditStrategy = typeof EditStrategy.Type

/** What is to be replaced by what. */
export interface Replacement {
  readonly oldText: string
  readonly newText: string
  /** Places that have to be found: a number, or any. */
  readonly places: number | "any"
}

/** A text with its replacements made. */
export interface Edited {
  readonly text: string
  readonly strategy: EditStrategy
  readonly places: number
}

/** Why nothing was replaced, as the seeds name it; how many places were found. */
export interface EditFault {
  readonly type: "edit_no_occurrence_found" | "edit_expected_occurrence_mismatch" | "edit_no_change"
  readonly found: number
}

/** A place in a text and what comes there. */
interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

type Strategy = (text: string, oldText: string, newText: string) => ReadonlyArray<Splice>

/** Characters of a text beyond which only exact places are looked for. */
const mostLoose = 4 * 1024 * 1024

// --- line ends -----------------------------------------------------------------------------------------------------------

const unix = (text: string): string => text.replaceAll("\r\n", "\n")

/** Whether the lines of a text end with CR LF: all of them, or most. */
export const hasCrLf = (text: string): boolean => {
  let crLf = 0
  let all = 0
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) {
    all += 1
    if (text.charCodeAt(at - 1) === 13) crLf += 1
  }
  return crLf * 2 > all
}

/** A text with all its line ends as CR LF. */
export const withCrLf = (text: string): string => text.replace(/\r?\n/g, "\r\n")

/** Where the offsets of a text without CR LF lie in the text with them. */
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
  /** Without the line break. */
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

/** A block moved to another indentation: what its lines have beyond that of the first stays. Blank lines are empty. */
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

/** Where `wanted` stands in `all`, places that overlap an earlier one left out (Knuth, Morris, Pratt: linear). */
const occurrences = <A>(all: ReadonlyArray<A>, wanted: ReadonlyArray<A>): ReadonlyArray<number> => {
  const fallback: Array<number> = [0]
  for (let at = 1, length = 0; at < wanted.length; at += 1) {
    while (length > 0 && wanted[at] !== wanted[length]) length = fallback[length - 1] ?? 0
    if (wanted[at] === wanted[length]) length += 1
    fallback.push(length)
  }
  const found: Array<number> = []
  for (let at = 0, length = 0; at < all.length; at += 1) {
    while (length > 0 && all[at] !== wanted[length]) length = fallback[length - 1] ?? 0
    if (all[at] === wanted[length]) length += 1
    if (length < wanted.length) continue
    found.push(at - length + 1)
    length = 0
  }
  return found
}

/** Whole lines, and what comes in their place. */
interface Block {
  readonly wanted: ReadonlyArray<string>
  readonly text: string
  /** Whether nothing comes, not even an empty line. */
  readonly removes: boolean
}

/** The break after the last line is none of the lines that are looked for, and stays where something comes. */
const blockOf = (oldText: string, newText: string): Block => {
  const ends = oldText.endsWith("\n")
  return {
    wanted: (ends ? oldText.slice(0, -1) : oldText).split("\n"),
    text: ends && newText.endsWith("\n") ? newText.slice(0, -1) : newText,
    removes: ends && newText === ""
  }
}

/** A block in the place of these lines, with the indentation of the first. */
const lineSplices = (
  text: string,
  lines: ReadonlyArray<Line>,
  at: number,
  { removes, text: block, wanted }: Block
): ReadonlyArray<Splice> => {
  const first = lines[at]
  const last = lines[at + wanted.length - 1]
  if (first === undefined || last === undefined) return []
  const end = removes ? Math.min(last.end + 1, text.length) : last.end
  return [{ start: first.start, end, text: indented(block, indentOf(first.text)) }]
}

// --- strategies ----------------------------------------------------------------------------------------------------------

const exact: Strategy = (text, oldText, newText) => {
  const found: Array<Splice> = []
  for (let at = text.indexOf(oldText); at >= 0; at = text.indexOf(oldText, at + oldText.length)) {
    found.push({ start: at, end: at + oldText.length, text: newText })
  }
  return found
}

/** Whole lines that are the same but for the white space around each. */
const flexible: Strategy = (text, oldText, newText) => {
  const block = blockOf(oldText, newText)
  const wanted = block.wanted.map((line) => line.trim())
  // Most texts that are not found are known for that by their longest line.
  const longest = wanted.reduce((one, other) => (other.length > one.length ? other : one), "")
  if (longest === "" || !text.includes(longest)) return []
  const lines = linesOf(text)
  const trimmed = lines.map((line) => line.text.trim())
  return occurrences(trimmed, wanted).flatMap((at) => lineSplices(text, lines, at, block))
}

const tokenPattern = /[\p{L}\p{M}\p{N}_$]+|[^\s\p{L}\p{M}\p{N}_$]/gu

/**
 * The same words and signs from the beginning of a line on, whatever white space is between them. What spec 14 does with one
 * regular expression is done here by comparing tokens: a word is never part of a longer one, and the time is linear.
 */
const regex: Strategy = (text, oldText, newText) => {
  const wanted = oldText.match(tokenPattern) ?? []
  if (wanted.length === 0 || [...new Set(wanted)].some((token) => !text.includes(token))) return []
  const tokens: Array<string> = []
  const starts: Array<number> = []
  for (const match of text.matchAll(tokenPattern)) {
    tokens.push(match[0])
    starts.push(match.index)
  }
  const block = blockOf(oldText, newText)
  return occurrences(tokens, wanted).flatMap((at) => {
    const from = starts[at] ?? 0
    const start = text.lastIndexOf("\n", from - 1) + 1
    const indent = text.slice(start, from)
    if (indent.trim() !== "") return []
    const last = at + wanted.length - 1
    const end = (starts[last] ?? 0) + (tokens[last] ?? "").length
    const rest = block.removes ? (/[^\S\n]*\n/y.exec(text.slice(end, end + 1_000))?.[0] ?? "") : ""
    return [{ start, end: end + rest.length, text: indented(block.text, indent) }]
  })
}

/** Spec 14, ensureCorrectEdit: what a model escaped once too often stands in the file unescaped. */
const unescapedExact: Strategy = (text, oldText, newText) => {
  const search = unescaped(oldText)
  return search === oldText || search === "" ? [] : exact(text, search, unescaped(newText))
}

// --- fuzzy ---------------------------------------------------------------------------------------------------------------

/** Spec 14: so large a part of the text may differ; white space counts a tenth. */
const mostDifferent = 0.1
const whitespaceCost = 0.1
/** Shorter texts resemble too much. */
const leastFuzzy = 10
/** Steps of comparing in all, about a fifth of a second: beyond them nothing is found. */
const mostSteps = 20_000_000

/** Steps that are left. */
interface Work {
  left: number
}

/**
 * The Levenshtein distance of two texts, or `most + 1` where it is larger or the work is used up. Only the band of `most`
 * around the diagonal is looked at, twice as wide each time until it is wide enough (Ukkonen).
 */
export const distance = (a: string, b: string, most: number, work: Work = { left: mostSteps }): number => {
  if (Math.abs(a.length - b.length) > most) return most + 1
  for (let band = Math.min(most, 16); ; band = Math.min(most, band * 2)) {
    const found = banded(a, b, band, work)
    if (found <= band || work.left <= 0) return work.left <= 0 ? most + 1 : found
    if (band >= most) return most + 1
  }
}

const banded = (a: string, b: string, band: number, work: Work): number => {
  const over = band + 1
  if (Math.abs(a.length - b.length) > band) return over
  let previous = new Int32Array(b.length + 2).fill(over)
  let current = new Int32Array(b.length + 2).fill(over)
  for (let j = 0; j <= Math.min(b.length, band); j += 1) previous[j] = j
  for (let i = 1; i <= a.length; i += 1) {
    const from = Math.max(0, i - band)
    const to = Math.min(b.length, i + band)
    work.left -= to - from + 1
    if (work.left <= 0) return over
    const unit = a.charCodeAt(i - 1)
    let least = over
    for (let j = from; j <= to; j += 1) {
      const same = j > 0 && unit === b.charCodeAt(j - 1)
      const replaced = j === 0 ? over : (previous[j - 1] ?? over) + (same ? 0 : 1)
      const removed = j === i + band ? over : (previous[j] ?? over) + 1
      const inserted = j === from ? over : (current[j - 1] ?? over) + 1
      const cost = j === 0 ? i : Math.min(replaced, removed, inserted, over)
      current[j] = cost
      if (cost < least) least = cost
    }
    if (least >= over) return over
    const spare = previous
    previous = current
    current = spare
  }
  return Math.min(previous[b.length] ?? over, over)
}

const withoutSpace = (text: string): string => text.replace(/\s+/g, "")

/** How often each character stands in a window, compared with what is wanted: a lower bound of the distance for nothing. */
class Inventory {
  private readonly difference = new Int32Array(256)
  private missing = 0
  private surplus = 0

  /** Takes a text in (`by` 1) or out (-1). */
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

  /** No fewer edits turn one into the other. */
  get leastEdits(): number {
    return Math.max(this.missing, this.surplus)
  }
}

/** As many lines that differ a little. The best first; what overlaps a better one is none. */
const fuzzy: Strategy = (text, oldText, newText) => {
  if (oldText.trim().length < leastFuzzy) return []
  const block = blockOf(oldText, newText)
  const wanted = block.wanted.map((line) => line.trimEnd())
  const lines = linesOf(text)
  const joined = wanted.join("\n")
  const bare = withoutSpace(joined)
  const mostCost = joined.length * mostDifferent
  const mostEdits = Math.floor(mostCost)
  const work: Work = { left: mostSteps }
  const bareLines = lines.map((line) => withoutSpace(line.text))

  const inventory = new Inventory()
  inventory.add(bare, -1)
  const candidates: Array<{ readonly at: number; readonly cost: number }> = []
  for (const [last, bareLine] of bareLines.entries()) {
    inventory.add(bareLine, 1)
    const at = last - wanted.length + 1
    if (at > 0) inventory.add(bareLines[at - 1] ?? "", -1)
    if (at < 0 || inventory.leastEdits > mostEdits) continue
    const edits = distance(bareLines.slice(at, last + 1).join(""), bare, mostEdits, work)
    if (edits <= mostEdits) {
      const shown = lines.slice(at, last + 1).map((line) => line.text.trimEnd())
      const most = edits + Math.floor((mostCost - edits) / whitespaceCost)
      const all = distance(shown.join("\n"), joined, most, work)
      if (all <= most) candidates.push({ at, cost: edits + (all - edits) * whitespaceCost })
    }
    // Half a search would find some of the places: none is honest.
    if (work.left <= 0) return []
  }
  candidates.sort((a, b) => a.cost - b.cost || a.at - b.at)
  const taken = new Set<number>()
  return candidates
    .filter(({ at }) => {
      const own = wanted.map((_, index) => at + index)
      if (own.some((line) => taken.has(line))) return false
      for (const line of own) taken.add(line)
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
 * Replaces a text by another: exactly where it stands so, else where it stands with other white space, escapes or small
 * differences. All that is not replaced stays as it is, line ends included; new lines end as most lines of the text do.
 */
export const edit = (content: string, { newText, oldText, places }: Replacement): Result.Result<Edited, EditFault> => {
  if (oldText === newText) return Result.fail({ type: "edit_no_change", found: 0 })
  const text = unix(content)
  const search = unix(oldText)
  const replacement = unix(newText)
  if (search === "") return Result.fail({ type: "edit_no_occurrence_found", found: 0 })
  for (const [strategy, find] of strategies) {
    if (strategy !== "exact" && text.length > mostLoose) break
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
