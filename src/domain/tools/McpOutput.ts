/** The output of an MCP server's process: messages, and what else it prints. */

import { Predicate } from "effect"
import { joinBytes } from "../text/Bytes.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { shortLine } from "../text/OneLine.ts"
import { redact } from "../text/Redaction.ts"

/** Output of a server's process other than messages, for the line that says why it ended. Mutable. */
export class ServerWords {
  private tail = ""
  private readonly decoder = new TextDecoder()

  /** Adds output; its end is kept. */
  add(bytes: Uint8Array): void {
    this.tail = (this.tail + this.decoder.decode(bytes, { stream: true })).slice(-4_096)
  }

  /** The text that follows the error message: the first line that names an error, else the last line. */
  get lastWords(): string {
    const lines = this.tail.split("\n").filter((line) => line.trim() !== "")
    const line = lines.find((one) => /error/i.test(one)) ?? lines[lines.length - 1]
    return line === undefined ? "" : `; it said: ${shortLine(redact(line), 200)}`
  }
}

const newline = 10
/** Longer lines are passed on in pieces; the reader refuses messages of that size. */
const maxLineBytes = 16 * 1024 * 1024

/**
 * Maximum number of server requests answered per second. A server that sends requests without reading the answers would fill the
 * memory.
 */
const maxServerRequestsPerSecond = 100
/** Maximum length of a message that is treated as a server's request; requests are short. */
const maxRequestChars = 65_536

const isServerRequest = (line: string): boolean => {
  if (line.length > maxRequestChars || !line.includes('"method"')) return false
  const message = parsedOrUndefined(line)
  return Predicate.isObject(message) && "method" in message && "id" in message
}

/**
 * Passes on the lines of a server's output that are messages. Programs also print greetings and logs there, and other clients
 * tolerate that; those lines are kept as the server's last words. Only a limited number of requests is passed on. Mutable.
 */
export class MessageLines {
  private readonly decoder = new TextDecoder()
  private readonly words: ServerWords
  /** The line that has no end yet. */
  private pieces: Array<Uint8Array> = []
  private size = 0
  private isLong = false
  /** The requests of this second. */
  private second = 0
  private requests = 0

  constructor(words: ServerWords) {
    this.words = words
  }

  /** The messages that end in a chunk. `now`: milliseconds since the epoch. */
  add(chunk: Uint8Array, now: number): ReadonlyArray<Uint8Array> {
    const messages: Array<Uint8Array> = []
    for (let from = 0; from < chunk.length;) {
      const end = chunk.indexOf(newline, from)
      const piece = chunk.subarray(from, end < 0 ? chunk.length : end + 1)
      from += piece.length
      this.pieces.push(piece)
      this.size += piece.length
      if (this.size > maxLineBytes) this.isLong = true
      if (end >= 0 || this.isLong) {
        const line = joinBytes(this.pieces)
        this.pieces = []
        this.size = 0
        if (this.isPassedOn(line, now)) messages.push(line)
      }
      if (end >= 0) this.isLong = false
    }
    return messages
  }

  private isPassedOn(line: Uint8Array, now: number): boolean {
    if (this.isLong) return true
    const text = this.decoder.decode(line)
    if (!text.includes('"jsonrpc"')) {
      this.words.add(line)
      return false
    }
    if (!isServerRequest(text)) return true
    const second = Math.floor(now / 1_000)
    this.requests = this.second === second ? this.requests + 1 : 1
    this.second = second
    return this.requests <= maxServerRequestsPerSecond
  }
}
