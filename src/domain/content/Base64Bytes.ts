/** Random access to the bytes of base64 text: only what a header needs is decoded. */

/** The bytes behind base64 text, decoded one by one when they are read. */
export interface Bytes {
  readonly length: number
  /** The byte at a position; −1 if there is none. */
  readonly at: (place: number) => number
}

/** The six bits of a character of base64 or base64url; −1 for any other. */
const sixBits = (code: number): number => {
  if (code >= 65 && code <= 90) return code - 65
  if (code >= 97 && code <= 122) return code - 71
  if (code >= 48 && code <= 57) return code + 4
  if (code === 43 || code === 45) return 62
  return code === 47 || code === 95 ? 63 : -1
}

/** Characters in which the first line break of base64 in lines is looked for. */
const maxLineChars = 1_024

/** The line length of base64 in lines, as mail writes it, without and with the line break. */
const lineLengthOf = (text: string): { readonly length: number; readonly width: number } => {
  const first = /^([^\s]+)(\s+)/u.exec(text.slice(0, maxLineChars))
  return first === null
    ? { length: text.length + 1, width: text.length + 1 }
    : { length: first[1]?.length ?? 1, width: first[0].length }
}

/** Reads base64, in one line or in lines. */
export const bytesOf = (data: string): Bytes => {
  const text = data.trim()
  const { length: line, width } = lineLengthOf(text)
  const whole = Math.floor(text.length / width)
  let letters = whole * line + Math.min(line, text.length - whole * width)
  for (let i = 1; i <= 2 && text.charCodeAt(text.length - i) === 61; i += 1) letters -= 1
  const length = Math.floor((letters * 3) / 4)
  const bits = (letter: number): number => sixBits(text.charCodeAt(letter + Math.floor(letter / line) * (width - line)))
  const at = (place: number): number => {
    if (!(place >= 0 && place < length)) return -1
    const offset = place % 3
    const letter = Math.floor(place / 3) * 4 + offset
    const left = bits(letter)
    const right = bits(letter + 1)
    if (left < 0 || right < 0) return -1
    if (offset === 0) return (left << 2) | (right >> 4)
    return offset === 1 ? ((left & 15) << 4) | (right >> 2) : ((left & 3) << 6) | right
  }
  return { length, at }
}

/** A big-endian number; NaN where a byte is missing. */
export const bigEndian = (bytes: Bytes, place: number, size: number): number => {
  let value = 0
  for (let i = 0; i < size; i += 1) {
    const byte = bytes.at(place + i)
    if (byte < 0) return Number.NaN
    value = value * 256 + byte
  }
  return value
}

/** A little-endian number; NaN where a byte is missing. */
export const littleEndian = (bytes: Bytes, place: number, size: number): number => {
  let value = 0
  for (let i = size - 1; i >= 0; i -= 1) {
    const byte = bytes.at(place + i)
    if (byte < 0) return Number.NaN
    value = value * 256 + byte
  }
  return value
}

/** Whether these letters stand at a position. */
export const hasAscii = (bytes: Bytes, place: number, letters: string): boolean => {
  for (let i = 0; i < letters.length; i += 1) if (bytes.at(place + i) !== letters.charCodeAt(i)) return false
  return true
}

/** The first position of letters from `place` on, before `end`; −1 if there is none. */
export const find = (bytes: Bytes, letters: string, place: number, end: number): number => {
  for (let i = place; i < end; i += 1) if (hasAscii(bytes, i, letters)) return i
  return -1
}

/** Segments of a JPEG or a WAVE file, and boxes of a container, that are read. */
export const maxSegments = 1_000
