/**
 * Locates values in the JSON text they were parsed from. `JSON.parse` loses digits beyond 2^53, the order of number-like keys, and
 * spelling; a slice of the text does not.
 */

/** The exact JSON text of one value. */
export type SourceText = string

/** Matches a surrogate that a JSON text writes as an escape, and not the same letters behind an escaped backslash. */
export const spelledSurrogate = /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/

const space = (json: string, i: number): number => {
  for (;;) {
    const code = json.charCodeAt(i)
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return i
    i += 1
  }
}

/** Returns the offset after the string that opens at `i`. */
const stringEnd = (json: string, i: number): number => {
  for (let at = i + 1; ;) {
    const quote = json.indexOf('"', at)
    if (quote < 0) return json.length
    let slashes = 0
    while (json.charCodeAt(quote - 1 - slashes) === 92) slashes += 1
    if (slashes % 2 === 0) return quote + 1
    at = quote + 1
  }
}

/** Returns the offset after the value that begins at `i`. */
const valueEnd = (json: string, i: number): number => {
  const first = json.charCodeAt(i)
  if (first === 34) return stringEnd(json, i)
  if (first !== 123 && first !== 91) {
    let at = i
    while (at < json.length && !",]} \n\r\t".includes(json.charAt(at))) at += 1
    return at
  }
  let depth = 0
  for (let at = i; at < json.length;) {
    const code = json.charCodeAt(at)
    if (code === 34) {
      at = stringEnd(json, at)
      continue
    }
    if (code === 123 || code === 91) depth += 1
    if (code === 125 || code === 93) {
      depth -= 1
      if (depth === 0) return at + 1
    }
    at += 1
  }
  return json.length
}

/** Calls `visit` with the start and end of each element of the object or array at `i`, and its key. */
const elements = (json: string, i: number, visit: (key: string, start: number, end: number) => void): void => {
  const object = json.charCodeAt(i) === 123
  const closing = object ? 125 : 93
  let at = space(json, i + 1)
  for (let index = 0; at < json.length && json.charCodeAt(at) !== closing; index += 1) {
    let key = String(index)
    if (object) {
      const end = stringEnd(json, at)
      const literal = json.slice(at, end)
      key = literal.includes("\\") ? String(JSON.parse(literal)) : literal.slice(1, -1)
      at = space(json, space(json, end) + 1)
    }
    const end = valueEnd(json, at)
    visit(key, at, end)
    at = space(json, end)
    if (json.charCodeAt(at) === 44) at = space(json, at + 1)
  }
}

/**
 * Returns the JSON text of the value at `path` in `json`, a text that `JSON.parse` has accepted; undefined when there is none.
 * Of duplicate keys the last counts, as in `JSON.parse`.
 */
export const sliceAt = (json: string, path: ReadonlyArray<string | number>): SourceText | undefined => {
  let start = space(json, 0)
  for (const step of path) {
    const code = json.charCodeAt(start)
    if (code !== 123 && code !== 91) return undefined
    let elementStart = -1
    elements(json, start, (key, from) => {
      if (key === String(step)) elementStart = from
    })
    if (elementStart < 0) return undefined
    start = elementStart
  }
  return json.slice(start, valueEnd(json, start))
}

/** Returns the JSON texts of the elements of `json`, which is one array. */
export const arraySlices = (json: string): Array<SourceText> => {
  const slices: Array<SourceText> = []
  const start = space(json, 0)
  if (json.charCodeAt(start) === 91) elements(json, start, (_, from, end) => slices.push(json.slice(from, end)))
  return slices
}
