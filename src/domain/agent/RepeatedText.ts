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

/** The powers of `factor` below a size. */
const powersOf = (size: number): Int32Array => {
  const powers = new Int32Array(size)
  powers[0] = 1
  for (let i = 1; i < size; i += 1) powers[i] = Math.imul(powers[i - 1] ?? 0, factor)
  return powers
}

/** The kind of the current line, as far as it is determined. */
const begins = 0
const hashes = 1
const bullet = 2
const digits = 3
const numbered = 4
const divider = 5
const plain = 6
const tableRow = 7

const isBlank = (code: number): boolean => code === 32 || code === 9 || code === 13 || code === 0xa0
const isDigit = (code: number): boolean => code >= 48 && code <= 57
/** `-`, `*`, `+` and the round bullets. */
const isBullet = (code: number): boolean =>
  code === 45 || code === 42 || code === 43 || code === 0x2022 || code === 0x2023 || code === 0x25e6
/** `-`, `*`, `+`, `_`, `=`, `|` and box-drawing characters. */
const isDividing = (code: number): boolean =>
  code === 45 ||
  code === 42 ||
  code === 43 ||
  code === 95 ||
  code === 61 ||
  code === 124 ||
  (code >= 0x2500 && code <= 0x257f)
/** Full stop, middle dot, ellipsis. A row of them is skipped, but does not reset the search: three of them occur in any text. */
const isDot = (code: number): boolean => code === 46 || code === 0xb7 || code === 0x2026
/** The characters at the left edge of a table. */
const isEdge = (code: number): boolean => code === 124 || code === 0x2502 || code === 0x2503 || code === 0x2551

const newLine = 10
const hashMark = 35
const closing = 41
const fullStop = 46
const quoteMark = 62
const backtick = 96
/** Dividing characters or dots that make a line a divider. */
const minDividers = 3

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
  /** Occurrences further back than this are out of range. */
  private readonly reach: number

  /** The size of the rings minus one. The size is a power of two that holds the reach and a chunk. */
  private readonly mask: number
  private readonly powers: Int32Array
  /** The tracked text, and the hash of all text before each place. Two hashes give that of the text between. */
  private readonly codes: Uint16Array
  private readonly before: Int32Array
  /** The last place of a chunk in each bucket, and from each place the one before it in that bucket. */
  private readonly heads = new Int32Array(1 << (32 - bucketShift)).fill(-1)
  private readonly older: Int32Array

  /** The number of tracked characters read, and where tracking began. */
  private length = 0
  private floor = 0

  private line = begins
  private dividers = 0
  private backticks = 0
  private inCode = false

  constructor(limits: Partial<RepetitionLimits> = {}) {
    const { chunk, history, times } = { ...defaultLimits, ...limits }
    this.times = clamp(times, 2, maxLimits.times)
    this.chunk = clamp(chunk, 1, maxLimits.chunk)
    // A shorter history could never hold a loop: it must hold all chunks of one side by side.
    const searchedChars = clamp(history, this.times * this.chunk, maxLimits.history)
    this.reach = Math.min(maxAverageGap * this.chunk * (this.times - 1), searchedChars - this.chunk)
    const size = 2 ** Math.ceil(Math.log2(this.reach + this.chunk + 1))
    this.mask = size - 1
    this.powers = powersOf(size)
    this.codes = new Uint16Array(size)
    this.before = new Int32Array(size)
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
    this.forget()
    this.line = begins
    this.backticks = 0
    this.inCode = false
  }

  /** Adds text. Returns the repetition that it completes, if any. */
  push(text: string): Repetition | undefined {
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at)
      if (!this.isTracked(code) || !this.completes(code)) continue
      const place = this.length - this.chunk
      const codes = Array.from({ length: this.chunk }, (_, n) => this.codes[(place + n) & this.mask] ?? 0)
      return { text: String.fromCharCode(...codes), times: this.times, end: at + 1 }
    }
    return undefined
  }

  /** Whether the next character can be part of a repetition. */
  private isTracked(code: number): boolean {
    if (code === backtick) return this.fence()
    this.backticks = 0
    if (this.inCode) return false
    if (code === newLine) {
      const isRow = this.line === tableRow
      this.line = begins
      this.dividers = 0
      return !isRow
    }
    return this.line === plain || (this.line !== tableRow && this.counts(code))
  }

  /** Handles a backtick: every third one in a row opens or closes a code block. */
  private fence(): boolean {
    this.backticks += 1
    if (this.line !== tableRow) this.line = plain
    if (this.backticks % 3 !== 0) return !this.inCode && this.line !== tableRow
    this.inCode = !this.inCode
    return this.begin(plain)
  }

  /** Handles a character of a line whose kind is not determined yet. Returns whether it can be part of a repetition. */
  private counts(code: number): boolean {
    const blank = isBlank(code)
    switch (this.line) {
      case begins:
        if (isEdge(code)) return this.begin(tableRow)
        if (code === quoteMark) return this.begin(plain)
        if (!blank) this.opened(code)
        return true
      case hashes:
        if (blank) return this.begin(plain)
        if (code !== hashMark) this.line = plain
        return true
      case digits:
        if (code === fullStop || code === closing) this.line = numbered
        else if (!isDigit(code)) this.line = plain
        return true
      case numbered:
        if (blank) return this.begin(plain)
        this.line = plain
        return true
      case bullet:
        if (blank) return this.begin(plain)
        if (this.dividers === 0) this.line = plain
        else this.divided(code)
        return true
      default:
        return this.divided(code)
    }
  }

  /** Handles the first character of a line that does not determine the line's kind. */
  private opened(code: number): void {
    this.dividers = isDividing(code) || isDot(code) ? 1 : 0
    if (isBullet(code)) this.line = bullet
    else if (this.dividers === 1) this.line = divider
    else if (code === hashMark) this.line = hashes
    else this.line = isDigit(code) ? digits : plain
  }

  /** Handles a further character of a line that is a divider as long as it holds nothing else. */
  private divided(code: number): boolean {
    const isLine = isDividing(code)
    const isMore = isLine || isDot(code)
    this.line = isMore || isBlank(code) ? divider : plain
    if (isMore) this.dividers += 1
    if (isLine && this.dividers === minDividers) this.forget()
    return this.line === plain || this.dividers < minDividers
  }

  /** Sets the kind of a line that resets the search. */
  private begin(line: typeof plain | typeof tableRow): false {
    this.line = line
    this.forget()
    return false
  }

  /** Adds a tracked character. Returns whether the chunk that it ends makes a loop. */
  private completes(code: number): boolean {
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
