/** Finds and replaces strings and numbers of a JSON text, and leaves everything else byte for byte. */

import { stringEnd } from "./JsonSource.ts"

/** Where a string or number begins and ends in a JSON text, quotes included. */
export interface JsonPiece {
  readonly from: number
  readonly to: number
}

/** A string of a JSON text. */
export interface JsonString extends JsonPiece {
  /** What it stands for, without escapes. */
  readonly value: string
  /** The key under which it is the value; undefined in a list and for a key itself. */
  readonly key: string | undefined
  readonly isKey: boolean
}

const decoded = (literal: string): string => {
  if (!literal.includes("\\")) return literal.slice(1, -1)
  let value = ""
  let from = 1
  const escape = /\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g
  const escapes: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }
  for (const found of literal.matchAll(escape)) {
    const [whole, code, letter = ""] = found
    value += literal.slice(from, found.index)
    value += code === undefined ? (escapes[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16))
    from = found.index + whole.length
  }
  return value + literal.slice(from, -1)
}

const colon = /\s*:/y

/** Returns the strings of a JSON text in order, keys included. The text may be incomplete: a string without an end is left out. */
export const jsonStrings = (json: string): ReadonlyArray<JsonString> => {
  const strings: Array<JsonString> = []
  let key: { readonly value: string; readonly to: number } | undefined
  for (let from = json.indexOf('"'); from >= 0;) {
    const to = stringEnd(json, from)
    if (to < 0) break
    const value = decoded(json.slice(from, to))
    colon.lastIndex = to
    const isKey = colon.test(json)
    const after = colon.lastIndex
    // A value follows its key at once.
    const isValue = key !== undefined && json.slice(key.to, from).trim() === ""
    strings.push({ from, to, value, isKey, key: isValue && !isKey ? key?.value : undefined })
    key = isKey ? { value, to: after } : undefined
    from = json.indexOf('"', to)
  }
  return strings
}

const number = /-?\d[\d.eE+-]*/y

/** Returns the number of a JSON text that begins at `from`, and lies outside of its strings. */
export const jsonNumberAt = (json: string, from: number): JsonPiece | undefined => {
  number.lastIndex = from
  return number.test(json) ? { from, to: number.lastIndex } : undefined
}

/** Replaces strings and numbers of a JSON text, given in order. `literal`: what is written in place of one. */
export const withLiterals = (
  json: string,
  changes: ReadonlyArray<{ readonly piece: JsonPiece; readonly literal: string }>
): string => {
  let result = ""
  let at = 0
  for (const { literal, piece } of changes) {
    result += json.slice(at, piece.from) + literal
    at = piece.to
  }
  return result + json.slice(at)
}
