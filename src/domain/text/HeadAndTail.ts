/** A buffer of bounded size for the output of a process, which keeps its beginning and its end. */

/** The kept part of an output. `tail` is empty when nothing was dropped. */
export interface KeptOutput {
  readonly head: Uint8Array
  readonly dropped: number
  readonly tail: Uint8Array
}

const grown = (bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> => {
  const larger = new Uint8Array(length)
  larger.set(bytes)
  return larger
}

/**
 * Keeps the beginning and the end of an output that may be far longer than what is kept: at most `limit` bytes, half of them from
 * each end, whatever the size of the pieces. Pieces are copied, so a million small ones cost no more than their bytes. The buffers
 * grow with the output.
 */
export class HeadAndTail {
  private readonly first: number
  private readonly last: number
  private head = new Uint8Array(0)
  /** Holds the n-th byte after the head at index n modulo its length. */
  private ring = new Uint8Array(0)
  private size = 0

  constructor(limit: number) {
    this.first = Math.ceil(limit / 2)
    this.last = limit - this.first
  }

  /** Adds the next bytes. */
  add(bytes: Uint8Array): void {
    const forHead = bytes.subarray(0, Math.max(0, this.first - this.size))
    if (forHead.length > 0) this.addToHead(forHead)
    this.size += forHead.length
    if (forHead.length < bytes.length && this.last > 0) this.addToRing(bytes.subarray(forHead.length))
    this.size += bytes.length - forHead.length
  }

  /** Returns what is kept: everything, or both ends and the number of bytes dropped between them. */
  kept(): KeptOutput {
    const head = this.head.slice(0, Math.min(this.size, this.first))
    const tail = this.endOfRing(this.last)
    return { head, dropped: this.size - head.length - tail.length, tail }
  }

  /** Returns at most the last `count` bytes; fewer where the two kept ends do not meet. */
  end(count: number): Uint8Array {
    const tail = this.endOfRing(count)
    if (tail.length === count || this.size > this.first + tail.length) return tail
    const end = Math.min(this.size, this.first)
    const before = this.head.subarray(Math.max(0, end - (count - tail.length)), end)
    const both = grown(before, before.length + tail.length)
    both.set(tail, before.length)
    return both
  }

  private addToHead(bytes: Uint8Array): void {
    const { first, head, size } = this
    const needed = size + bytes.length
    if (needed > head.length) this.head = grown(head, Math.min(first, Math.max(1024, head.length * 2, needed)))
    this.head.set(bytes, size)
  }

  private addToRing(bytes: Uint8Array): void {
    const at = this.size - this.first
    const needed = Math.min(this.last, Math.max(this.ring.length * 2, at + bytes.length))
    if (needed > this.ring.length) this.ring = grown(this.ring, needed)
    const { ring } = this
    const skipped = Math.max(0, bytes.length - ring.length)
    const start = (at + skipped) % ring.length
    const upToEnd = bytes.subarray(skipped, skipped + ring.length - start)
    ring.set(upToEnd, start)
    ring.set(bytes.subarray(skipped + upToEnd.length), 0)
  }

  private endOfRing(count: number): Uint8Array {
    const { first, last, ring, size } = this
    const after = Math.max(0, size - first)
    const copied = new Uint8Array(Math.min(count, after, last))
    const start = ring.length === 0 ? 0 : (after - copied.length) % ring.length
    const upToEnd = ring.subarray(start, start + copied.length)
    copied.set(upToEnd)
    copied.set(ring.subarray(0, copied.length - upToEnd.length), upToEnd.length)
    return copied
  }
}
