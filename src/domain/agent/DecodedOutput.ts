/** Converts the output of a program to readable text, whatever bytes it contains. */

import { joinBytes } from "../text/Bytes.ts"
import type { KeptOutput } from "../text/HeadAndTail.ts"

const decoder = new TextDecoder("utf-8")

/** Bytes examined at each end. */
const sampleBytes = 64 * 1024

/** A control character that does not occur in text. */
const isStrange = (code: number): boolean => (code < 32 && !(code >= 8 && code <= 13) && code !== 27) || code === 127

/** Drops the continuation bytes of a UTF-8 character that was cut (up to three). */
const fromWholeCharacter = (bytes: Uint8Array): Uint8Array => {
  let at = 0
  while (at < 3 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at += 1
  return bytes.subarray(at)
}

/** Drops the first bytes of a UTF-8 character that was cut. */
const toWholeCharacter = (bytes: Uint8Array): Uint8Array => {
  for (let back = 1; back <= 3 && back <= bytes.length; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.subarray(0, -back) : bytes
  }
  return bytes
}

/** Whether bytes are binary: more than one character in ten does not occur in text. */
const isBinary = (bytes: Uint8Array): boolean => {
  let strange = 0
  const text = decoder.decode(toWholeCharacter(fromWholeCharacter(bytes.subarray(0, sampleBytes))))
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (isStrange(code) || code === 0xfffd) strange += 1
  }
  return strange * 10 > text.length
}

/** Colors, cursor movements, window titles (ECMA-48): a CSI sequence, an OSC sequence up to its end, or one character. */
// oxlint-disable-next-line no-control-regex
const escapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_=>78])/g
// oxlint-disable-next-line no-control-regex
const controls = /[\u0001-\u0008\u000b\u000c\u000e-\u001f\u007f]/g

/** Decodes bytes as text. Invalid UTF-8 is replaced, NUL ends a line (`find -print0`), and terminal control sequences are removed. */
const textOf = (bytes: Uint8Array): string =>
  decoder.decode(bytes).replace(escapes, "").replaceAll("\r\n", "\n").replaceAll("\u0000", "\n").replace(controls, "")

const grouped = (count: number): string => count.toLocaleString("en-US")

/** The output of a program as text. Binary output is replaced by its size; dropped bytes are reported with their number. */
export const outputText = ({ dropped, head, tail }: KeptOutput): string => {
  const size = head.length + dropped + tail.length
  if (isBinary(head) || (tail.length > 0 && isBinary(tail.subarray(-sampleBytes)))) {
    return `(binary output, ${grouped(size)} bytes)`
  }
  // The tail directly follows the head and may continue its last character.
  if (dropped === 0) return textOf(joinBytes([head, tail]))
  const gap = `\n[… ${grouped(dropped)} of ${grouped(size)} bytes are left out here: more is not kept …]\n`
  return textOf(toWholeCharacter(head)) + gap + textOf(fromWholeCharacter(tail))
}

/** The end of an output, from the first whole character of these bytes on. */
export const endText = (bytes: Uint8Array): string =>
  isBinary(bytes) ? "(binary output)" : textOf(fromWholeCharacter(bytes))
