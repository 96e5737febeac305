/** Shortens and masks single tool outputs: the forms and sizes in which they are shown. */

import { Schema } from "effect"
import type { Handle } from "../content/Handle.ts"
import { firstUnits, lastUnits } from "../text/Bytes.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"

/**
 * The form in which an oversized tool output is shown: its last lines, its first and last characters, or its first and last
 * lines. The setting `toolOutput.form`; every strategy honours it.
 */
export const OutputForm = Schema.Literals(["last-lines", "head-tail-chars", "head-tail-lines"])
export type OutputForm = typeof OutputForm.Type

/** The shown size of an output. */
export interface OutputSize {
  /** Lines of `last-lines`; 0 shows none. */
  readonly lastLines: number
  /** Maximum characters of a line before it is cut. */
  readonly lineWidth: number
  /** Maximum characters of a single-line output. */
  readonly singleLine: number
  /** Characters of `head-tail-chars`. */
  readonly chars: number
  /** Lines of `head-tail-lines`. */
  readonly lines: number
}

/** Gemini CLI's sizes for its three forms. */
export const defaultSize: OutputSize = {
  lastLines: 30,
  lineWidth: 1_000,
  singleLine: 4_000,
  chars: 40_000,
  lines: 1_000
}

/** A size that shows only the note and the handle. */
export const noteOnlySize: OutputSize = { lastLines: 0, lineWidth: 0, singleLine: 0, chars: 0, lines: 0 }

const cutMark = "... [LINE WIDTH TRUNCATED]"

const lineCount = (text: string): number => {
  let lines = 1
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1
  return lines
}

/** Returns the last `count` lines, searched from the end. */
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

/** Returns the note on how to read the whole output. */
export const recallNote = (handle: Handle): string => `The whole output: recall ${handle}`

const note = (shown: string, handle: Handle): string => `${runtimeMark} ${shown}. ${recallNote(handle)}`

/** Column at which wide lines are wrapped in an output with few lines. */
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

/** Splits a size into the first fifth and the last four fifths. Below 5, only the end is shown. */
const endsOf = (size: number) => ({ head: Math.floor(size / 5), tail: size - Math.floor(size / 5) })

/** Says which ends are shown. An end of which nothing is shown is not named. */
const endsNote = (head: number, tail: number, total: number, unit: string, handle: Handle): string =>
  note(`The ${head === 0 ? "" : `first ${head} and `}last ${tail} of ${total} ${unit}`, handle)

/** Returns both ends of `size.lines` lines. An output with few, wide lines is wrapped first. */
const headAndTailLines = (text: string, lines: number, handle: Handle, size: OutputSize): string => {
  const isWrapped = lines <= size.lines
  const shown = isWrapped ? text.split("\n").flatMap(wrapped).join("\n") : text
  const total = lineCount(shown)
  if (total <= size.lines) return text
  const { head, tail } = endsOf(size.lines)
  return `${endsNote(head, tail, total, isWrapped ? `lines of up to ${wrapWidth} characters` : "lines", handle)}\n${firstLines(shown, head)}\n... [CONTENT TRUNCATED] ...\n${lastLines(shown, tail).join("\n")}`
}

const nothingShown = (text: string, handle: Handle): string =>
  note(`An output of ${noun(lineCount(text), "line")}, ${text.length} characters, stood here`, handle)

/** Returns both ends of `size.chars` characters. */
const headAndTailChars = (text: string, handle: Handle, size: OutputSize): string => {
  if (text.length <= size.chars) return text
  const sizes = endsOf(size.chars)
  // A character of two units is not split, so an end may be shorter by one.
  const [head, tail] = [firstUnits(text, sizes.head), lastUnits(text, sizes.tail)]
  if (tail === "") return nothingShown(text, handle)
  const omitted = `... [${text.length - head.length - tail.length} characters omitted] ...`
  return `${endsNote(head.length, tail.length, text.length, "characters", handle)}\n${head}\n\n${omitted}\n\n${tail}`
}

/** The measure of each form: how much of an output it shows. */
const shownBy: Readonly<Record<OutputForm, "lastLines" | "chars" | "lines">> = {
  "last-lines": "lastLines",
  "head-tail-chars": "chars",
  "head-tail-lines": "lines"
}

/**
 * Returns the text that replaces an output in the window, with the handle of the whole. A form that may show nothing is the
 * note alone. It is not shorter for every text: compare before you use it.
 */
export const shorten = (text: string, handle: Handle, form: OutputForm, size: OutputSize = defaultSize): string => {
  if (text === "") return text
  const total = lineCount(text)
  if (size[shownBy[form]] <= 0) return nothingShown(text, handle)
  if (form === "head-tail-chars") return headAndTailChars(text, handle, size)
  if (form === "head-tail-lines") return headAndTailLines(text, total, handle, size)
  if (total === 1) {
    const tail = lastUnits(text, size.singleLine)
    return `${note(`The last ${tail.length} of ${text.length} characters of one line`, handle)}\n...\n${tail}`
  }
  const lines = lastLines(text, size.lastLines)
  const wide = lines.some((line) => line.length > size.lineWidth)
  const shown = lines.map((line) =>
    line.length > size.lineWidth ? `${firstUnits(line, size.lineWidth)}${cutMark}` : line
  )
  return `${note(`The last ${lines.length} of ${total} lines${wide ? `, each cut at ${size.lineWidth} characters` : ""}`, handle)}\n...\n${shown.join("\n")}`
}

/** Characters shown of each end of a masked output. A slightly longer output stays unchanged. */
const maskEnd = 250
/** Lines shown of each end of a masked command output: the command, and its result. */
const maskLines = 10

/** Returns the text that masks an old output: both ends, by lines for a command. It is not shorter for every text. */
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
  const [head, tail] = [firstUnits(text, maskEnd), lastUnits(text, maskEnd)]
  return `${what}\n${head}\n... [${text.length - head.length - tail.length} characters] ...\n${tail}`
}
