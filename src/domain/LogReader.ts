import { Result } from "effect"
import { type JsonProblem, maxLogDepth, parseJson } from "./JsonText.ts"
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

const parse = (text: string): Result.Result<unknown, JsonProblem> => parseJson(text, maxLogDepth)

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

/** Bytes of each line, without its line break. */
const sizesOf = (block: Uint8Array): ReadonlyArray<number> => {
  const sizes: Array<number> = []
  let from = 0
  for (let end = block.indexOf(newline); end >= 0; end = block.indexOf(newline, from)) {
    sizes.push(end - from)
    from = end + 1
  }
  sizes.push(block.length - from)
  return sizes
}

/**
 * Lines as JSON values, all at once: as one array that is a third faster than one by one. Undefined where they are not as
 * many values as lines, so that each has to be looked at.
 */
const parseAll = (block: Uint8Array, count: number): ReadonlyArray<unknown> | undefined => {
  const { text, valid } = Bytes.decode(block)
  if (!valid) return undefined
  const values = parse(`[${text.replaceAll("\n", ",")}]`)
  return values._tag === "Success" && Array.isArray(values.success) && values.success.length === count
    ? values.success
    : undefined
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
    const last = chunk.lastIndexOf(newline)
    if (last >= 0) {
      const block = joined(this.pieces, chunk.subarray(0, last))
      this.pieces = []
      const sizes = sizesOf(block)
      const values = this.broken === 0 ? parseAll(block, sizes.length) : undefined
      let from = 0
      for (const [index, size] of sizes.entries()) {
        const line =
          values === undefined ? this.take(block.subarray(from, from + size)) : this.accept(values[index], size)
        if (this.problem !== undefined) return lines
        if (line !== undefined) lines.push(line)
        from += size + 1
      }
    }
    if (last + 1 < chunk.length) this.pieces.push(new Uint8Array(chunk.subarray(last + 1)))
    return lines
  }

  /** After the last byte: a broken line before half a line is not torn. */
  end(): void {
    if (this.problem === undefined && this.broken > 0 && this.pieces.length > 0) this.fail(this.broken, noJson)
  }

  private fail(line: number, problem: LineProblem): void {
    this.problem = { line, problem }
  }

  /** A line that has to be looked at by itself: it, or one beside it, is no JSON. */
  private take(bytes: Uint8Array): ReadLine | undefined {
    if (this.broken > 0) {
      this.fail(this.broken, noJson)
      return undefined
    }
    const { text, valid } = Bytes.decode(bytes)
    const value = parse(text)
    if (valid && value._tag === "Success") return this.accept(value.success, bytes.length)
    this.number += 1
    this.at += bytes.length + 1
    // What is too deep is whole: it is not taken for a line that broke off.
    if (Result.isFailure(value) && value.failure._tag === "TooDeep") {
      this.fail(this.number, { _tag: "Malformed", message: value.failure.message })
    } else this.broken = this.number
    return undefined
  }

  /** The next line, of so many bytes, as JSON value. */
  private accept(value: unknown, size: number): ReadLine | undefined {
    this.number += 1
    const from = this.at
    this.at += size + 1
    const line = decodeLine(value, this.version)
    if (line._tag === "Failure") {
      this.fail(this.number, line.failure)
      return undefined
    }
    this.good = this.at
    if (line.success === undefined) return undefined
    const { checkpoint, event, spilled } = line.success
    if (event._tag === "Started") this.version ??= event.version
    return { event, spilled, checkpoint, number: this.number, from, to: this.at }
  }
}
