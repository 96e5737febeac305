import { Schema } from "effect"
import { firstUnits, lastUnits } from "./Bytes.ts"
import { runtimeMark } from "./RuntimeMark.ts"
import type { Handle } from "./Handle.ts"

/**
 * How an oversized tool output is shown: its last lines (seed 000), its first and last characters (spec 3.4), or its first
 * and last lines (seed 002).
 */
export const OutputForm = Schema.Literals(["last-lines", "head-tail-chars", "head-tail-lines"])
export type OutputForm = typeof OutputForm.Type

/** How much of an output is shown. */
export interface OutputSize {
  /** Lines of `last-lines`; 0 shows none. */
  readonly lastLines: number
  /** Characters a line may have before it is cut. */
  readonly lineWidth: number
  /** Characters of an output that is one line. */
  readonly singleLine: number
  /** Characters of `head-tail-chars`. */
  readonly chars: number
  /** Lines of `head-tail-lines`. */
  readonly lines: number
}

/** The seeds' values: 000 (30 lines, 1,000 and 4,000 characters), 001 (40,000 characters), 002 (1,000 lines). */
export const seedSize: OutputSize = { lastLines: 30, lineWidth: 1_000, singleLine: 4_000, chars: 40_000, lines: 1_000 }

/** Nothing but the note and the handle. */
export const noteOnly: OutputSize = { lastLines: 0, lineWidth: 0, singleLine: 0, chars: 0, lines: 0 }

const cutMark = "... [LINE WIDTH TRUNCATED]"

const lineCount = (text: string): number => {
  let lines = 1
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1
  return lines
}

/** The last `count` lines, found from the end. */
const lastLines = (text: string, count: number): Array<string> => {
  let at = text.length
  for (let i = 0; i < count && at >= 0; i += 1) at = at === 0 ? -1 : text.lastIndexOf("\n", at - 1)
  return text
    .slice(at + 1)
    .split("\n")
    .slice(-count)
}

const firstLines = (text: string, count: number): string => {
  let at = -1
  for (let i = 0; i < count; i += 1) {
    const next = text.indexOf("\n", at + 1)
    if (next < 0) return text
    at = next
  }
  return text.slice(0, Math.max(0, at))
}

const noun = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`

/** How what is not shown is read. */
export const wholeAt = (handle: Handle): string => `The whole output: recall ${handle}`

const note = (shown: string, handle: Handle): string => `${runtimeMark} ${shown}. ${wholeAt(handle)}`

/** Columns at which seed 002 breaks wide lines of an output that has few (spec 5.1). */
const wrapWidth = 120

const wrapped = (line: string): Array<string> => {
  const pieces: Array<string> = []
  for (let rest = line; rest !== "" || pieces.length === 0;) {
    const piece = firstUnits(rest, wrapWidth)
    pieces.push(piece)
    rest = rest.slice(piece.length)
  }
  return pieces
}

/** The first fifth and the last four fifths of `size.lines` lines; an output of few, wide lines is wrapped first. */
const headAndTail = (text: string, lines: number, handle: Handle, size: OutputSize): string => {
  const shown = lines <= size.lines ? text.split("\n").flatMap(wrapped).join("\n") : text
  const total = lineCount(shown)
  if (total <= size.lines) return text
  const head = Math.floor(size.lines / 5)
  const tail = size.lines - head
  return `${note(`The first ${head} and last ${tail} of ${total} lines`, handle)}\n${firstLines(shown, head)}\n... [CONTENT TRUNCATED] ...\n${lastLines(shown, tail).join("\n")}`
}

/**
 * The text that stands in the window for an output, with the handle of the whole. Not shorter for every text: compare
 * before using it.
 */
export const shorten = (text: string, handle: Handle, form: OutputForm, size: OutputSize = seedSize): string => {
  const total = lineCount(text)
  if (form === "head-tail-chars" && size.chars > 0) {
    const head = Math.floor(size.chars * 0.2)
    const tail = size.chars - head
    if (text.length <= size.chars) return text
    const omitted = text.length - size.chars
    return `${note(`The first ${head} and last ${tail} of ${text.length} characters`, handle)}\n${firstUnits(text, head)}\n\n... [${omitted} characters omitted] ...\n\n${lastUnits(text, tail)}`
  }
  if (form === "head-tail-lines" && size.lines > 0) return headAndTail(text, total, handle, size)
  if (size.lastLines === 0) {
    return note(`An output of ${noun(total, "line")}, ${text.length} characters, stood here`, handle)
  }
  if (total === 1) {
    return `${note(`The last ${Math.min(size.singleLine, text.length)} of ${text.length} characters of one line`, handle)}\n...\n${lastUnits(text, size.singleLine)}`
  }
  const lines = lastLines(text, size.lastLines)
  const wide = lines.some((line) => line.length > size.lineWidth)
  const shown = lines.map((line) =>
    line.length > size.lineWidth ? `${firstUnits(line, size.lineWidth)}${cutMark}` : line
  )
  return `${note(`The last ${lines.length} of ${total} lines${wide ? `, each cut at ${size.lineWidth} characters` : ""}`, handle)}\n...\n${shown.join("\n")}`
}

/** Characters of each end that a masked output still shows; one that is hardly longer is left as it is (spec 5.4). */
const maskEnd = 250
/** Lines of each end that a masked output of a command still shows: what was run, and how it ended. */
const maskLines = 10

/** What is shown of an old output (spec 5.4): both ends, of a command by lines. Not shorter for every text. */
export const mask = (text: string, handle: Handle, isCommand: boolean): string => {
  const lines = lineCount(text)
  const what = note(`An old output of ${noun(lines, "line")}, ${text.length} characters; its ends`, handle)
  if (isCommand && lines > 2 * maskLines) {
    const ends = [firstLines(text, maskLines), lastLines(text, maskLines).join("\n")].map((end) =>
      end.length > 4 * maskEnd ? `${firstUnits(end, 2 * maskEnd)}${cutMark}${lastUnits(end, 2 * maskEnd)}` : end
    )
    return `${what}\n${ends.join(`\n... [${lines - 2 * maskLines} lines] ...\n`)}`
  }
  if (text.length <= 2 * maskEnd) return text
  return `${what}\n${firstUnits(text, maskEnd)}\n... [${text.length - 2 * maskEnd} characters] ...\n${lastUnits(text, maskEnd)}`
}
