import { Buffer } from "node:buffer"

/** Bounds the memory of messages that are not finished: bodies until their answer begins, answers that are read whole, and unended events. */

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
const maxGrowth = 8_388_608

/** Bytes that arrive in pieces, in one buffer: a million pieces of one byte take a megabyte. Mutable. */
export class ByteCollector {
  private readonly first: number
  private bytes: Buffer = Buffer.alloc(0)
  length = 0

  /** `expected` is the announced length in bytes, if there is one. */
  constructor(expected = 0) {
    this.first = Math.min(maxFirstCapacity, expected)
  }

  /** Adds a piece. Returns the bytes of memory that it took. */
  readonly push = (piece: Uint8Array): number => {
    const needed = this.length + piece.length
    const before = this.bytes.length
    if (needed > before) {
      const grown = Buffer.allocUnsafeSlow(
        Math.max(minCapacity, this.first, needed, before + Math.min(before, maxGrowth))
      )
      this.bytes.copy(grown, 0, 0, this.length)
      this.bytes = grown
    }
    this.bytes.set(piece, this.length)
    this.length = needed
    return this.bytes.length - before
  }

  /** What arrived so far. */
  get collected(): Buffer {
    return this.bytes.subarray(0, this.length)
  }
}
