/**
 * Text and bytes without loss. Bytes that are not UTF-8 become lone low surrogates U+DC80..U+DCFF, one a byte, and turn
 * back into the same bytes; so a file with broken text survives reading and writing.
 */

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** The length of the valid UTF-8 sequence at `i`, or 0. */
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

/** Decodes UTF-8; `valid` is false when some bytes had to be escaped. */
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

/** The bytes of a text: UTF-8, escaped bytes as themselves, any other lone surrogate as its three bytes. */
export const encode = (text: string): Uint8Array => {
  if (text.isWellFormed()) return encoder.encode(text)
  const bytes: Array<number> = []
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0
    if (code >= 0xdc80 && code <= 0xdcff) bytes.push(code - 0xdc00)
    else if (code >= 0xd800 && code <= 0xdfff)
      bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f))
    else for (const byte of encoder.encode(char)) bytes.push(byte)
  }
  return Uint8Array.from(bytes)
}

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff
const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** Whether a cut before `at` would part a character that takes two UTF-16 units. */
const parts = (text: string, at: number): boolean =>
  at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at))

/** The first `length` units of a text, one less where a character would be parted. */
export const firstUnits = (text: string, length: number): string =>
  text.slice(0, parts(text, length) ? length - 1 : length)

/** The last `length` units of a text, one less where a character would be parted. */
export const lastUnits = (text: string, length: number): string => {
  const at = Math.max(0, text.length - length)
  return text.slice(parts(text, at) ? at + 1 : at)
}
