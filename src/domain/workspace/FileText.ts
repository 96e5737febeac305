/** Decodes text files and selects the lines to show. */

import { firstUnits } from "../text/Bytes.ts"

/** Default number of lines shown. */
export const defaultMaxLines = 2_000
/** Longest line shown in full, in characters. */
export const maxLineChars = 2_000
const cutMark = "... [truncated]"

type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "utf-32le" | "utf-32be"

const marks: ReadonlyArray<readonly [Encoding, ReadonlyArray<number>]> = [
  // Before the UTF-16 mark, which is its prefix.
  ["utf-32le", [0xff, 0xfe, 0, 0]],
  ["utf-32be", [0, 0, 0xfe, 0xff]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]],
  ["utf-8", [0xef, 0xbb, 0xbf]]
]

/** The encoding by the byte order mark, and the length of the mark. */
export const encodingOf = (bytes: Uint8Array): { readonly encoding: Encoding; readonly mark: number } | undefined => {
  const match = marks.find(([, mark]) => mark.every((byte, i) => bytes[i] === byte))
  return match === undefined ? undefined : { encoding: match[0], mark: match[1].length }
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

/** Decodes bytes by their byte order mark, else as UTF-8. Invalid bytes become U+FFFD; the mark is removed. */
export const decodeFile = (bytes: Uint8Array): string => {
  const { encoding, mark } = encodingOf(bytes) ?? { encoding: "utf-8" as const, mark: 0 }
  const rest = bytes.subarray(mark)
  if (encoding === "utf-32le" || encoding === "utf-32be") return wide(rest, encoding === "utf-32le")
  return new TextDecoder(encoding, { ignoreBOM: true }).decode(rest)
}

/** Splits a text into lines; a last line without a line break counts. */
export const linesOf = (text: string): ReadonlyArray<string> => {
  const lines = text.split(/\r?\n/)
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines
}

/** A line cut to the given width. */
export const cutLine = (line: string, widest = maxLineChars): string =>
  line.length > widest ? `${firstUnits(line, widest)}${cutMark}` : line

/** The lines shown of a file. */
export interface ShownLines {
  readonly text: string
  /** First line, counted from 1; the range is inclusive. */
  readonly from: number
  readonly to: number
  readonly total: number
  /** Whether a line was cut. */
  readonly hasCutLines: boolean
  /** Whether part of the file is not shown. */
  readonly isPart: boolean
}

/** Selects lines of a text, counted from 1, inclusive. Line breaks become `\n`. */
export const showLines = (
  text: string,
  start = 1,
  end = start + defaultMaxLines - 1,
  widest: number = maxLineChars
): ShownLines => {
  const lines = linesOf(text)
  const to = Math.min(end, lines.length)
  const selected = lines.slice(start - 1, to)
  const shown = selected.map((line) => cutLine(line, widest))
  const hasCutLines = selected.some((line) => line.length > widest)
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
