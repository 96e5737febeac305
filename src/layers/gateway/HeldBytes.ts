/** Bounds the memory of messages that are not finished: bodies until their answer begins, answers that are read whole, and unended events. */

import { Buffer } from "node:buffer"

/** What one request holds. */
export interface Holder {
  /** Counts more bytes, or fewer. */
  readonly add: (bytes: number) => void
  /** Counts nothing any more. */
  readonly close: () => void
}

interface Holding {
  bytes: number
  readonly end: () => void
}

/** One bound over all requests. Where it is exceeded, the oldest request that holds more than its share ends: slow ones make room. */
export class HeldBytes {
  private readonly maxBytes: number
  private readonly holdings = new Set<Holding>()
  private total = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  /** The bytes that all requests hold. */
  get bytes(): number {
    return this.total
  }

  /** Opens the account of a request. `end` is called once if it has to make room. */
  readonly open = (end: () => void): Holder => {
    const holding: Holding = { bytes: 0, end }
    this.holdings.add(holding)
    return {
      add: (bytes) => {
        if (!this.holdings.has(holding)) return
        holding.bytes += bytes
        this.total += bytes
        while (this.total > this.maxBytes) this.endOne()
      },
      close: () => this.remove(holding)
    }
  }

  private endOne(): void {
    const share = this.total / this.holdings.size
    for (const holding of this.holdings) {
      if (holding.bytes < share) continue
      this.remove(holding)
      holding.end()
      return
    }
  }

  private remove(holding: Holding): void {
    if (this.holdings.delete(holding)) this.total -= holding.bytes
  }
}

const minCapacity = 65_536
const maxFirstCapacity = 1_048_576
const maxCapacity = 8_388_608

/**
 * Bytes that arrive in pieces: a million pieces of one byte take a megabyte. Nothing is copied before the bytes are read, so no
 * memory waits for the garbage collector. Mutable.
 */
export class ByteCollector {
  private capacity: number
  private full: Array<Buffer> = []
  private last: Buffer = Buffer.alloc(0)
  /** The bytes that are used of the last buffer. */
  private used = 0
  length = 0

  /** `expected` is the announced length in bytes, if there is one. */
  constructor(expected = 0) {
    this.capacity = Math.max(minCapacity, Math.min(maxFirstCapacity, expected))
  }

  /** Adds a piece. Returns the bytes of memory that it took. */
  readonly push = (piece: Uint8Array): number => {
    this.length += piece.length
    const fits = piece.subarray(0, this.last.length - this.used)
    this.last.set(fits, this.used)
    this.used += fits.length
    if (fits.length === piece.length) return 0
    const rest = piece.subarray(fits.length)
    if (this.used > 0) this.full.push(this.last)
    this.last = Buffer.allocUnsafeSlow(Math.max(this.capacity, rest.length))
    this.last.set(rest)
    this.used = rest.length
    this.capacity = Math.min(maxCapacity, Math.max(minCapacity, this.length))
    return this.last.length
  }

  /** What arrived so far. */
  get collected(): Buffer {
    const used = this.last.subarray(0, this.used)
    return this.full.length > 0 ? Buffer.concat([...this.full, used], this.length) : used
  }
}
