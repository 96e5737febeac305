/**
 * Detects text that a model repeats: a chunk of a fixed length that occurs so often, so close together, that the text loops. It reads a stream
 * piece by piece; the cuts between pieces do not change the result.
 *
 * Code between fences, table rows, dividers and rows of dots are skipped: they report progress or lead to a page number and are not loops. List
 * items, headings, quotes and dividers reset the search, so that only a repetition within one of them counts. A chunk whose occurrences are separated
 * by many different texts is the common beginning of list entries and not a loop.
 */

/** The limits of repetition. */
export interface RepetitionLimits {
  /** Occurrences of a chunk that make a loop (Gemini CLI: 10). */
  readonly times: number
  /** Characters of a chunk (Gemini CLI: 50). */
  readonly chunk: number
  /** Characters of recent text to search (Gemini CLI: 5,000). A value too small to hold a loop is raised. */
  readonly history: number
}

/** The limits of Gemini CLI, March 2026. */
const defaultLimits: RepetitionLimits = { times: 10, chunk: 50, history: 5_000 }

/** Upper bounds of the limits. */
const maxLimits: RepetitionLimits = { times: 200, chunk: 1_000, history: 200_000 }

/** The maximum average distance between two chunks, in chunks. */
const maxAverageGap = 5

/** Rounds a number and limits it to a range. */
const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(min, Math.floor(value)), max)

// What the beginning of a line shows; after the last character of one of these it is known what the line is.

const tableEdge = /^[ \t\r\u00a0]*[|\u2502\u2503\u2551]$/
/** A quote, a heading, or an item of a list. */
const opening = /^[ \t\r\u00a0]*(?:>|(?:#+|\d+[.)]|[-*+\u2022\u2023\u25e6])[ \t\r\u00a0])$/
/** What may still become a heading or an item. */
const undecided = /^[ \t\r\u00a0]*(?:#*|\d+[.)]?|[\u2022\u2023\u25e6])$/
const dots = ".\u00b7\u2026"
/** A row of dots is skipped like a divider, but does not reset the search: three of them occur in any text. */
const divider = new RegExp(
  `^[ \\t\\r\\u00a0]*[-*+_=|\\u2500-\\u257f${dots}][-*+_=|\\u2500-\\u257f${dots} \\t\\r\\u00a0]*$`
)
const isBlank = (character: string): boolean => " \t\r\u00a0".includes(character)
/** Dividing characters or dots that make a line a divider. */
const minDividers = 3
/** A line that is undecided for longer is text, such as a long number. */
const maxUndecidedChars = 400

/** A detected repetition. */
export interface Repetition {
  /** The repeated chunk. */
  readonly text: string
  /** The number of occurrences that are close enough together. */
  readonly times: number
  /** Characters of the last piece up to the end of the repetition. */
  readonly end: number
}

/** Detects repetitions in one stream of text. Mutable. */
export class RepeatedText {
  /** Occurrences that make a loop, and characters of a chunk. */
  private readonly times: number
  private readonly chunk: number
  /** The first and the last occurrence of a loop are at most this far apart. */
  private readonly reach: number

  /** The tracked text since the search was reset, from `start` on. */
  private recent = ""
  private start = 0
  /** The last characters, as many as a chunk has. */
  private tail = ""
  /** The last places of each chunk in the tracked text, at most `times` of them. */
  private readonly places = new Map<string, Array<number>>()

  /** The beginning of the current line, until its kind is known. */
  private line = ""
  private kind: "undecided" | "text" | "tableRow" = "undecided"
  private backticks = 0
  private inCode = false

  constructor(limits: Partial<RepetitionLimits> = {}) {
    const { chunk, history, times } = { ...defaultLimits, ...limits }
    this.times = clamp(times, 2, maxLimits.times)
    this.chunk = clamp(chunk, 1, maxLimits.chunk)
    // A shorter history could never hold a loop: it must hold all chunks of one side by side.
    const searchedChars = clamp(history, this.times * this.chunk, maxLimits.history)
    this.reach = Math.min(maxAverageGap * this.chunk * (this.times - 1), searchedChars - this.chunk)
  }

  /** Forgets the text. An open code block stays open, and the text continues within its line. */
  forget(): void {
    this.recent = ""
    this.start = 0
    this.tail = ""
    this.places.clear()
  }

  /** Forgets the text and its structure, because another text begins. */
  reset(): void {
    this.forget()
    this.beginLine("undecided")
    this.backticks = 0
    this.inCode = false
  }

  /** Adds text. Returns the repetition that it completes, if any. */
  push(text: string): Repetition | undefined {
    for (let at = 0; at < text.length; at += 1) {
      const character = text.charAt(at)
      if (this.isTracked(character) && this.completes(character)) {
        return { text: this.tail, times: this.times, end: at + 1 }
      }
    }
    return undefined
  }

  private beginLine(kind: RepeatedText["kind"]): void {
    this.line = ""
    this.kind = kind
  }

  /** Whether the next character can be part of a repetition. */
  private isTracked(character: string): boolean {
    const isRow = this.kind === "tableRow"
    if (character === "`") return this.fence()
    this.backticks = 0
    if (this.inCode) return false
    if (character === "\n") {
      this.beginLine("undecided")
      return !isRow
    }
    return this.kind === "text" || (!isRow && this.decide(character))
  }

  /** Handles a backtick: every third one in a row opens or closes a code block. */
  private fence(): boolean {
    this.backticks += 1
    if (this.backticks % 3 === 0) {
      this.inCode = !this.inCode
      return this.resetAt("text")
    }
    if (this.kind === "undecided") this.beginLine("text")
    return !this.inCode && this.kind === "text"
  }

  /** Handles a character of a line whose kind is not known yet. Returns whether it can be part of a repetition. */
  private decide(character: string): boolean {
    this.line += character
    const { line } = this
    if (tableEdge.test(line)) return this.resetAt("tableRow")
    if (opening.test(line)) return this.resetAt("text")
    if (divider.test(line)) {
      const marks = line.trimStart().length
      // Blanks, and marks after the third, add nothing: the line stays short.
      if (isBlank(character) || marks > minDividers) this.line = line.slice(0, -1)
      else if (marks === minDividers && !dots.includes(character)) this.forget()
      return marks < minDividers
    }
    if (!undecided.test(line) || line.length > maxUndecidedChars) this.beginLine("text")
    return true
  }

  /** Resets the search, and sets what the rest of the line is. */
  private resetAt(kind: "text" | "tableRow"): false {
    this.beginLine(kind)
    this.forget()
    return false
  }

  /** Adds a tracked character. Returns whether the chunk that it ends makes a loop. */
  private completes(character: string): boolean {
    const { chunk, places, reach } = this
    this.recent += character
    if (this.recent.length > 2 * (reach + chunk)) {
      this.start += this.recent.length - reach - chunk
      this.recent = this.recent.slice(-reach - chunk)
      for (const [text, all] of places) if ((all.at(-1) ?? 0) < this.start) places.delete(text)
    }
    this.tail = `${this.tail}${character}`.slice(-chunk)
    if (this.tail.length < chunk) return false
    const place = this.start + this.recent.length - chunk
    const all = places.get(this.tail) ?? []
    all.push(place)
    if (all.length > this.times) all.shift()
    places.set(this.tail, all)
    return all.length === this.times && place - (all[0] ?? 0) <= reach && this.isLoop(all)
  }

  /** Whether the text between the occurrences of a chunk is mostly the same. */
  private isLoop(all: ReadonlyArray<number>): boolean {
    const between = all.slice(1).map((to, index) => this.recent.slice((all[index] ?? 0) - this.start, to - this.start))
    return new Set(between).size <= this.times / 2
  }
}
