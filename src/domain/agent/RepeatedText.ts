/**
 * Detects text that a model repeats: a chunk of a fixed length that occurs so often, so close together, that the text loops. It reads a stream
 * piece by piece; the cuts between pieces do not change the result. One rolling hash identifies the chunk that ends at a character, and compares the
 * texts between two chunks.
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

/** Upper bounds of the limits. Each character in the search range takes 10 bytes of memory. */
const maxLimits: RepetitionLimits = { times: 200, chunk: 1_000, history: 200_000 }

/** The maximum average distance between two chunks, in chunks. */
const maxAverageGap = 5

/** Rounds a number and limits it to a range. */
const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(min, Math.floor(value)), max)

/** The factor of the polynomial hash. Its upper bits select a bucket, because the lower ones depend only on the lower bits of the text. */
const factor = 0x9e37_79b1 | 0
const bucketShift = 32 - 15

const noPlaces: Int32Array = new Int32Array()

/** The powers of `factor` below a size. */
const powersOf = (size: number): Int32Array => {
  const powers = new Int32Array(size)
  powers[0] = 1
  for (let i = 1; i < size; i += 1) powers[i] = Math.imul(powers[i - 1] ?? 0, factor)
  return powers
}

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
interface Repetition {
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
  /** Occurrences further back than this are out of range. */
  private readonly reach: number

  /** The size of the rings minus one. The size is a power of two that holds the reach and a chunk. */
  private readonly mask: number
  // The rings are made for the first character of a text and dropped with it: an agent that waits for its next task holds none.
  private powers = noPlaces
  /** The tracked text, and the hash of all text before each place. Two hashes give that of the text between. */
  private codes: Uint16Array = new Uint16Array()
  private before = noPlaces
  /** The last place of a chunk in each bucket, and from each place the one before it in that bucket. */
  private heads = noPlaces
  private older = noPlaces

  /** The number of tracked characters read, and where tracking began. */
  private length = 0
  private floor = 0

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
    this.mask = 2 ** Math.ceil(Math.log2(this.reach + this.chunk + 1)) - 1
  }

  private makeRings(): void {
    const size = this.mask + 1
    this.powers = powersOf(size)
    this.codes = new Uint16Array(size)
    this.before = new Int32Array(size)
    this.heads = new Int32Array(1 << (32 - bucketShift)).fill(-1)
    this.older = new Int32Array(size)
  }

  /** Forgets the text. An open code block stays open, and the text continues within its line. */
  forget(): void {
    this.floor = this.length
    // Places are 32-bit numbers. They restart long before they overflow.
    if (this.length < 1_000_000_000) return
    this.heads.fill(-1)
    this.length = 0
    this.floor = 0
    this.before[0] = 0
  }

  /** Forgets the text and its structure, because another text begins. */
  reset(): void {
    this.length = 0
    this.floor = 0
    this.powers = noPlaces
    this.codes = new Uint16Array()
    this.before = noPlaces
    this.heads = noPlaces
    this.older = noPlaces
    this.beginLine("undecided")
    this.backticks = 0
    this.inCode = false
  }

  /** Adds text. Returns the repetition that it completes, if any. */
  push(text: string): Repetition | undefined {
    for (let at = 0; at < text.length; at += 1) {
      if (!this.isTracked(text.charAt(at)) || !this.completes(text.charCodeAt(at))) continue
      const place = this.length - this.chunk
      const codes = Array.from({ length: this.chunk }, (_, n) => this.codes[(place + n) & this.mask] ?? 0)
      return { text: String.fromCharCode(...codes), times: this.times, end: at + 1 }
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
      const marks = line.trim().length
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
  private completes(code: number): boolean {
    if (this.length === 0) this.makeRings()
    const { before, chunk, codes, heads, mask, older } = this
    codes[this.length & mask] = code
    const hash = Math.imul((before[this.length & mask] ?? 0) + code, factor)
    this.length += 1
    before[this.length & mask] = hash
    const place = this.length - chunk
    if (place < this.floor) return false
    const bucket = this.hashOf(place, chunk) >>> bucketShift
    older[place & mask] = heads[bucket] ?? -1
    heads[bucket] = place
    return this.isLoop(place)
  }

  /** Whether the last occurrences of a chunk are close together and the text between them is mostly the same. */
  private isLoop(newest: number): boolean {
    const between = new Set<number>()
    let at = this.previous(newest, newest)
    for (let count = 2, next = newest; at >= 0; count += 1) {
      // Lengths are below 2 ** 18, so that a hash and a length make one exact number.
      between.add(this.hashOf(at, next - at) * 2 ** 18 + next - at)
      if (between.size > this.times / 2) return false
      if (count === this.times) return true
      next = at
      at = this.previous(next, newest)
    }
    return false
  }

  /** The place before this one that has the same chunk. -1: there is none within reach of the newest place. */
  private previous(place: number, newest: number): number {
    const { chunk, mask, older } = this
    const oldest = Math.max(this.floor, newest - this.reach)
    let at = older[place & mask] ?? -1
    while (at >= oldest && this.hashOf(at, chunk) !== this.hashOf(place, chunk)) at = older[at & mask] ?? -1
    return at < oldest ? -1 : at
  }

  /** The hash of a number of tracked characters from a place. */
  private hashOf(place: number, length: number): number {
    const { before, mask, powers } = this
    return ((before[(place + length) & mask] ?? 0) - Math.imul(before[place & mask] ?? 0, powers[length] ?? 0)) | 0
  }
}
