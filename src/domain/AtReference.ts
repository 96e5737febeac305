/** What a person refers to in a message: `@src/main.ts`, `@"my notes.md"`, `@src/**` (spec 13). */

/** Words that are text. */
export interface TextSegment {
  readonly _tag: "Text"
  readonly text: string
}

/** A reference: how it was written, from the `@` on, and the path that means. */
export interface ReferenceSegment {
  readonly _tag: "Reference"
  readonly raw: string
  readonly path: string
}

/** A piece of a message. All pieces together, as they were written, are the message. */
export type Segment = TextSegment | ReferenceSegment

/** What ends a path that is not in quotes (spec 13). */
const delimiters = new Set(" \t\n\r\v\f,;!?()[]{}")

const isAlphanumeric = (character: string): boolean => /^[A-Za-z0-9]$/.test(character)

/** Signs a reference may follow closely: `see (@a.ts`, `@a.ts,@b.ts`. After other signs and letters it is an address, code or a handle. */
const opening = new Set(",;!?([{")

/** Scripts that put no space between words, and their punctuation: `看@a.ts`. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]$/u

const mayBegin = (message: string, at: number): boolean => {
  if (at === 0) return true
  const before = message.charAt(at - 1)
  return opening.has(before) || /\s/.test(before) || unspaced.test(message.slice(Math.max(0, at - 2), at))
}

interface Token {
  readonly path: string
  /** Behind its last character. */
  readonly end: number
}

/** A path in quotes, from its first quote on; undefined: they are not closed on their line. */
const quotedToken = (message: string, start: number): Token | undefined => {
  for (let at = start + 1; at < message.length; at += 1) {
    const character = message.charAt(at)
    if (character === "\n" || character === "\r") return undefined
    if (character === '"') return { path: message.slice(start + 1, at), end: at + 1 }
  }
  return undefined
}

/** A path without quotes: up to a delimiter; a backslash makes a sign part of it, a dot behind it ends it before white space. */
const plainToken = (message: string, start: number): Token => {
  let path = ""
  let at = start
  while (at < message.length) {
    const character = message.charAt(at)
    if (delimiters.has(character)) break
    if (character === ".") {
      let behind = at
      while (message.charAt(behind) === ".") behind += 1
      // Alone it is the folder itself.
      const isFolder = path === "" && behind === at + 1
      if (!isFolder && (behind === message.length || /\s/.test(message.charAt(behind)))) break
      path += message.slice(at, behind)
      at = behind
      continue
    }
    const next = message.charAt(at + 1)
    // Before a letter it stands for itself, as in the paths of Windows.
    if (character === "\\" && next !== "" && next !== "\n" && next !== "\r" && !isAlphanumeric(next)) {
      path += next
      at += 2
      continue
    }
    path += character
    at += 1
  }
  return { path, end: at }
}

/** Where blocks of code lie that are fenced and closed: pasted decorators and addresses are no references. */
const fences = (message: string): ReadonlyArray<{ readonly start: number; readonly end: number }> => {
  const found: Array<{ start: number; end: number }> = []
  let open: { readonly start: number; readonly mark: string } | undefined
  for (const match of message.matchAll(/^ {0,3}(`{3,}|~{3,})([^\n]*)$/gm)) {
    const [whole, mark = "", rest = ""] = match
    if (open === undefined) {
      if (mark.startsWith("~") || !rest.includes("`")) open = { start: match.index, mark }
    } else if (mark.startsWith(open.mark) && rest.trim() === "") {
      found.push({ start: open.start, end: match.index + whole.length })
      open = undefined
    }
  }
  return found
}

/** The pieces of a message. A lone `@`, an escaped one, addresses of mail and fenced code are text. */
export const parse = (message: string): ReadonlyArray<Segment> => {
  if (!message.includes("@")) return message === "" ? [] : [{ _tag: "Text", text: message }]
  const segments: Array<Segment> = []
  const code = fences(message)
  let fence = 0
  let from = 0
  let at = message.indexOf("@")
  while (at >= 0) {
    while ((code[fence]?.end ?? Infinity) <= at) fence += 1
    const isCode = (code[fence]?.start ?? Infinity) <= at
    const token =
      isCode || !mayBegin(message, at)
        ? undefined
        : ((message.charAt(at + 1) === '"' ? quotedToken(message, at + 1) : undefined) ?? plainToken(message, at + 1))
    if (token !== undefined && token.path.trim() !== "") {
      if (at > from) segments.push({ _tag: "Text", text: message.slice(from, at) })
      segments.push({ _tag: "Reference", raw: message.slice(at, token.end), path: token.path })
      from = token.end
    }
    at = message.indexOf("@", Math.max(at + 1, from))
  }
  if (from < message.length) segments.push({ _tag: "Text", text: message.slice(from) })
  return segments
}

/** A path as a reference that means it, in quotes where it needs them; undefined: no reference can. */
export const written = (path: string): string | undefined => {
  if (path.trim() === "" || /[\n\r]/.test(path)) return undefined
  const isPlain =
    !path.endsWith(".") && ![...path].some((each) => delimiters.has(each) || each === '"' || each === "\\")
  if (isPlain) return `@${path}`
  if (!path.includes('"')) return `@"${path}"`
  const escaped = path.replace(/["\\ \t\v\f,;!?()[\]{}]/g, "\\$&")
  return `@${escaped.replace(/\.+$/, (dots) => "\\.".repeat(dots.length))}`
}

/** The beginning of a path as it is typed without quotes, as a path: backslashes stand before signs that belong to it. */
export const unescaped = (typed: string): string => typed.replace(/\\([^A-Za-z0-9])/g, "$1")

/** A path that was meant perhaps, and what of the word is then text behind it. */
export interface Reading {
  readonly path: string
  readonly rest: string
}

/** Signs that people put behind a path without a space: `@a.ts: …`, `@a.ts:12`, `@a.ts’s`, and those of scripts without spaces. */
const sign = /[:'"`’”»>|\u00a0\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]|\.+$/gu

/** Signs that are looked at, from the end. */
const mostSigns = 4

/**
 * What a path may have meant, as it is written first: it may end before one of its last signs. A file of that very name wins, so
 * nothing that the rules of spec 13 find is found otherwise.
 */
export const readings = (path: string): ReadonlyArray<Reading> => {
  const found: Array<Reading> = [{ path, rest: "" }]
  const places = [...path.matchAll(sign)].slice(-mostSigns).reverse()
  for (const { index } of places) {
    const shorter = path.slice(0, index).replace(/\.+$/, "")
    if (shorter.trim() !== "") found.push({ path: shorter, rest: path.slice(shorter.length) })
  }
  return found
}

/**
 * The message again. `instead` says how a reference is written now; undefined: as it was. Where one stands directly behind a
 * word, a space is put before it (spec 13).
 */
export const rebuild = (
  segments: ReadonlyArray<Segment>,
  instead: (reference: ReferenceSegment) => string | undefined
): string => {
  let message = ""
  /** What the message ends with so far. */
  let last = ""
  for (const segment of segments) {
    if (segment._tag === "Text") {
      message += segment.text
      last = segment.text.slice(-1)
      continue
    }
    const now = instead(segment)
    const isTight = last !== "" && !/[\s([{]/.test(last)
    message += now === undefined ? segment.raw : `${isTight ? " " : ""}${now}`
    last = "@"
  }
  return message
}
