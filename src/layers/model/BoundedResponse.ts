/**
 * Limits the size of server responses. A body is read through a limit, so that its reader may hold all of it in memory; the socket closes when the
 * limit is exceeded.
 */

type Bytes = Uint8Array<ArrayBuffer>

/** Fails with the error of `exceeded` once more than `most` bytes have come, counted after decompression. */
const counted = (maxBytes: number, exceeded: () => Error): TransformStream<Bytes, Bytes> => {
  let size = 0
  return new TransformStream({
    transform: (chunk, controller) => {
      size += chunk.length
      if (size > maxBytes) controller.error(exceeded())
      else controller.enqueue(chunk)
    }
  })
}

/** A response that fails if its body is larger than `most` bytes. `signal` ends the body and its socket, whether it is being read or not. */
export const bounded = (
  response: Response,
  maxBytes: number,
  exceeded: () => Error,
  signal?: AbortSignal
): Response => {
  const { body, headers, status, statusText } = response
  return body === null
    ? response
    : new Response(body.pipeThrough(counted(maxBytes, exceeded), signal === undefined ? {} : { signal }), {
        headers,
        status,
        statusText
      })
}

const newline = 10
const carriageReturn = 13
const colon = 58
const blockSize = 65_536

/** Collects bytes in blocks: a server that sends them one by one must not cost an object for each. */
class Gathered {
  private blocks: Array<Bytes> = []
  private block: Bytes = new Uint8Array(blockSize)
  private used = 0

  get isEmpty(): boolean {
    return this.used === 0 && this.blocks.length === 0
  }

  add(bytes: Bytes): void {
    for (let from = 0; from < bytes.length;) {
      if (this.used === blockSize) {
        this.blocks.push(this.block)
        this.block = new Uint8Array(blockSize)
        this.used = 0
      }
      const piece = bytes.subarray(from, from + blockSize - this.used)
      this.block.set(piece, this.used)
      this.used += piece.length
      from += piece.length
    }
  }

  /** Returns all bytes and starts anew. */
  take(): Bytes {
    const all = new Uint8Array(this.blocks.length * blockSize + this.used)
    for (const [index, block] of this.blocks.entries()) all.set(block, index * blockSize)
    all.set(this.block.subarray(0, this.used), this.blocks.length * blockSize)
    this.blocks = []
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

/**
 * Server-sent events, each as one chunk, without empty ones. A reader such as the SDK of the Gemini API searches for the end of an event in
 * everything received since the last one; for an event that arrives byte by byte that would take time quadratic in its length. Fails if there are
 * more events than `most`.
 */
const eventByEvent = (maxEvents: number, exceeded: () => Error): TransformStream<Bytes, Bytes> => {
  const begun = new Gathered()
  /** The last four line ends at the end of the bytes so far, two bits each. */
  let ending = 0
  let count = 0
  const hand = (event: Bytes, controller: TransformStreamDefaultController<Bytes>) => {
    if (isIdle(event)) return
    count += 1
    if (count > maxEvents) controller.error(exceeded())
    else controller.enqueue(event)
  }
  return new TransformStream({
    transform: (chunk, controller) => {
      let from = 0
      for (let at = 0; at < chunk.length; at += 1) {
        // It has failed already.
        if (count > maxEvents) return
        const byte = chunk[at]
        if (byte !== newline && byte !== carriageReturn) {
          ending = 0
          continue
        }
        ending = ((ending << 2) | (byte === newline ? 1 : 2)) & 0b11_11_11_11
        if (isEnd(ending)) {
          const last = chunk.subarray(from, at + 1)
          from = at + 1
          ending = 0
          if (begun.isEmpty) hand(last, controller)
          else {
            begun.add(last)
            hand(begun.take(), controller)
          }
        }
      }
      begun.add(chunk.subarray(from))
    },
    flush: (controller) => {
      if (!begun.isEmpty) hand(begun.take(), controller)
    }
  })
}

/** The limits of a streamed answer. */
export interface EventBounds {
  readonly bytes: number
  readonly events: number
}

/**
 * A response of server-sent events that fails beyond these limits; see `eventByEvent`. It has no headers, because the SDK of the Gemini API copies
 * them for each event.
 */
export const boundedEvents = (
  { body, status, statusText }: Response,
  bounds: EventBounds,
  exceeded: (what: keyof EventBounds) => Error
): Response =>
  new Response(
    body === null
      ? null
      : body
          .pipeThrough(counted(bounds.bytes, () => exceeded("bytes")))
          .pipeThrough(eventByEvent(bounds.events, () => exceeded("events"))),
    { status, statusText }
  )
