/**
 * Locates values in JSON text. `JSON.parse` loses digits beyond 2^53, the order of number-like keys, and spelling; a slice of the text
 * does not. Only brackets and strings are looked at, in one pass, so the text need not have been parsed: where its structure is broken,
 * nothing is found.
 */

/** The exact JSON text of one value. */
export type SourceText = string

/** Matches a surrogate that a JSON text writes as an escape, and not the same letters behind an escaped backslash. */
export const spelledSurrogate = /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/

/** Where a value stands in the text. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Returns the offset of the next character that is no white space. */
export const afterSpace = (json: string, from: number): number => {
  for (let at = from; ; at += 1) {
    const code = json.charCodeAt(at)
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return at
  }
}

/** Returns the offset after the string that opens at `start`; -1 when it does not end. */
export const stringEnd = (json: string, start: number): number => {
  for (let quote = json.indexOf('"', start + 1); quote >= 0; quote = json.indexOf('"', quote + 1)) {
    let slashes = 0
    while (json.charCodeAt(quote - 1 - slashes) === 92) slashes += 1
    if (slashes % 2 === 0) return quote + 1
  }
  return -1
}

/** Returns the offset after the value that begins at `start`; -1 when it does not end, or none begins there. */
export const valueEnd = (json: string, start: number): number => {
  const first = json.charCodeAt(start)
  if (first === 34) return stringEnd(json, start)
  if (first !== 123 && first !== 91) {
    let at = start
    while (at < json.length && /[-+.\w]/.test(json.charAt(at))) at += 1
    return at === start ? -1 : at
  }
  let depth = 0
  for (let at = start; at < json.length; at += 1) {
    const code = json.charCodeAt(at)
    if (code === 34) {
      const end = stringEnd(json, at)
      if (end < 0) return -1
      at = end - 1
    } else if (code === 123 || code === 91) depth += 1
    else if (code === 125 || code === 93) {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return -1
}

/** The members of an object or the elements of an array, and where that ends. */
export interface ContainerSpans extends Span {
  readonly elements: ReadonlyArray<ElementSpan>
}

/** A member of an object, or an element of an array. */
export interface ElementSpan extends Span {
  /** Where its key begins; in an array, where it does. */
  readonly from: number
  /** The key as it is written, without its quotes; empty in an array. */
  readonly key: string
  /** What it holds itself, where the caller asked for it and it is an array. */
  readonly array: ContainerSpans | undefined
}

/**
 * Returns the spans in the object or array at `start`, and within the members of `arrays` those of their elements; undefined when there
 * is no well-formed one.
 */
export const containerSpans = (
  json: string,
  start: number,
  arrays: ReadonlyArray<string> = []
): ContainerSpans | undefined => {
  const isObject = json.charCodeAt(start) === 123
  const closing = isObject ? 125 : 93
  if (!isObject && json.charCodeAt(start) !== 91) return undefined
  const elements: Array<ElementSpan> = []
  let at = afterSpace(json, start + 1)
  if (json.charCodeAt(at) === closing) return { start, end: at + 1, elements }
  for (;;) {
    const from = at
    let key = ""
    if (isObject) {
      const keyEnd = json.charCodeAt(at) === 34 ? stringEnd(json, at) : -1
      const colon = afterSpace(json, keyEnd)
      if (keyEnd < 0 || json.charCodeAt(colon) !== 58) return undefined
      key = json.slice(at + 1, keyEnd - 1)
      at = afterSpace(json, colon + 1)
    }
    const array = json.charCodeAt(at) === 91 && isObject && arrays.includes(key) ? containerSpans(json, at) : undefined
    const end = array?.end ?? valueEnd(json, at)
    if (end < 0) return undefined
    elements.push({ from, key, start: at, end, array })
    at = afterSpace(json, end)
    const code = json.charCodeAt(at)
    if (code === closing) return { start, end: at + 1, elements }
    if (code !== 44) return undefined
    at = afterSpace(json, at + 1)
  }
}

/** Like `containerSpans`, for an object: its members by key. Undefined also when it has a key twice. */
export const objectSpans = (
  json: string,
  start: number,
  arrays?: ReadonlyArray<string>
): ReadonlyMap<string, ElementSpan> | undefined => {
  if (json.charCodeAt(start) !== 123) return undefined
  const members = containerSpans(json, start, arrays)?.elements
  const byKey = members && new Map(members.map((member) => [member.key, member]))
  return byKey?.size === members?.length ? byKey : undefined
}

/** Whether an object in a JSON text has a key twice. `value` is what `JSON.parse` made of the text, with each key once. */
export const repeatsKey = (json: string, value: unknown): boolean => {
  let members = 0
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at)
    if (code === 34) at = stringEnd(json, at) - 1
    else if (code === 58) members += 1
  }
  const left = [value]
  while (left.length > 0) {
    const next = left.pop()
    if (typeof next !== "object" || next === null) continue
    const held: ReadonlyArray<unknown> = Object.values(next)
    if (!Array.isArray(next)) members -= held.length
    for (const each of held) left.push(each)
  }
  return members > 0
}

/** Returns a key without its escapes. */
export const plainKey = (key: string): string =>
  // Own JSON: callers have parsed the text.
  key.includes("\\") ? String(JSON.parse(`"${key}"`)) : key

/**
 * Returns the JSON text of the value at `path` in `json`, a text that `JSON.parse` has accepted; undefined when there is none.
 * Of duplicate keys the last counts, as in `JSON.parse`.
 */
export const sliceAt = (json: string, path: ReadonlyArray<string | number>): SourceText | undefined => {
  let start = afterSpace(json, 0)
  for (const step of path) {
    const isArray = json.charCodeAt(start) === 91
    const elements = containerSpans(json, start)?.elements ?? []
    const found = isArray ? elements[Number(step)] : elements.findLast(({ key }) => plainKey(key) === String(step))
    if (found === undefined) return undefined
    start = found.start
  }
  return json.slice(start, valueEnd(json, start))
}

/** Returns the JSON texts of the elements of `json`, which is one array. */
export const arraySlices = (json: string): ReadonlyArray<SourceText> => {
  const start = afterSpace(json, 0)
  if (json.charCodeAt(start) !== 91) return []
  return (containerSpans(json, start)?.elements ?? []).map(({ end, start }) => json.slice(start, end))
}
