/**
 * Words that a model says over and over (spec 12): a chunk of so many characters that came so often, so close together, that
 * the text goes round in circles. Reads a stream piece by piece, with the same result however it is cut, in time that grows
 * as its length: one rolling hash gives the chunk that ends at a character, tells apart the texts between two chunks,
 * and gives back the characters themselves where they have to be compared.
 *
 * Left out are code between fences, table rows, dividers and rows of dots, which report progress or lead to a page number
 * and are no circle; list items, headings, quotes and dividers begin anew, so that only a repetition within one of them counts. A chunk between whose occurrences stand many different texts is the common
 * beginning of a list and no loop.
 */

/** What counts as a repetition. */
export interface Repeating {
  /** Occurrences of a chunk that make a loop (spec 12: 10). */
  readonly times: number
  /** Characters of a chunk (spec 12, seed 002: 50). */
  readonly chunk: number
  /** Characters that are looked back on (spec 12, seed 002: 5,000); what cannot hold a loop is taken for longer. */
  readonly history: number
}

/** Spec 12. */
const usual: Repeating = { times: 10, chunk: 50, history: 5_000 }

/** Beyond these a loop costs more than it is worth: each of the last characters takes 17 bytes of memory. */
const most: Repeating = { times: 200, chunk: 1_000, history: 200_000 }

/** The average distance of two chunks, in chunks (spec 12). */
const gap = 5

/** A whole number within bounds. */
const within = (value: number, least: number, highest: number): number =>
  Math.min(Math.max(least, Math.floor(value)), highest)

/** The factor of the polynomial hash; odd, so that it can be taken back. */
const factor = 0x9e37_79b1 | 0
/** What takes it back: each step of Newton's doubles the bits that are right. */
let inverse = factor
for (let bits = 3; bits < 32; bits *= 2) inverse = Math.imul(inverse, 2 - Math.imul(factor, inverse))
/**
 * Buckets are told apart by the upper bits of a hash: the lower ones know only the lower ones of the text. There are many
 * more of them than chunks, because two in one bucket cost far more than the memory.
 */
const bucketShift = 32 - 15
/** A bucket that holds more different chunks than this is not searched to its end: at worst a loop is seen later. */
const deepest = 16

/** `factor` to the power of each length up to that of a ring. */
const powersOf = (size: number): Int32Array => {
  const powers = new Int32Array(size)
  powers[0] = 1
  for (let i = 1; i < size; i += 1) powers[i] = Math.imul(powers[i - 1] ?? 0, factor)
  return powers
}

/**
 * Characters of a gram, of which every eighth is kept: whatever 50 characters are cut out of a text, a whole one of those is
 * among them. These are no fields, so that they stand in the compiled loop as they are.
 */
const gram = 43
const step = 8
const notKept = step - 1
const gramPower = powersOf(gram + 1)[gram] ?? 0
const gramShift = 32 - 12

/** What a line has shown itself to be so far. */
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
/** `-`, `*`, `+` and the round ones. */
const isBullet = (code: number): boolean =>
  code === 45 || code === 42 || code === 43 || code === 0x2022 || code === 0x2023 || code === 0x25e6
/** `-`, `*`, `+`, `_`, `=`, `|` and the characters that boxes are drawn with. */
const isDividing = (code: number): boolean =>
  code === 45 ||
  code === 42 ||
  code === 43 ||
  code === 95 ||
  code === 61 ||
  code === 124 ||
  (code >= 0x2500 && code <= 0x257f)
/** Full stop, middle dot, ellipsis. They make a row that is left out, but begin nothing anew: three of them stand in any text. */
const isDot = (code: number): boolean => code === 46 || code === 0xb7 || code === 0x2026
/** What stands at the left edge of a table. */
const isEdge = (code: number): boolean => code === 124 || code === 0x2502 || code === 0x2503 || code === 0x2551

const hashMark = 35
const closing = 41
const fullStop = 46
const quoteMark = 62
/** Dividing characters or dots that make a line one of nothing else. */
const dividing = 3

/** From one occurrence of a chunk to the next. */
interface Between {
  readonly from: number
  readonly length: number
  readonly hash: number
}

/** Where a chunk came again and again. */
export interface Repetition {
  /** The chunk. */
  readonly text: string
  /** How often it came, so close together that it counts. */
  readonly times: number
}

/** Reads a text and says when it repeats itself. Mutable: one stream of text has one. */
export class RepeatedText {
  /** Occurrences that make a loop, and characters of a chunk. */
  private readonly times: number
  private readonly chunk: number
  private readonly chunkPower: number
  /** No occurrence further back than this can be one of them. */
  private readonly reach: number

  /** Places of the ring less one: a power of two of them holds the reach and a chunk. */
  private readonly mask: number
  /** `factor` to the power of each length that is asked for. */
  private readonly powers: Int32Array

  /** Whether chunks are too short to hold a gram that is kept: then every one is looked up. */
  private readonly isShort: boolean

  /** The hash of the text before each place; two of them give the hash of what stands between. */
  private readonly before: Int32Array
  /** The last place of a chunk in each bucket, and from each place the next older chunk of that bucket with another text. */
  private readonly heads = new Int32Array(1 << (32 - bucketShift)).fill(-1)
  private readonly older: Int32Array
  /** From each place the last one with the same chunk; -1: it is the first. */
  private readonly previous: Int32Array
  /** How many of these, from the newest on, are one character further than those of the place before. */
  private readonly aligned: Uint8Array

  /** The same for grams, as long as they are enough. */
  private readonly gramHeads = new Int32Array(1 << (32 - gramShift)).fill(-1)
  private readonly gramOlder: Int32Array
  /** Whether every chunk is looked up, and where one came again last. */
  private isClose: boolean
  private matched = 0
  private repetition: Repetition | undefined

  /** Characters read of what is tracked, and where that began. */
  private length = 0
  private floor = 0
  private hash = 0

  private line = begins
  private dividers = 0
  private backticks = 0
  private inCode = false

  /** Characters read, and what was done beyond reading one after the other: for tests of how it grows. */
  operations = 0

  constructor(given: Partial<Repeating> = {}) {
    const { chunk, history, times } = { ...usual, ...given }
    this.times = within(times, 2, most.times)
    this.chunk = within(chunk, 1, most.chunk)
    // What is too short for a loop would never find one: it is as long as the chunks of one side by side.
    const looked = within(history, this.times * this.chunk, most.history)
    this.reach = Math.min(gap * this.chunk * (this.times - 1), looked - this.chunk)
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

  /** Forgets what was read; a code block that is open stays open. Text goes on within its line. */
  forget(): void {
    this.floor = this.length
    this.isClose = this.isShort
    // Places are numbers of 32 bits; long before they run out they begin anew.
    if (this.length < 1_000_000_000) return
    this.heads.fill(-1)
    this.previous.fill(-1)
    this.gramHeads.fill(-1)
    this.length = 0
    this.floor = 0
    this.hash = 0
    this.before[0] = 0
  }

  /** Forgets all, also where in its structure the text is: another text begins. */
  reset(): void {
    this.forget()
    this.line = begins
    this.backticks = 0
    this.inCode = false
  }

  /** Reads on; the repetition that is complete with one of these characters, where there is one. */
  push(text: string): Repetition | undefined {
    this.operations += text.length
    let at = 0
    // Where the next of each stands is looked up once for all characters before it: all in all one pass each.
    let tick = -1
    let end = -1
    while (at < text.length) {
      if (tick < at) tick = placeOf(text, "`", at)
      if (at === tick) {
        const found = this.fence()
        if (found !== undefined) return found
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
      const found = this.track(text, at, to)
      if (found !== undefined) return found
      at = to
    }
    return undefined
  }

  /** A backtick: every third of a row opens or closes a code block. */
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

  /** A character at which it is not known yet what its line is; whether it can be part of a repetition. */
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

  /** The first character of a line that is none of those that say at once what it is. */
  private opened(code: number): void {
    this.dividers = isDividing(code) || isDot(code) ? 1 : 0
    if (isBullet(code)) this.line = bullet
    else if (this.dividers === 1) this.line = divider
    else if (code === hashMark) this.line = hashes
    else this.line = isDigit(code) ? digits : plain
  }

  /** One more character of a line that is a divider as long as nothing else stands in it. */
  private divided(code: number): boolean {
    const isLine = isDividing(code)
    const isMore = isLine || isDot(code)
    this.line = isMore || isBlank(code) ? divider : plain
    if (isMore) this.dividers += 1
    if (isLine && this.dividers === dividing) this.forget()
    return this.line === plain || this.dividers < dividing
  }

  /** The line is something before which all begins anew. */
  private begin(line: typeof plain | typeof tableRow): false {
    this.line = line
    this.forget()
    return false
  }

  /** Characters that can be part of a repetition. */
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

  /**
   * Reads on until a gram comes again: as long as none does, no chunk does, because every chunk holds one of those that
   * are kept. Gives back how far it came.
   */
  private skim(text: string, from: number, to: number): number {
    const { before, floor, gramHeads, mask, reach } = this
    let { hash, length } = this
    let at = from
    // No gram is whole before these.
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

  /** Whether a gram stands in its bucket, from this place on. */
  private isKept(value: number, head: number, place: number): boolean {
    const { before, floor, gramOlder, mask, reach } = this
    const oldest = Math.max(floor, place - reach)
    for (let at = head, steps = 0; at >= oldest && steps < deepest; steps += 1) {
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

  /** From here on every chunk is looked up: those that can still matter are entered, the one that ends here is looked up. */
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

  /** Nothing came again for so long that nothing of it matters any more: from here on grams are enough. */
  private lookAway(): void {
    const { before, floor, length, reach } = this
    this.isClose = false
    const last = length - gram
    for (let place = Math.ceil(Math.max(floor, last - reach) / step) * step; place <= last; place += step) {
      this.operations += 1
      this.keep(hashAt(before, place, gram, gramPower), place)
    }
  }

  /** Reads on and looks up every chunk, until one makes a loop or none came again for long. Gives back how far it came. */
  private follow(text: string, from: number, to: number): number {
    const { aligned, before, chunk, chunkPower, floor, heads, mask, older, previous, reach } = this
    const enough = this.times - 1
    let { hash, length, matched } = this
    let at = from
    // No chunk is whole before these.
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
        // As `enter` does it for any chunk: this is what nearly all of a text that repeats itself goes through.
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

  /** Enters a chunk whose bucket may hold it already; whether it makes a loop. */
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
    // One character further in a repetition that was looked at, the texts between are the same, turned by a character.
    const enough = this.times - 1
    let shifted = 0
    if (last > floor && (previous[(place - 1) & mask] ?? -1) === last - 1) {
      const further = previous[last & mask] ?? -1
      shifted = further >= floor ? Math.min(enough, (aligned[last & mask] ?? 0) + 1) : enough
    }
    aligned[place & mask] = shifted
    return shifted !== enough && this.examine(place)
  }

  /**
   * The last place with the same chunk, further down its bucket; it is taken out, because this one stands in it now. -1:
   * there is none.
   */
  private find(place: number, value: number, head: number): number {
    const { before, chunk, chunkPower, floor, mask, older, reach } = this
    const oldest = Math.max(floor, place - reach)
    let newer = head
    for (let at = older[head & mask] ?? -1, steps = 1; at >= oldest && steps < deepest; steps += 1) {
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

  /** Whether the last occurrences stand close together and what stands between them is the same again and again (spec 12). */
  private examine(newest: number): boolean {
    const { chunk, mask, previous, times } = this
    const oldest = Math.max(this.floor, newest - this.reach)
    const mostKinds = Math.floor(times / 2)
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
      if (kinds.length > mostKinds) return false
      places.push(from)
      at = from
    }
    // Equal hashes are a promise; the characters themselves decide.
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

/** The hash of so many characters from a place of a ring on, with the factor to the power of their number. */
const hashAt = (before: Int32Array, place: number, length: number, power: number): number => {
  const mask = before.length - 1
  return ((before[(place + length) & mask] ?? 0) - Math.imul(before[place & mask] ?? 0, power)) | 0
}

/** The place of the next of these characters, or of the text's end. */
const placeOf = (text: string, character: string, from: number): number => {
  const at = text.indexOf(character, from)
  return at < 0 ? text.length : at
}
