/** Reads a log from its bytes, line by line. */

import { Result } from "effect"
import * as Bytes from "../text/Bytes.ts"
import { type JsonProblem, maxLogDepth, parsedWithin, parseJson } from "../text/JsonText.ts"
import { type DecodedLine, decodeLine, type LineProblem } from "./LogFormat.ts"

/** A line and its position. */
export interface ReadLine extends DecodedLine {
  /** From 1, counted from where the reader began. */
  readonly number: number
  /** In bytes, the line break included. */
  readonly from: number
  readonly to: number
}

/** Why a log cannot be read, and in which line. */
interface ReadProblem {
  readonly line: number
  readonly problem: LineProblem
}

const parse = (text: string): Result.Result<unknown, JsonProblem> => parseJson(text, maxLogDepth)

const noJson: LineProblem = { _tag: "Malformed", message: "this is not JSON" }

const newline = 10

/** The size of each line in bytes, without its line break. */
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
 * Takes the bytes of a log chunk by chunk, from the beginning of any line, and returns its lines. The last line may be
 * incomplete or not JSON: `good` is the end of the last whole line. Mutable.
 */
export class LogReader {
  /** The problem of the log. No lines are returned after it. */
  problem: ReadProblem | undefined
  /** Bytes up to the end of the last line that could be read. */
  good: number
  private pieces: Array<Uint8Array> = []
  private at: number
  private number = 0
  /** The line that is not JSON: torn when it is the last one, corrupt when it is not. */
  private broken = 0

  /** Reads from the byte `from`, where a line begins. */
  constructor(from: number) {
    this.good = from
    this.at = from
  }

  /** Returns the lines that these bytes complete, up to the first problem. Does not keep the chunk. */
  push(chunk: Uint8Array): ReadonlyArray<ReadLine> {
    const lines: Array<ReadLine> = []
    const last = chunk.lastIndexOf(newline)
    if (last >= 0) {
      const block = Bytes.joinBytes([...this.pieces, chunk.subarray(0, last)])
      this.pieces = []
      const { text, valid } = Bytes.decode(block)
      const texts = valid ? text.split("\n") : []
      const sizes = text.length === block.length ? texts.map((line) => line.length) : sizesOf(block)
      let from = 0
      for (let index = 0; index < sizes.length; index += 1) {
        const size = sizes[index] ?? 0
        const text = this.broken === 0 ? texts[index] : undefined
        const value = text === undefined ? undefined : parsedWithin(text, maxLogDepth)
        const line = value === undefined ? this.take(block.subarray(from, from + size)) : this.accept(value, size)
        if (this.problem !== undefined) return lines
        if (line !== undefined) lines.push(line)
        from += size + 1
      }
    }
    if (last + 1 < chunk.length) this.pieces.push(new Uint8Array(chunk.subarray(last + 1)))
    return lines
  }

  /** Call after the last byte: a broken line followed by an incomplete one is corrupt, not torn. */
  end(): void {
    if (this.problem === undefined && this.broken > 0 && this.pieces.length > 0) this.fail(this.broken, noJson)
  }

  private fail(line: number, problem: LineProblem): void {
    this.problem = { line, problem }
  }

  /** Parses one line by itself, because it or a neighbour is not JSON. */
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
    // A line that is nested too deep is complete and not torn.
    if (Result.isFailure(value) && value.failure._tag === "TooDeep") {
      this.fail(this.number, { _tag: "Malformed", message: value.failure.message })
    } else this.broken = this.number
    return undefined
  }

  /** Decodes the JSON value of the next line, which has `size` bytes. */
  private accept(value: unknown, size: number): ReadLine | undefined {
    this.number += 1
    const from = this.at
    this.at += size + 1
    const line = decodeLine(value)
    if (line._tag === "Failure") {
      this.fail(this.number, line.failure)
      return undefined
    }
    this.good = this.at
    if (line.success === undefined) return undefined
    const { checkpoint, event, spilled } = line.success
    return { event, spilled, checkpoint, number: this.number, from, to: this.at }
  }
}
