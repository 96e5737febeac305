/**
 * Splits a body into server-sent events. The time is linear in the length of an event, also where it arrives byte by byte.
 */

type Bytes = Uint8Array

const newline = 10
const carriageReturn = 13
const colon = 58
const blockSize = 65_536

/** Collects bytes in blocks: a server that sends them one by one must not cost an object for each. */
class Gathered {
  private blocks: Array<Bytes> = []
  private block: Bytes | undefined
  private used = 0

  get isEmpty(): boolean {
    return this.block === undefined
  }

  add(bytes: Bytes): void {
    for (let from = 0; from < bytes.length;) {
      if (this.block === undefined || this.used === blockSize) {
        if (this.block !== undefined) this.blocks.push(this.block)
        this.block = new Uint8Array(blockSize)
        this.used = 0
      }
      const piece = bytes.subarray(from, from + blockSize - this.used)
      this.block.set(piece, this.used)
      this.used += piece.length
      from += piece.length
    }
  }

  /** Returns all bytes and clears the buffer. */
  take(): Bytes {
    const all = new Uint8Array(this.blocks.length * blockSize + this.used)
    for (const [index, block] of this.blocks.entries()) all.set(block, index * blockSize)
    if (this.block !== undefined) all.set(this.block.subarray(0, this.used), this.blocks.length * blockSize)
    this.blocks = []
    this.block = undefined
    this.used = 0
    return all
  }
}

/** Whether an event is empty: a comment, or only line ends. */
const isIdle = (event: Bytes): boolean => {
  const first = event.find((byte) => byte !== newline && byte !== carriageReturn)
  return first === undefined || first === colon
}

/** Whether the last line ends, two bits each, are an empty line: LF LF, CR CR or CR LF CR LF. */
const isEnd = (ending: number): boolean =>
  (ending & 0b11_11) === 0b01_01 || (ending & 0b11_11) === 0b10_10 || ending === 0b10_01_10_01

/** The limits of a streamed answer. */
export interface EventBounds {
  readonly bytes: number
  readonly events: number
}

/** Splits the pieces of one body. Fails when it exceeds its limits, not counting empty events. */
export class ServerEvents {
  private readonly begun = new Gathered()
  /** The last four line ends at the end of the bytes so far, two bits each. */
  private ending = 0
  private size = 0
  private count = 0
  private readonly bounds: EventBounds
  private readonly take: (event: Bytes) => void
  private readonly exceed: (what: keyof EventBounds) => Error

  /** `take` gets each event that is not empty. */
  constructor(bounds: EventBounds, take: (event: Bytes) => void, exceeded: (what: keyof EventBounds) => Error) {
    this.bounds = bounds
    this.take = take
    this.exceed = exceeded
  }

  private hand(event: Bytes): void {
    if (isIdle(event)) return
    this.count += 1
    if (this.count > this.bounds.events) throw this.exceed("events")
    this.take(event)
  }

  /** Takes the next piece of the body. Throws when a limit is exceeded; then no further piece may come. */
  push(chunk: Bytes): void {
    this.size += chunk.length
    if (this.size > this.bounds.bytes) throw this.exceed("bytes")
    let from = 0
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at]
      if (byte !== newline && byte !== carriageReturn) {
        this.ending = 0
        continue
      }
      this.ending = ((this.ending << 2) | (byte === newline ? 1 : 2)) & 0b11_11_11_11
      if (isEnd(this.ending)) {
        const last = chunk.subarray(from, at + 1)
        from = at + 1
        this.ending = 0
        if (this.begun.isEmpty) this.hand(last)
        else {
          this.begun.add(last)
          this.hand(this.begun.take())
        }
      }
    }
    this.begun.add(chunk.subarray(from))
  }

  /** Ends the body. Returns what is left of an event that was not ended; undefined when it is empty. */
  end(): Bytes | undefined {
    const left = this.begun.take()
    return isIdle(left) ? undefined : left
  }
}
