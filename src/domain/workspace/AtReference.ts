/** Parses `@` references in a message: `@src/main.ts`, `@"my notes.md"`, `@src/**`. */

/** Plain text. */
interface TextSegment {
  readonly _tag: "Text"
  readonly text: string
}

/** A reference: its source text from the `@` on, and its path. */
export interface ReferenceSegment {
  readonly _tag: "Reference"
  readonly raw: string
  readonly path: string
}

/** A piece of a message. The source texts of all pieces, joined, are the message. */
export type Segment = TextSegment | ReferenceSegment

/** Characters that end an unquoted path. */
const delimiters = new Set(" \t\n\r\v\f,;!?()[]{}")

const isAlphanumeric = (character: string): boolean => /^[A-Za-z0-9]$/.test(character)

/**
 * Characters a reference may follow directly: `see (@a.ts`, `@a.ts,@b.ts`. After other characters an `@` is part of an
 * address, code or a handle.
 */
const opening = new Set(",;!?([{")

/** Scripts without spaces between words, and their punctuation: `看@a.ts`. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]$/u

const mayBegin = (message: string, at: number): boolean => {
  if (at === 0) return true
  const before = message.charAt(at - 1)
  return opening.has(before) || /\s/.test(before) || unspaced.test(message.slice(Math.max(0, at - 2), at))
}

interface Token {
  readonly path: string
  /** The offset after its last character. */
  readonly end: number
}

/** A quoted path from its opening quote on; undefined when the quote is not closed on its line. */
const quotedToken = (message: string, start: number): Token | undefined => {
  for (let at = start + 1; at < message.length; at += 1) {
    const character = message.charAt(at)
    if (character === "\n" || character === "\r") return undefined
    if (character === '"') return { path: message.slice(start + 1, at), end: at + 1 }
  }
  return undefined
}

/**
 * An unquoted path up to a delimiter. A backslash escapes the next character; a dot before white space ends the path.
 */
const plainToken = (message: string, start: number): Token => {
  let path = ""
  let at = start
  while (at < message.length) {
    const character = message.charAt(at)
    if (delimiters.has(character)) break
    if (character === ".") {
      let behind = at
      while (message.charAt(behind) === ".") behind += 1
      // A lone dot is the folder itself.
      const isFolder = path === "" && behind === at + 1
      if (!isFolder && (behind === message.length || /\s/.test(message.charAt(behind)))) break
      path += message.slice(at, behind)
      at = behind
      continue
    }
    const next = message.charAt(at + 1)
    // Before a letter a backslash is literal, as in Windows paths.
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

/** Closed fenced code blocks: pasted decorators and addresses in them are not references. */
const fences = (message: string): ReadonlyArray<{ readonly start: number; readonly end: number }> => {
  const blocks: Array<{ start: number; end: number }> = []
  let open: { readonly start: number; readonly mark: string } | undefined
  for (const match of message.matchAll(/^ {0,3}(`{3,}|~{3,})([^\n]*)$/gm)) {
    const [whole, mark = "", rest = ""] = match
    if (open === undefined) {
      if (mark.startsWith("~") || !rest.includes("`")) open = { start: match.index, mark }
    } else if (mark.startsWith(open.mark) && rest.trim() === "") {
      blocks.push({ start: open.start, end: match.index + whole.length })
      open = undefined
    }
  }
  return blocks
}

/** Splits a message into pieces. A lone or escaped `@`, e-mail addresses and fenced code are text. */
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

/** A path as a reference, quoted when needed; undefined when no reference can express it. */
export const formatReference = (path: string): string | undefined => {
  if (path.trim() === "" || /[\n\r]/.test(path)) return undefined
  const isPlain =
    !path.endsWith(".") && ![...path].some((each) => delimiters.has(each) || each === '"' || each === "\\")
  if (isPlain) return `@${path}`
  if (!path.includes('"')) return `@"${path}"`
  const escaped = path.replace(/["\\ \t\v\f,;!?()[\]{}]/g, "\\$&")
  return `@${escaped.replace(/\.+$/, (dots) => "\\.".repeat(dots.length))}`
}

/** The path that an unquoted, partly typed reference means, without its escapes. */
export const unescaped = (typed: string): string => typed.replace(/\\([^A-Za-z0-9])/g, "$1")

/** A possible path, and the text after it in the same word. */
export interface PathReading {
  readonly path: string
  readonly rest: string
}

/**
 * Characters that people write directly after a path: `@a.ts: …`, `@a.ts:12`, `@a.ts’s`, and punctuation of scripts
 * without spaces.
 */
const sign = /[:'"`’”»>|\u00a0\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]|\.+$/gu

/** Most such characters tried, from the end. */
const maxSigns = 4

/**
 * The paths a reference may mean: as written first, then ending before one of its last punctuation characters. An
 * existing file of the exact name wins, so the alternatives never hide a file.
 */
export const readings = (path: string): ReadonlyArray<PathReading> => {
  const candidates: Array<PathReading> = [{ path, rest: "" }]
  const places = [...path.matchAll(sign)].slice(-maxSigns).reverse()
  for (const { index } of places) {
    const shorter = path.slice(0, index).replace(/\.+$/, "")
    if (shorter.trim() !== "") candidates.push({ path: shorter, rest: path.slice(shorter.length) })
  }
  return candidates
}

/**
 * Rebuilds the message. `instead` replaces the source text of references by path. A reference directly after a word
 * gets a space before it.
 */
export const rebuild = (
  segments: ReadonlyArray<Segment>,
  instead: (reference: ReferenceSegment) => string | undefined
): string => {
  let message = ""
  /** The last character of the message so far. */
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
