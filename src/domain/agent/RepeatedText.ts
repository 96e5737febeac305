/**
 * Detects text that a model repeats: a chunk of a fixed length that occurs so often, so close together, that the text loops. It reads a stream piece
 * by piece; the cuts between pieces do not change the result. Time grows linearly with the length: one rolling hash identifies the chunk that ends at
 * a character, compares the texts between two chunks, and gives back the characters themselves where they must be compared.
 *
 * Code between fences, table rows, dividers and rows of dots are skipped: they report progress or lead to a page number and are not loops. List
 * items, headings, quotes and dividers reset the search, so that only a repetition within one of them counts. A chunk whose occurrences are separated
 * by many different texts is the common beginning of list entries and not a loop.
 *
 * One file: the state of one loop over characters, which runs for every character that a model writes. Split into parts it is several times slower.
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

/** Upper bounds of the limits. Each character in the search range takes 17 bytes of memory. */
const maxLimits: RepetitionLimits = { times: 200, chunk: 1_000, history: 200_000 }

/** The maximum average distance between two chunks, in chunks. */
const maxAverageGap = 5

/** Rounds a number and limits it to a range. */
const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(min, Math.floor(value)), max)

/** The factor of the polynomial hash. It is odd, so that it has an inverse. */
const factor = 0x9e37_79b1 | 0
/** The inverse of the factor. Each step of Newton's method doubles the number of correct bits. */
let inverse = factor
for (let bits = 3; bits < 32; bits *= 2) inverse = Math.imul(inverse, 2 - Math.imul(factor, inverse))
/**
 * Buckets are selected by the upper bits of a hash, because the lower bits depend only on the lower bits of the text. There are many more buckets
 * than chunks: a collision costs far more than the memory.
 */
const bucketShift = 32 - 15
/** A bucket with more different chunks than this is not searched to its end. At worst a loop is detected later. */
const maxBucketDepth = 16

/** The powers of `factor` up to the size of a ring. */
const powersOf = (size: number): Int32Array => {
  const powers = new Int32Array(size)
  powers[0] = 1
  for (let i = 1; i < size; i += 1) powers[i] = Math.imul(powers[i - 1] ?? 0, factor)
  return powers
}

/**
 * Characters of a gram, of which every eighth is kept: any 50 consecutive characters of a text contain one of those completely. These are constants
 * and not fields, so that the compiled loop contains them directly.
 */
const gram = 43
const step = 8
const notKept = step - 1
const gramPower = powersOf(gram + 1)[gram] ?? 0
const gramShift = 32 - 12

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

const hashMark = 35
const closing = 41
const fullStop = 46
const quoteMark = 62
/** Dividing characters or dots that make a line a divider. */
const minDividers = 3

/** The text from one occurrence of a chunk to the next. */
interface Between {
  readonly from: number
  readonly length: number
  readonly hash: number
}

/** A detected repetition. */
export interface Repetition {
  /** The repeated chunk. */
  readonly text: string
  /** The number of occurrences that are close enough together. */
  readonly times: number
}

/** Detects repetitions in one stream of text. Mutable. */
export class RepeatedText {
  /** Occurrences that make a loop, and characters of a chunk. */
  private readonly times: number
  private readonly chunk: number
  private readonly chunkPower: number
  /** Occurrences further back than this are out of range. */
  private readonly reach: number

  /** The size of the ring minus one. The size is a power of two that holds the reach and a chunk. */
  private readonly mask: number
  /** `factor` to the power of each length in use. */
  private readonly powers: Int32Array

  /** Whether chunks are too short to contain a kept gram. Then every chunk is looked up. */
  private readonly isShort: boolean

  /** The hash of the text before each place. Two of them give the hash of the text between. */
  private readonly before: Int32Array
  /** The last place of a chunk in each bucket, and from each place the next older chunk of that bucket with another text. */
  private readonly heads = new Int32Array(1 << (32 - bucketShift)).fill(-1)
  private readonly older: Int32Array
  /** From each place the previous one with the same chunk. -1: it is the first. */
  private readonly previous: Int32Array
  /** How many of these, from the newest on, are one character after those of the place before. */
  private readonly aligned: Uint8Array

  /** The same for grams, while grams are sufficient. */
  private readonly gramHeads = new Int32Array(1 << (32 - gramShift)).fill(-1)
  private readonly gramOlder: Int32Array
  /** Whether every chunk is looked up, and where one last recurred. */
  private isClose: boolean
  private matched = 0
  private repetition: Repetition | undefined

  /** The number of tracked characters read, and where tracking began. */
  private length = 0
  private floor = 0
  private hash = 0

  private line = begins
  private dividers = 0
  private backticks = 0
  private inCode = false

  /** Characters read, plus the work beyond the sequential read. Tests use it to measure growth. */
  operations = 0

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
    this.chunkPower = this.powers[this.chunk] ?? 0
    this.isShort = this.chunk < gram + step - 1
    this.isClose = this.isShort
    this.before = new Int32Array(size)
    this.older = new Int32Array(size)
    this.previous = new Int32Array(size).fill(-1)
    this.aligned = new Uint8Array(size)
    this.gramOlder = new Int32Array(size).fill(-1)
  }

  /** Forgets the text. An open code block stays open, and the text continues within its line. */
  forget(): void {
    this.floor = this.length
    this.isClose = this.isShort
    // Places are 32-bit numbers. They restart long before they overflow.
    if (this.length < 1_000_000_000) return
    this.heads.fill(-1)
    this.previous.fill(-1)
    this.gramHeads.fill(-1)
    this.length = 0
    this.floor = 0
    this.hash = 0
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
    this.operations += text.length
    let at = 0
    // The next occurrence of each is looked up once for all characters before it: one pass each in total.
    let tick = -1
    let end = -1
    while (at < text.length) {
      if (tick < at) tick = placeOf(text, "`", at)
      if (at === tick) {
        const fenceResult = this.fence()
        if (fenceResult !== undefined) return fenceResult
        at += 1
        continue
      }
      this.backticks = 0
      if (this.inCode) {
        at = tick
        continue
      }
      if (end < at) end = placeOf(text, "\n", at)
      if (this.line === tableRow && at !== end) {
        at = Math.min(end, tick)
        continue
      }
      let to = at + 1
      if (at === end) {
        const isRow = this.line === tableRow
        this.line = begins
        this.dividers = 0
        if (isRow) {
          at = to
          continue
        }
      } else if (this.line === plain) {
        to = Math.min(end, tick)
      } else if (!this.counts(text.charCodeAt(at))) {
        at = to
        continue
      }
      const trackResult = this.track(text, at, to)
      if (trackResult !== undefined) return trackResult
      at = to
    }
    return undefined
  }

  /** Handles a backtick: every third one in a row opens or closes a code block. */
  private fence(): Repetition | undefined {
    this.backticks += 1
    if (this.line !== tableRow) this.line = plain
    if (this.backticks % 3 !== 0) {
      return this.inCode || this.line === tableRow ? undefined : this.track("`", 0, 1)
    }
    this.inCode = !this.inCode
    this.line = plain
    this.forget()
    return undefined
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

  /** Reads characters that can be part of a repetition. */
  private track(text: string, from: number, to: number): Repetition | undefined {
    for (let at = from; at < to;) {
      at = this.isClose ? this.follow(text, at, to) : this.skim(text, at, to)
      const { repetition } = this
      if (repetition === undefined) continue
      this.repetition = undefined
      return repetition
    }
    return undefined
  }

  /** Reads until a gram recurs. Until then no chunk recurs, because every chunk contains a kept gram. Returns the place it reached. */
  private skim(text: string, from: number, to: number): number {
    const { before, floor, gramHeads, mask, reach } = this
    let { hash, length } = this
    let at = from
    // No gram is complete before this place.
    for (const first = Math.min(to, from + floor + gram - 1 - length); at < first; at += 1) {
      hash = Math.imul(hash + text.charCodeAt(at), factor)
      length += 1
      before[length & mask] = hash
    }
    for (; at < to; at += 1) {
      hash = Math.imul(hash + text.charCodeAt(at), factor)
      length += 1
      before[length & mask] = hash
      const place = length - gram
      const value = (hash - Math.imul(before[place & mask] ?? 0, gramPower)) | 0
      const head = gramHeads[value >>> gramShift] ?? -1
      if (head >= place - reach && head >= floor && this.isKept(value, head, place)) {
        this.hash = hash
        this.length = length
        this.lookClosely()
        return at + 1
      }
      if ((place & notKept) === 0) this.keep(value, place)
    }
    this.hash = hash
    this.length = length
    return to
  }

  /** Whether a bucket contains a gram, from this place on. */
  private isKept(value: number, head: number, place: number): boolean {
    const { before, floor, gramOlder, mask, reach } = this
    const oldest = Math.max(floor, place - reach)
    for (let at = head, steps = 0; at >= oldest && steps < maxBucketDepth; steps += 1) {
      this.operations += 1
      if (hashAt(before, at, gram, gramPower) === value) return true
      at = gramOlder[(at / step) & mask] ?? -1
    }
    return false
  }

  private keep(value: number, place: number): void {
    const { gramHeads, gramOlder, mask } = this
    gramOlder[(place / step) & mask] = gramHeads[value >>> gramShift] ?? -1
    gramHeads[value >>> gramShift] = place
  }

  /** From here on every chunk is looked up: enters the chunks that can still matter and looks up the one that ends here. */
  private lookClosely(): void {
    const { before, chunk, chunkPower, floor, heads, length, mask, older, previous, reach } = this
    const last = length - chunk
    this.isClose = true
    this.matched = last
    for (let place = Math.max(floor, last - reach); place <= last; place += 1) {
      this.operations += 1
      const value = hashAt(before, place, chunk, chunkPower)
      if (place === last) {
        if (this.enter(place, value)) this.tell(place)
        return
      }
      older[place & mask] = heads[value >>> bucketShift] ?? -1
      heads[value >>> bucketShift] = place
      previous[place & mask] = -1
    }
  }

  /** Nothing recurred for so long that the chunks no longer matter: from here on grams are sufficient. */
  private lookAway(): void {
    const { before, floor, length, reach } = this
    this.isClose = false
    const last = length - gram
    for (let place = Math.ceil(Math.max(floor, last - reach) / step) * step; place <= last; place += step) {
      this.operations += 1
      this.keep(hashAt(before, place, gram, gramPower), place)
    }
  }

  /** Reads and looks up every chunk until one makes a loop or none recurred for long. Returns the place it reached. */
  private follow(text: string, from: number, to: number): number {
    const { aligned, before, chunk, chunkPower, floor, heads, mask, older, previous, reach } = this
    const enough = this.times - 1
    let { hash, length, matched } = this
    let at = from
    // No chunk is complete before this place.
    for (const first = Math.min(to, from + floor + chunk - 1 - length); at < first; at += 1) {
      hash = Math.imul(hash + text.charCodeAt(at), factor)
      length += 1
      before[length & mask] = hash
    }
    for (let isDone = false; at < to && !isDone; at += 1) {
      hash = Math.imul(hash + text.charCodeAt(at), factor)
      length += 1
      before[length & mask] = hash
      const place = length - chunk
      const value = (hash - Math.imul(before[place & mask] ?? 0, chunkPower)) | 0
      const head = heads[value >>> bucketShift] ?? -1
      if (head < place - reach || head < floor) {
        heads[value >>> bucketShift] = place
        older[place & mask] = -1
        previous[place & mask] = -1
        isDone = place - matched > reach
        continue
      }
      if (
        head > floor &&
        previous[(place - 1) & mask] === head - 1 &&
        hashAt(before, head, chunk, chunkPower) === value
      ) {
        // Inlined from `enter`: nearly all of a repetitive text takes this path.
        heads[value >>> bucketShift] = place
        older[place & mask] = older[head & mask] ?? -1
        previous[place & mask] = head
        matched = place
        const shifted = (previous[head & mask] ?? -1) >= floor ? (aligned[head & mask] ?? 0) + 1 : enough
        aligned[place & mask] = Math.min(shifted, enough)
        isDone = shifted < enough && this.examine(place)
      } else {
        isDone = this.enter(place, value)
        if (previous[place & mask] !== -1) matched = place
      }
      if (isDone) this.tell(place)
    }
    this.hash = hash
    this.length = length
    this.matched = matched
    if (length - chunk - matched > reach) {
      if (this.isShort) this.matched = length - chunk
      else this.lookAway()
    }
    return at
  }

  private tell(place: number): void {
    this.repetition = { text: this.between(place, place + this.chunk), times: this.times }
  }

  /** Enters a chunk whose bucket may already contain it. Returns whether it makes a loop. */
  private enter(place: number, value: number): boolean {
    const { aligned, before, chunk, chunkPower, floor, heads, mask, older, previous } = this
    const bucket = value >>> bucketShift
    const head = heads[bucket] ?? -1
    heads[bucket] = place
    let last = head
    if (head < Math.max(floor, place - this.reach)) {
      older[place & mask] = -1
      last = -1
    } else if (hashAt(before, head, chunk, chunkPower) === value) {
      older[place & mask] = older[head & mask] ?? -1
    } else {
      older[place & mask] = head
      last = this.find(place, value, head)
    }
    previous[place & mask] = last
    if (last < 0) return false
    // One character further in a repetition that was already examined, the texts between are the same, rotated by one character.
    const enough = this.times - 1
    let shifted = 0
    if (last > floor && (previous[(place - 1) & mask] ?? -1) === last - 1) {
      const further = previous[last & mask] ?? -1
      shifted = further >= floor ? Math.min(enough, (aligned[last & mask] ?? 0) + 1) : enough
    }
    aligned[place & mask] = shifted
    return shifted !== enough && this.examine(place)
  }

  /** The last place with the same chunk, further down its bucket. It is removed there, because the new one takes its place. -1: none. */
  private find(place: number, value: number, head: number): number {
    const { before, chunk, chunkPower, floor, mask, older, reach } = this
    const oldest = Math.max(floor, place - reach)
    let newer = head
    for (let at = older[head & mask] ?? -1, steps = 1; at >= oldest && steps < maxBucketDepth; steps += 1) {
      this.operations += 1
      const next = older[at & mask] ?? -1
      const other = hashAt(before, at, chunk, chunkPower)
      if (other === value) {
        older[newer & mask] = next
        return at
      }
      newer = at
      at = next
    }
    return -1
  }

  /** Whether the last occurrences are close together and the text between them is the same each time. */
  private examine(newest: number): boolean {
    const { chunk, mask, previous, times } = this
    const oldest = Math.max(this.floor, newest - this.reach)
    const maxKinds = Math.floor(times / 2)
    const kinds: Array<Between> = []
    const places: Array<number> = []
    const alike: Array<readonly [one: Between, other: number]> = []
    for (let at = newest; places.length < times - 1;) {
      const from = previous[at & mask] ?? -1
      if (from < oldest) return false
      const between = { from, length: at - from, hash: this.hashOf(from, at) }
      const same = kinds.find(({ hash, length }) => length === between.length && hash === between.hash)
      this.operations += kinds.length + 1
      if (same === undefined) kinds.push(between)
      else alike.push([same, from])
      if (kinds.length > maxKinds) return false
      places.push(from)
      at = from
    }
    // Equal hashes are only likely to mean equal text, so compare the characters.
    return (
      places.every((place) => this.isSame(newest, place, chunk)) &&
      alike.every(([one, other]) => this.isSame(one.from, other, one.length))
    )
  }

  private hashOf(from: number, to: number): number {
    return hashAt(this.before, from, to - from, this.powers[to - from] ?? 0)
  }

  private codeAt(place: number): number {
    const { before, mask } = this
    return (Math.imul(before[(place + 1) & mask] ?? 0, inverse) - (before[place & mask] ?? 0)) | 0
  }

  private isSame(one: number, other: number, length: number): boolean {
    this.operations += length
    for (let i = 0; i < length; i += 1) if (this.codeAt(one + i) !== this.codeAt(other + i)) return false
    return true
  }

  private between(from: number, to: number): string {
    let text = ""
    for (let at = from; at < to; at += 1) text += String.fromCharCode(this.codeAt(at))
    return text
  }
}

/** The hash of a number of characters from a place in a ring, with the factor to the power of that number. */
const hashAt = (before: Int32Array, place: number, length: number, power: number): number => {
  const mask = before.length - 1
  return ((before[(place + length) & mask] ?? 0) - Math.imul(before[place & mask] ?? 0, power)) | 0
}

/** The place of the next such character, or the end of the text. */
const placeOf = (text: string, character: string, from: number): number => {
  const at = text.indexOf(character, from)
  return at < 0 ? text.length : at
}
