import { firstUnits } from "./Bytes.ts"

/** The text of files, and which of its lines are shown (spec 6). */

/** Lines that are shown where nothing else is asked for. */
export const usualLines = 2_000
/** Of a longer line the beginning is shown. */
export const widestLine = 2_000
/** What stands where the rest of a line was. */
const cutMark = "... [truncated]"

type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "utf-32le" | "utf-32be"

const marks: ReadonlyArray<readonly [Encoding, ReadonlyArray<number>]> = [
  // Before the mark of UTF-16, with which it begins.
  ["utf-32le", [0xff, 0xfe, 0, 0]],
  ["utf-32be", [0, 0, 0xfe, 0xff]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]],
  ["utf-8", [0xef, 0xbb, 0xbf]]
]

/** The encoding that a mark at the beginning tells, and how long the mark is. */
export const encodingOf = (bytes: Uint8Array): { readonly encoding: Encoding; readonly mark: number } | undefined => {
  const found = marks.find(([, mark]) => mark.every((byte, i) => bytes[i] === byte))
  return found === undefined ? undefined : { encoding: found[0], mark: found[1].length }
}

const wide = (bytes: Uint8Array, isLittle: boolean): string => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const parts: Array<string> = []
  for (let i = 0; i + 4 <= bytes.length; i += 4) {
    const code = view.getUint32(i, isLittle)
    parts.push(code > 0x10_ffff || (code >= 0xd800 && code <= 0xdfff) ? "\uFFFD" : String.fromCodePoint(code))
  }
  return parts.join("")
}

/** Bytes as text, by the mark at their beginning, else as UTF-8. What is no text becomes U+FFFD; the mark is left out. */
export const decodeFile = (bytes: Uint8Array): string => {
  const { encoding, mark } = encodingOf(bytes) ?? { encoding: "utf-8" as const, mark: 0 }
  const rest = bytes.subarray(mark)
  if (encoding === "utf-32le" || encoding === "utf-32be") return wide(rest, encoding === "utf-32le")
  return new TextDecoder(encoding, { ignoreBOM: true }).decode(rest)
}

/** Lines of a text: what ends with a line break is a line, and the rest if there is one. */
export const linesOf = (text: string): ReadonlyArray<string> => {
  const lines = text.split(/\r?\n/)
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines
}

/** A line as it is shown. */
export const cutLine = (line: string, widest = widestLine): string =>
  line.length > widest ? `${firstUnits(line, widest)}${cutMark}` : line

/** The lines that are shown of a file. */
export interface Shown {
  readonly text: string
  /** From 1, both ends included. */
  readonly from: number
  readonly to: number
  readonly total: number
  /** Whether some line is longer than what is shown of it. */
  readonly hasCutLines: boolean
  /** Whether something of the file is not shown. */
  readonly isPart: boolean
}

/** The wanted lines of a text, from 1, both ends included; line breaks become `\n`. */
export const showLines = (
  text: string,
  start = 1,
  end = start + usualLines - 1,
  widest: number = widestLine
): Shown => {
  const lines = linesOf(text)
  const to = Math.min(end, lines.length)
  const wanted = lines.slice(start - 1, to)
  const shown = wanted.map((line) => cutLine(line, widest))
  const hasCutLines = wanted.some((line) => line.length > widest)
  const closing = to === lines.length && text.endsWith("\n") ? "\n" : ""
  return {
    text: shown.join("\n") + closing,
    from: start,
    to,
    total: lines.length,
    hasCutLines,
    isPart: start > 1 || to < lines.length || hasCutLines
  }
}
