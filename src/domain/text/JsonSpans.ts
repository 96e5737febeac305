/**
 * Locates the elements of JSON text that nobody has parsed. Only the brackets and strings are looked at, in one pass; text whose
 * structure is broken has no spans.
 */

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
const stringEnd = (json: string, start: number): number => {
  for (let from = start + 1; ;) {
    const quote = json.indexOf('"', from)
    if (quote < 0) return -1
    let slashes = 0
    while (json.charCodeAt(quote - 1 - slashes) === 92) slashes += 1
    if (slashes % 2 === 0) return quote + 1
    from = quote + 1
  }
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

/** The elements of an array, and where the array ends. */
export interface ArraySpans extends Span {
  readonly elements: ReadonlyArray<Span>
}

/** Returns the spans of the array at `start`; undefined when there is no well-formed one. */
const arraySpans = (json: string, start: number): ArraySpans | undefined => {
  if (json.charCodeAt(start) !== 91) return undefined
  const elements: Array<Span> = []
  let at = afterSpace(json, start + 1)
  if (json.charCodeAt(at) === 93) return { start, end: at + 1, elements }
  for (;;) {
    const end = valueEnd(json, at)
    if (end < 0) return undefined
    elements.push({ start: at, end })
    at = afterSpace(json, end)
    const code = json.charCodeAt(at)
    if (code === 93) return { start, end: at + 1, elements }
    if (code !== 44) return undefined
    at = afterSpace(json, at + 1)
  }
}

/** A member of an object: where its value stands. */
export interface MemberSpan extends Span {
  readonly key: string
  /** The spans of its elements, where the caller asked for them and it is an array. */
  readonly array: ArraySpans | undefined
}

/**
 * Returns the members of the object at `start`, and those of `arrays` with the spans of their elements; undefined when there is
 * no well-formed object, or it has a key twice.
 */
export const objectSpans = (
  json: string,
  start: number,
  arrays: ReadonlyArray<string> = []
): ReadonlyMap<string, MemberSpan> | undefined => {
  if (json.charCodeAt(start) !== 123) return undefined
  const members = new Map<string, MemberSpan>()
  let at = afterSpace(json, start + 1)
  if (json.charCodeAt(at) === 125) return members
  for (;;) {
    if (json.charCodeAt(at) !== 34) return undefined
    const keyEnd = stringEnd(json, at)
    if (keyEnd < 0) return undefined
    const key = json.slice(at + 1, keyEnd - 1)
    const colon = afterSpace(json, keyEnd)
    if (json.charCodeAt(colon) !== 58 || members.has(key)) return undefined
    const from = afterSpace(json, colon + 1)
    const array = arrays.includes(key) && json.charCodeAt(from) === 91 ? arraySpans(json, from) : undefined
    const end = array?.end ?? valueEnd(json, from)
    if (end < 0) return undefined
    members.set(key, { key, start: from, end, array })
    at = afterSpace(json, end)
    const code = json.charCodeAt(at)
    if (code === 125) return members
    if (code !== 44) return undefined
    at = afterSpace(json, at + 1)
  }
}
