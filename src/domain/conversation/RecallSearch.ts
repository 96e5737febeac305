/**
 * Searches all content that left the window. Each part is read once, no matter how often the conversation was
 * compressed.
 */

import { Schema } from "effect"
import { isCall, isMedia, isResponse, isThought, type Part, payload } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import { mediaText } from "../content/MediaBlocks.ts"
import { clipped, firstUnits, lastUnits } from "../text/Bytes.ts"
import { lineEnd, lineStart } from "../text/Lines.ts"
import { number, plural } from "../text/NumberText.ts"
import { type FoundLine, type Pattern, PatternMatcher, type Span } from "../text/Pattern.ts"
import { redacting } from "../text/Redaction.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { isTime } from "../text/Time.ts"
import { untrustedLine } from "../text/UntrustedText.ts"
import { estimateText } from "../tokens/Tokens.ts"
import { allEntries } from "./Branches.ts"
import { type Conversation, type Entry, type EntryId, sequenceOf, sourceOf, view } from "./Conversation.ts"
import { isWordAt, type LineMatch, type RecallQuery, wordsIn } from "./RecallQuery.ts"

/** The author of a text, in the order in which matches are shown. `copy` repeats other texts: a summary, an earlier recall. */
const kinds = ["user", "agent", "arguments", "output", "copy"] as const
export type PartKind = (typeof kinds)[number]

/** A part that is not shown, or not in full. */
export interface HiddenPart {
  readonly handle: Handle
  /** The message that it belongs to, and when that was written. */
  readonly entry: string
  readonly at: number | undefined
  readonly kind: PartKind
  /** Who wrote it, for the reader. */
  readonly label: string
  /** The text behind the handle. */
  readonly text: () => string
}

/** A search without a handle. */
export interface RecallSearch {
  /** A regular expression, or else plain text (see `readQuery`). */
  readonly pattern: string
  readonly maxTokens: number
  /** Leaves secrets out: the pattern then matches the text without them. */
  readonly isRedacted: boolean
  /** Leaves secrets out of a text; absent: those that the text shows by itself. */
  readonly clean?: (text: string) => SlicedWork<string>
  /** Whether the parts are those of the whole conversation rather than those that left the window. */
  readonly isWhole?: boolean
}

/** The answer to a search. */
export const FoundParts = Schema.Struct({
  text: Schema.String,
  /** Parts that were searched, and parts that match, of which at most 200 are counted. */
  searched: Schema.Natural,
  matched: Schema.Natural
})
export type FoundParts = typeof FoundParts.Type

/** The name of the recall tool. Its answers repeat what they found. */
const ownTool = "recall"

const toolKind = (name: string, kind: PartKind): PartKind => (name === ownTool ? "copy" : kind)

/** Describes a part of a message. Media are found by their kind and address. */
const describePart = ({ author, content }: Entry, part: Part): Pick<HiddenPart, "kind" | "label"> => {
  if (isCall(part)) {
    const { name } = part.functionCall
    return { kind: toolKind(name, "arguments"), label: `arguments of ${untrustedLine(name)}` }
  }
  if (isResponse(part)) {
    const { name = "a tool" } = part.functionResponse
    return { kind: toolKind(name, "output"), label: `output of ${untrustedLine(name)}` }
  }
  if (isMedia(part)) return { kind: content.role === "user" ? "user" : "agent", label: "attachment" }
  if (author === "summary") return { kind: "copy", label: "summary" }
  if (author !== undefined) return { kind: "output", label: "program" }
  if (content.role === "user") return { kind: "user", label: "user" }
  return { kind: "agent", label: isThought(part) ? "agent, thinking" : "agent" }
}

/** Returns the entries, the newest first, without the environment message. */
const newestFirst = (conversation: Conversation): ReadonlyArray<Entry> =>
  allEntries(conversation)
    .filter(({ author }) => author !== "environment")
    .toSorted((one, other) => sequenceOf(other.id) - sequenceOf(one.id))

const partsOf = (entry: Entry): ReadonlyArray<HiddenPart> =>
  entry.content.parts.flatMap((part, index) => {
    const handle = entry.handles[index]
    if (handle === undefined) return []
    const described = describePart(entry, part)
    const text = () => (isMedia(part) ? mediaText(part) : payload(part, sourceOf(entry, index)).text)
    return [{ handle, entry: entry.id, at: entry.at, ...described, text }]
  })

/** Returns the parts of a conversation that its view does not show in full, the newest first. */
export function* hiddenParts(conversation: Conversation): SlicedWork<ReadonlyArray<HiddenPart>> {
  const items = view(conversation)
  const whole = new Set<EntryId>()
  const fullyShown = new Set<Handle>()
  for (const { entry, shortened } of items) {
    if (shortened.size === 0) whole.add(entry.id)
    for (const [index, handle] of entry.handles.entries()) if (!shortened.has(index)) fullyShown.add(handle)
    yield
  }
  const hidden: Array<HiddenPart> = []
  for (const entry of newestFirst(conversation)) {
    yield
    if (whole.has(entry.id)) continue
    for (const part of partsOf(entry)) if (!fullyShown.has(part.handle)) hidden.push(part)
  }
  return hidden
}

/** Returns all parts of a conversation, those that its view shows too, the newest first. */
export function* allParts(conversation: Conversation): SlicedWork<ReadonlyArray<HiddenPart>> {
  const parts = new Map<Handle, HiddenPart>()
  for (const entry of newestFirst(conversation)) {
    for (const part of partsOf(entry)) if (!parts.has(part.handle)) parts.set(part.handle, part)
    yield
  }
  return [...parts.values()]
}

/** Matching parts that are ranked and counted. */
const maxCandidates = 200

interface Candidate {
  readonly part: HiddenPart
  /** Those in the text as it is stored. */
  readonly hits: Hits
  /** The smaller, the newer. */
  readonly age: number
}

/** The best candidates, by kind, then by weight, then by age. Mutable. */
class Candidates {
  private held: Array<Candidate> = []
  private count = 0

  add(candidate: Candidate): void {
    this.count += 1
    this.held.push(candidate)
    if (this.held.length >= 2 * maxCandidates) this.held = this.best()
  }

  best(): Array<Candidate> {
    const rank = ({ part: { kind } }: Candidate) => kinds.indexOf(kind)
    return this.held
      .toSorted((a, b) => rank(a) - rank(b) || b.hits.weight - a.hits.weight || a.age - b.age)
      .slice(0, maxCandidates)
  }

  get isCut(): boolean {
    return this.count > maxCandidates
  }
}

/** Matching lines of a part that are shown, and characters of a line and of one of context. */
const maxLines = 3
const maxLineChars = 240
const maxContextChars = 120

/** A match, and its line: its index, and where it begins and ends in the text. */
interface Hit extends LineMatch {
  readonly line: number
  readonly lineStart: number
  readonly lineEnd: number
}

/** The hits of a text: their number, and the most specific ones, of equal ones the first. Mutable. */
class Hits {
  count = 0
  best: ReadonlyArray<Hit> = []

  add(hit: Hit): void {
    this.count += 1
    const at = this.best.findIndex(({ weight }) => weight < hit.weight)
    if (at >= 0 || this.best.length < maxLines) {
      this.best = this.best.toSpliced(at < 0 ? this.best.length : at, 0, hit).slice(0, maxLines)
    }
  }

  /** The weight of the most specific hit. */
  get weight(): number {
    return this.best[0]?.weight ?? 0
  }
}

/** Finds the hits in a text. */
type Look = (text: string) => SlicedWork<Hits>

/** Finds the matches of a pattern: the first of each line, or some of a line that is too long to be shown. */
const byPattern = (pattern: Pattern): Look => {
  const matcher = new PatternMatcher(pattern)
  return function* (text) {
    const hits = new Hits()
    for (let at = 0, line = 0; at <= text.length; line += 1) {
      const match = yield* matcher.line(text, at)
      if (match === undefined) break
      line += match.breaks
      const end = yield* lineEnd(text, match.from)
      const place = { line, lineStart: match.start, lineEnd: end }
      let next: FoundLine | undefined = match
      for (let count = 0; count < maxLines && next !== undefined; count += 1) {
        const span: Span | undefined = yield* matcher.span(text, next.from, end)
        if (span === undefined) break
        const isWhole = span.end > span.start && !isWordAt(text, span.start - 1) && !isWordAt(text, span.end)
        hits.add({ ...span, ...place, weight: isWhole ? 2 : 1 })
        const from: number = span.end + maxLineChars / 2
        next = from < end ? yield* matcher.line(text, from, end) : undefined
      }
      at = end + 1
    }
    return hits
  }
}

/** Finds the lines with some of the words, in a text that holds all of them. */
const byWords = (words: ReadonlyArray<string>): Look =>
  function* (text) {
    const hits = new Hits()
    if (words.length === 0 || (yield* wordsIn(words, text, 0, text.length)).present < words.length) return hits
    for (let at = 0, line = 0; at <= text.length; line += 1) {
      const end = yield* lineEnd(text, at)
      yield
      const { present, whole, ...place } = yield* wordsIn(words, text, at, end)
      if (present > 0) hits.add({ ...place, line, lineStart: at, lineEnd: end, weight: present + whole })
      at = end + 1
    }
    return hits
  }

const clipAround = (line: string, { end, start }: { readonly start: number; readonly end: number }): string => {
  if (line.length <= maxLineChars) return line
  const room = Math.max(0, maxLineChars - (end - start))
  const from = Math.max(0, Math.min(start - Math.floor(room / 2), line.length - maxLineChars))
  const tail = from === 0 ? line : lastUnits(line, line.length - from)
  return `${from === 0 ? "" : "…"}${firstUnits(tail, maxLineChars)}${from + maxLineChars < line.length ? "…" : ""}`
}

/** The beginning of a line, as long as a line of context and a character more. */
const contextOf = (text: string, start: number, end: number): string =>
  text.slice(start, Math.min(end, start + maxContextChars + 1))

/** Writes the most specific hits with a line of context, numbered as `recall HANDLE` numbers them. */
function* excerptOf(text: string, { best }: Hits): SlicedWork<string> {
  const lines = new Map(best.map(({ line, lineEnd: to, lineStart: from }) => [line, text.slice(from, to)]))
  for (const { line, lineEnd: end, lineStart: start } of best) {
    if (start > 0 && !lines.has(line - 1)) {
      lines.set(line - 1, contextOf(text, yield* lineStart(text, start - 1), start - 1))
    }
    if (end < text.length && !lines.has(line + 1)) {
      lines.set(line + 1, contextOf(text, end + 1, yield* lineEnd(text, end + 1)))
    }
  }
  return [...lines]
    .sort(([a], [b]) => a - b)
    .flatMap(([at, whole], index, all) => {
      const line = whole.endsWith("\r") ? whole.slice(0, -1) : whole
      const found = best.filter((hit) => hit.line === at)
      if (found.length > 0) {
        return found.map(({ end, lineStart: from, start }) => {
          return `  ${at + 1}: ${clipAround(line, { start: start - from, end: end - from })}`
        })
      }
      const gap = (all[index - 1]?.[0] ?? at) < at - 1 ? ["  …"] : []
      // A blank line of context says nothing.
      return line.trim() === "" ? gap : [...gap, `  ${at + 1}- ${clipped(line, maxContextChars)}`]
    })
    .join("\n")
}

const headerOf = ({ at, entry, handle, label }: HiddenPart, { count }: Hits): string =>
  [
    handle,
    entry,
    ...(at === undefined || !isTime(at) ? [] : [new Date(at).toISOString().slice(0, 16).replace("T", " ")]),
    label,
    ...(count > maxLines ? [`${number(count)} matches`] : [])
  ].join("  ")

const nouns: Readonly<Record<PartKind, readonly [one: string, many?: string]>> = {
  user: ["message of the user", "messages of the user"],
  agent: ["text of the agent", "texts of the agent"],
  arguments: ["call"],
  output: ["output"],
  copy: ["summary or earlier recall", "summaries or earlier recalls"]
}

/** The share of the budget that excerpts fill; the rest names further parts. Some tokens are kept for notes. */
const excerptShare = 0.8
const noteTokens = 100
const maxNoteChars = 120

interface Rendered {
  readonly text: string
  readonly matched: number
}

function* withoutSecrets(text: string): SlicedWork<string> {
  return (yield* redacting(text)).text
}

function* render(
  candidates: Candidates,
  look: Look,
  { clean = withoutSecrets, isRedacted, maxTokens }: Omit<RecallSearch, "pattern">
): SlicedWork<Rendered> {
  const room = maxTokens - noteTokens
  const blocks: Array<string> = []
  const names: Array<string> = []
  const omitted = new Map<PartKind, number>()
  let used = 0
  let matched = 0
  const take = (list: Array<string>, text: string, budget: number): boolean => {
    const tokens = estimateText(text) + 1
    if (used + tokens > budget) return false
    used += tokens
    list.push(text)
    return true
  }
  for (const { hits: stored, part } of candidates.best()) {
    const original = part.text()
    // The whole text: a line could separate a secret from its name.
    const text = isRedacted ? yield* clean(original) : original
    const hits = isRedacted ? yield* look(text) : stored
    if (hits.count === 0) continue
    matched += 1
    const header = isRedacted ? yield* clean(headerOf(part, hits)) : headerOf(part, hits)
    const isOpen = names.length === 0 && omitted.size === 0
    if (isOpen && take(blocks, `${header}\n${yield* excerptOf(text, hits)}`, room * excerptShare)) continue
    if (take(names, header, room)) continue
    omitted.set(part.kind, (omitted.get(part.kind) ?? 0) + 1)
  }
  const rest = [...omitted].map(([kind, count]) => plural(count, ...nouns[kind])).join(", ")
  const isCut = candidates.isCut && matched > 0
  const more = [
    ...(names.length === 0 ? [] : [`More parts that match:\n${names.join("\n")}`]),
    ...(rest === "" ? [] : [`Left out: ${rest}. Narrow the pattern, or allow more tokens.`]),
    ...(isCut ? [`More than ${maxCandidates} parts match; only the best were looked at. Narrow the pattern.`] : [])
  ]
  return { text: [...blocks, ...more].join("\n\n"), matched }
}

/**
 * Searches parts, given newest first, for a pattern, and for all of its words where no line matches. Matches in words of the user come first, then those
 * in words of the agent, in arguments and in outputs; among them whole words, then the newest.
 */
export function* searching(
  parts: ReadonlyArray<HiddenPart>,
  query: RecallQuery,
  options: Omit<RecallSearch, "pattern">
): SlicedWork<FoundParts> {
  const patterned = new Candidates()
  const worded = new Candidates()
  const looks = { pattern: byPattern(query.pattern), words: byWords(query.words) }
  const seen = new Set<Handle>()
  for (const [age, part] of parts.entries()) {
    if (seen.has(part.handle)) continue
    seen.add(part.handle)
    const text = part.text()
    const hits = yield* looks.pattern(text)
    if (hits.count > 0) patterned.add({ part, hits, age })
    const wordHits = yield* looks.words(text)
    if (wordHits.count > 0) worded.add({ part, hits: wordHits, age })
    yield
  }
  const notes = query.problem === undefined ? [] : [`(Searched as plain text: ${clipped(query.problem, maxNoteChars)})`]
  let found = yield* render(patterned, looks.pattern, options)
  if (found.matched === 0) {
    found = yield* render(worded, looks.words, options)
    if (found.matched > 0) {
      notes.push(
        `(No line matches the pattern. These parts have all of its words: ${clipped(query.words.join(", "), maxNoteChars)})`
      )
    }
  }
  if (found.matched > 0) notes.push(found.text)
  else
    notes.push(
      `No match in the ${plural(seen.size, "part")}${options.isWhole === true ? "" : " that left the window"}.`
    )
  return { text: notes.join("\n\n"), searched: seen.size, matched: found.matched }
}
