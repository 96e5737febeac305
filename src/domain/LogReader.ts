import { Result } from "effect"
import * as Bytes from "./Bytes.ts"
import { type DecodedLine, decodeLine, type LineProblem } from "./LogFormat.ts"

/** A log read from its bytes, line by line. */

/** A line and where it stands. */
export interface ReadLine extends DecodedLine {
  /** From 1, counted from where the reading began. */
  readonly number: number
  /** In bytes, the line break included. */
  readonly from: number
  readonly to: number
}

/** Why a log cannot be read, and in which line. */
export interface ReadProblem {
  readonly line: number
  readonly problem: LineProblem
}

const parse = (text: string): Result.Result<unknown, unknown> => Result.try((): unknown => JSON.parse(text))

const noJson: LineProblem = { _tag: "Malformed", message: "this is not JSON" }

const newline = 10

const joined = (pieces: ReadonlyArray<Uint8Array>, last: Uint8Array): Uint8Array => {
  if (pieces.length === 0) return last
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, last.length))
  let at = 0
  for (const piece of [...pieces, last]) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

/**
 * Takes a log's bytes from any line on, chunk by chunk, and gives its lines. The last line may be half written or no JSON:
 * `good` tells where the last whole one ends. Mutable.
 */
export class LogReader {
  /** The version of the log, once its first line was read. */
  version: number | undefined
  /** What is wrong; no lines come after it. */
  problem: ReadProblem | undefined
  /** Bytes up to the end of the last line that could be read. */
  good: number
  private pieces: Array<Uint8Array> = []
  private at: number
  private number = 0
  /** The line that is no JSON: torn if it is the last, corrupt if it is not. */
  private broken = 0

  /** From the byte `from` on, where a line begins. */
  constructor(from: number, version?: number | undefined) {
    this.good = from
    this.at = from
    this.version = version
  }

  /** The lines that are complete with these bytes, which are not kept. Where they lead to a problem, those before it. */
  push(chunk: Uint8Array): ReadonlyArray<ReadLine> {
    const lines: Array<ReadLine> = []
    let from = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      const bytes = joined(this.pieces, chunk.subarray(from, end))
      this.pieces = []
      from = end + 1
      const line = this.take(bytes)
      if (this.problem !== undefined) return lines
      if (line !== undefined) lines.push(line)
    }
    if (from < chunk.length) this.pieces.push(new Uint8Array(chunk.subarray(from)))
    return lines
  }

  /** After the last byte: a broken line before half a line is not torn. */
  end(): void {
    if (this.problem === undefined && this.broken > 0 && this.pieces.length > 0) this.fail(this.broken, noJson)
  }

  private fail(line: number, problem: LineProblem): void {
    this.problem = { line, problem }
  }

  private take(bytes: Uint8Array): ReadLine | undefined {
    if (this.broken > 0) {
      this.fail(this.broken, noJson)
      return undefined
    }
    this.number += 1
    const from = this.at
    this.at += bytes.length + 1
    const { text, valid } = Bytes.decode(bytes)
    const value = parse(text)
    if (!valid || value._tag === "Failure") {
      this.broken = this.number
      return undefined
    }
    const line = decodeLine(value.success, this.version)
    if (line._tag === "Failure") {
      this.fail(this.number, line.failure)
      return undefined
    }
    this.good = this.at
    if (line.success === undefined) return undefined
    if (line.success.event._tag === "Started") this.version ??= line.success.event.version
    return { ...line.success, number: this.number, from, to: this.at }
  }
}
