/** Keeps the beginning and the end of an output that may be far longer than what is kept. */
export interface HeadAndTail {
  /** Adds the next bytes. */
  readonly add: (bytes: Uint8Array) => void
  /** Returns the number of bytes added so far. */
  readonly size: () => number
  /** Returns what is kept: everything, or both ends and the number of bytes dropped between them. */
  readonly kept: () => KeptOutput
  /** Returns at most the last `count` bytes; fewer where the two kept ends do not meet. */
  readonly end: (count: number) => Uint8Array
}

/** The kept part of an output. `tail` is empty when nothing was dropped. */
export interface KeptOutput {
  readonly head: Uint8Array
  readonly dropped: number
  readonly tail: Uint8Array
}

/**
 * Keeps at most `limit` bytes, half of them from each end, whatever the size of the pieces. Pieces are copied, so a million
 * small ones cost no more than their bytes. The buffers grow with the output.
 */
export const headAndTail = (limit: number): HeadAndTail => {
  const first = Math.ceil(limit / 2)
  const last = limit - first
  let head = new Uint8Array(Math.min(first, 1024))
  let ring = new Uint8Array(0)
  let size = 0

  const addToHead = (bytes: Uint8Array): void => {
    if (size + bytes.length > head.length) {
      const larger = new Uint8Array(Math.min(first, Math.max(head.length * 2, size + bytes.length)))
      larger.set(head.subarray(0, size))
      head = larger
    }
    head.set(bytes, size)
  }

  /** The ring holds the n-th byte after the head at index n modulo its length. */
  const addToRing = (bytes: Uint8Array, at: number): void => {
    if (ring.length < last) {
      const neededBytes = Math.min(last, Math.max(ring.length * 2, at + bytes.length))
      if (neededBytes > ring.length) {
        const larger = new Uint8Array(neededBytes)
        larger.set(ring)
        ring = larger
      }
    }
    const skipped = Math.max(0, bytes.length - ring.length)
    const start = (at + skipped) % ring.length
    const upToEnd = bytes.subarray(skipped, skipped + ring.length - start)
    ring.set(upToEnd, start)
    ring.set(bytes.subarray(skipped + upToEnd.length), 0)
  }

  const endOfRing = (count: number): Uint8Array => {
    const after = Math.max(0, size - first)
    const there = Math.min(after, last)
    const copied = new Uint8Array(Math.min(count, there))
    const start = ring.length === 0 ? 0 : (after - copied.length) % ring.length
    const upToEnd = ring.subarray(start, start + copied.length)
    copied.set(upToEnd)
    copied.set(ring.subarray(0, copied.length - upToEnd.length), upToEnd.length)
    return copied
  }

  return {
    add: (bytes) => {
      const forHead = bytes.subarray(0, Math.max(0, first - size))
      if (forHead.length > 0) addToHead(forHead)
      if (forHead.length < bytes.length && last > 0) {
        addToRing(bytes.subarray(forHead.length), size + forHead.length - first)
      }
      size += bytes.length
    },
    size: () => size,
    kept: () => {
      const tail = endOfRing(last)
      const kept = Math.min(size, first)
      return { head: head.slice(0, kept), dropped: size - kept - tail.length, tail }
    },
    end: (count) => {
      const tail = endOfRing(count)
      if (tail.length === count || size > first + tail.length) return tail
      const before = head.subarray(Math.max(0, Math.min(size, first) - (count - tail.length)), Math.min(size, first))
      const both = new Uint8Array(before.length + tail.length)
      both.set(before)
      both.set(tail, before.length)
      return both
    }
  }
}
