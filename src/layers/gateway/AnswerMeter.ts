import { Buffer } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib"
import { countsIn } from "../../domain/gateway/AnswerUsage.ts"

/** Reads the counts of an answer that passes by, without holding it up: only its beginning and its end are kept. */

const keptBytes = 32_768

/** The beginning and the end of a stream. Mutable. */
class Ends {
  private head: Buffer = Buffer.alloc(0)
  private tail: Buffer = Buffer.alloc(0)

  readonly push = (piece: Buffer): void => {
    const room = keptBytes - this.head.length
    if (room > 0) this.head = Buffer.concat([this.head, piece.subarray(0, room)])
    const rest = room > 0 ? piece.subarray(room) : piece
    if (rest.length === 0) return
    const joined = rest.length >= keptBytes ? rest : Buffer.concat([this.tail, rest])
    this.tail = joined.subarray(Math.max(0, joined.length - keptBytes))
  }

  get counts(): unknown {
    return countsIn([this.head.toString("utf8"), this.tail.toString("utf8")])
  }
}

const decoderOf = (encoding: string) => {
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return createGunzip()
    case "deflate":
      return createInflate()
    case "br":
      return createBrotliDecompress()
    default:
      return undefined
  }
}

/** Calls back with the counts of an answer once it has ended; with undefined where they cannot be read. */
export const meter = (answer: IncomingMessage, done: (counts: unknown) => void): void => {
  const ends = new Ends()
  const encoding = answer.headers["content-encoding"] ?? "identity"
  if (encoding === "identity") {
    answer.on("data", ends.push)
    answer.once("end", () => done(ends.counts))
    return
  }
  const decoder = decoderOf(encoding)
  if (decoder === undefined) {
    done(undefined)
    return
  }
  answer.on("data", (piece: Buffer) => void decoder.write(piece))
  answer.once("end", () => void decoder.end())
  answer.once("close", () => {
    if (!answer.complete) decoder.destroy()
  })
  decoder.on("data", ends.push)
  decoder.once("end", () => done(ends.counts))
  decoder.once("error", () => done(undefined))
}
