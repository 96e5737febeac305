/**
 * Lossless conversion between text and bytes. Each byte that is not valid UTF-8 becomes one lone low surrogate
 * (U+DC80..U+DCFF) and is turned back into the same byte, so a file with broken text survives reading and writing.
 */

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** Returns the length of the valid UTF-8 sequence at `i`, or 0. */
const sequence = (bytes: Uint8Array, i: number): number => {
  const a = bytes[i] ?? 0
  const at = (k: number) => bytes[i + k] ?? 0
  const tail = (k: number) => (at(k) & 0xc0) === 0x80
  if (a < 0x80) return 1
  if (a >= 0xc2 && a <= 0xdf) return tail(1) ? 2 : 0
  if (a >= 0xe0 && a <= 0xef) {
    if (!tail(1) || !tail(2)) return 0
    if (a === 0xe0 && at(1) < 0xa0) return 0
    return a === 0xed && at(1) > 0x9f ? 0 : 3
  }
  if (a >= 0xf0 && a <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0
    if (a === 0xf0 && at(1) < 0x90) return 0
    return a === 0xf4 && at(1) > 0x8f ? 0 : 4
  }
  return 0
}

/** Decodes UTF-8. `valid` is false when some bytes had to be escaped. */
export const decode = (bytes: Uint8Array): { readonly text: string; readonly valid: boolean } => {
  try {
    return { text: strict.decode(bytes), valid: true }
  } catch {
    let text = ""
    let from = 0
    for (let i = 0; i < bytes.length;) {
      const length = sequence(bytes, i)
      if (length > 0) {
        i += length
        continue
      }
      text += strict.decode(bytes.subarray(from, i)) + String.fromCharCode(0xdc00 + (bytes[i] ?? 0))
      i += 1
      from = i
    }
    return { text: text + strict.decode(bytes.subarray(from)), valid: false }
  }
}

/** Encodes a text as UTF-8. Escaped bytes become themselves; any other lone surrogate becomes its three bytes. */
export const encode = (text: string): Uint8Array => {
  if (text.isWellFormed()) return encoder.encode(text)
  // A UTF-16 unit takes at most three bytes.
  const bytes = new Uint8Array(text.length * 3)
  let size = 0
  // With the flag `u`, this splits at lone surrogates only.
  for (const piece of text.split(/([\uD800-\uDFFF])/u)) {
    const code = piece.length === 1 ? piece.charCodeAt(0) : 0
    if (code >= 0xdc80 && code <= 0xdcff) bytes[size++] = code - 0xdc00
    else if (code >= 0xd800 && code <= 0xdfff) {
      bytes.set([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)], size)
      size += 3
    } else size += encoder.encodeInto(piece, bytes.subarray(size)).written
  }
  return bytes.slice(0, size)
}

/** Joins pieces into one array, without a copy when there is only one. */
export const joinBytes = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const [only] = pieces
  if (pieces.length === 1 && only !== undefined) return only
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff
const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** Returns whether a cut before `at` would split a character of two UTF-16 units. */
const parts = (text: string, at: number): boolean =>
  at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at))

/** Returns the first `length` units of a text, one fewer where the cut would split a character. */
export const firstUnits = (text: string, length: number): string =>
  text.slice(0, parts(text, length) ? length - 1 : length)

/** Returns the last `length` units of a text, one fewer where the cut would split a character. */
export const lastUnits = (text: string, length: number): string => {
  const at = Math.max(0, text.length - length)
  return text.slice(parts(text, at) ? at + 1 : at)
}

/** Truncates a text to `maxChars` characters and appends `…` if something was cut off. */
export const clipped = (text: string, maxChars: number): string =>
  text.length <= maxChars ? text : `${firstUnits(text, maxChars)}…`

/** Counts the line breaks in bytes. */
export const lineBreaks = (bytes: Uint8Array): number =>
  bytes.reduce((count, byte) => (byte === 10 ? count + 1 : count), 0)
