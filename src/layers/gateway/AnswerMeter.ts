/** Reads the counts of an answer that passes by, without holding it up: only its beginning and its end are kept. */

import { Buffer } from "node:buffer"
import type { Readable, Transform } from "node:stream"
import { countsIn } from "../../domain/wire/AnswerUsage.ts"
import { decoded, pieceDecoder } from "../platform/ContentEncoding.ts"
import { ByteCollector } from "./HeldBytes.ts"
import { encodingOf, type UpstreamAnswer } from "./Upstream.ts"

/** What a meter read of an answer, or of as much of it as passed. */
export interface Metered {
  /** The provider's counts, in its own form. */
  readonly counts: unknown
  /** An estimate of the tokens of the answer: an event of a stream is about one token, or more where it is long. */
  readonly tokens: number
}

const keptBytes = 32_768

/** Bytes that may wait to be decompressed. An answer that decompresses more slowly than it passes is not read further. */
const maxWaiting = 1_048_576

/** For an answer whose provider counts nothing. */
const bytesPerToken = 4

/** Bytes of an event with one token. */
const eventBytes = 400

const eventStart = Buffer.from("data:")

/** Pieces that are joined at a time: small ones are not copied again and again, and do not pile up. */
const maxPieces = 256

/** The last bytes of a stream, at least `keptBytes`. Mutable. */
class Tail {
  private pieces: Array<Buffer> = []
  private bytes = 0

  readonly push = (piece: Buffer): void => {
    this.pieces.push(piece)
    this.bytes += piece.length
    if (this.pieces.length < maxPieces && this.bytes < 2 * keptBytes) return
    const joined = Buffer.concat(this.pieces)
    this.pieces = [joined.subarray(Math.max(0, joined.length - keptBytes))]
    this.bytes = Math.min(joined.length, keptBytes)
  }

  get text(): string {
    return Buffer.concat(this.pieces).toString("utf8")
  }
}

/** The beginning and the end of a stream, and its length. Mutable. */
class Ends {
  private readonly head = new Tail()
  private readonly tail = new Tail()
  private bytes = 0
  private events = 0

  readonly push = (piece: Buffer): void => {
    for (let at = piece.indexOf(eventStart); at >= 0; at = piece.indexOf(eventStart, at + 1)) this.events += 1
    const room = Math.max(0, keptBytes - this.bytes)
    this.bytes += piece.length
    if (room > 0) this.head.push(piece.subarray(0, room))
    if (piece.length > room) this.tail.push(piece.subarray(room))
  }

  get read(): Metered {
    const tokens = Math.max(this.events, Math.ceil((this.bytes - this.events * eventBytes) / bytesPerToken))
    return { counts: countsIn([this.head.text, this.tail.text]), tokens }
  }
}

/** Calls back once with what could be read of an answer, when it ends or breaks off. */
export const meter = (answer: UpstreamAnswer, done: (metered: Metered) => void): void => {
  const ends = new Ends()
  const { body } = answer
  if (body.closed) return done(ends.read)
  const decoder = pieceDecoder(encodingOf(answer))
  if (decoder === undefined) {
    body.on("data", ends.push)
    body.once("close", () => done(ends.read))
    return
  }
  decodeInto(body, decoder, ends.push, () => done(ends.read))
}

/** Bytes of an answer beyond which it is not collected. */
const maxCollectedBytes = 8_388_608

/** Calls back with the text of an answer that passes by, when all of it has, unless it is too long. */
export const collectText = (answer: UpstreamAnswer, done: (text: string) => void): void => {
  const { body } = answer
  const collector = new ByteCollector()
  body.on("data", (piece: Buffer) => {
    if (collector.length <= maxCollectedBytes) collector.push(piece)
  })
  body.once("end", () => {
    if (collector.length > maxCollectedBytes) return
    const plain = decoded(collector.collected, encodingOf(answer), maxCollectedBytes)
    if (plain !== undefined) done(plain.toString("utf8"))
  })
}

const decodeInto = (body: Readable, decoder: Transform, push: (piece: Buffer) => void, done: () => void): void => {
  decoder.on("data", push)
  decoder.on("error", () => {})
  decoder.once("close", done)
  body.on("data", (piece: Buffer) => {
    if (decoder.writableLength > maxWaiting) decoder.destroy()
    if (!decoder.destroyed) decoder.write(piece)
  })
  body.once("end", () => {
    if (!decoder.destroyed) decoder.end()
  })
  body.once("close", () => {
    if (!body.readableEnded) decoder.destroy()
  })
}
