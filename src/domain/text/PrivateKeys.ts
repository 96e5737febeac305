/**
 * Finds private keys in a text, whole or in pieces, as programs print them. A key is known by the line at which it begins or ends;
 * the lines of base64 beside that one belong to it. A piece without either is known by the length of its lines. Every rule looks a
 * bounded distance, so the time is linear in the length of the text.
 */

import { matchAt } from "./MatchAt.ts"
import { isRandom } from "./RandomText.ts"

/** The kind of what is found here. */
export const privateKey = "private key"

/** Characters `start` to `end` of a text. */
interface Span {
  readonly start: number
  readonly end: number
}

/** The lines at which keys begin and end: PEM, OpenPGP, OpenSSH, ssh.com and PuTTY. */
const keyEdges =
  /-{4,5} ?(?:BEGIN|END) (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-(?:Lines: ?\d{1,4}|(?:MAC|Hash): ?[0-9a-fA-F]{0,64})/g
/** A text without these has no edge: finding them is many times as fast. */
const edgeWords = ["PRIVATE KEY", "Private-"]
const edgeReach = 128
const isBeginning = (edge: string): boolean => /BEGIN |Lines/.test(edge)

/** Maximum distance between the two. A key with its headers takes some kilobytes; an end farther away belongs to another. */
const maxKeyChars = 65_536

const base64 = "[A-Za-z0-9+/]"
/** A line of a key; a shorter run of letters is a word. */
const line = `${base64}{16,}={0,2}`
const lineNumber = String.raw`(?<![A-Za-z0-9+/=.])\d{1,6}(?=[\s→|:-])`
const escapedBreak = String.raw`\\|(?<=\\)[nrt]`
/**
 * One character, number or name between two lines: line breaks, also as JSON writes them, and what programs print around a line,
 * such as quotes, marks of a diff, a quotation or a comment, line numbers and the name of the file.
 */
const between = String.raw`(?:[\s"'\`,;:|>→*#-]|${escapedBreak}|\+(?!${base64}{16})|\/\/(?=\s)|${lineNumber}|(?<=[\n\r])[^\s:"'\\]{1,120}:)`
const gap = `${between}{1,80}`
/** What separates the last line of a key without its end, which may be short. */
const narrowGap = String.raw`(?:[\s>|→]|${escapedBreak}|${lineNumber}){1,40}`
const header = String.raw`${narrowGap}(?:Proc-Type|DEK-Info|Version|Comment|Charset): [^\n\r\\]{0,200}`

/** What follows the beginning of a key whose end is missing. */
const afterBeginning = new RegExp(
  `(?:${header})*(?:${gap}${line})*(?:${narrowGap}[A-Za-z0-9+/=]{1,15}(?![A-Za-z0-9]))?`,
  "y"
)
/** What stands before the end of a key whose beginning is missing. The last line may be short, and check digits follow `=`. */
const beforeEnd = new RegExp(
  `(?<=((?:${line}${gap})+(?:=?${base64}{1,15}={0,2}${gap}){0,2}|(?<!${base64})${base64}{1,15}={1,2}${gap}))`,
  "y"
)
const linesBefore = new RegExp(`(?<=((?:${line}${gap})+))`, "y")
const linesAfter = new RegExp(`(?:${gap}${line})+`, "y")
const nextLine = new RegExp(`${gap}(${base64}{1,${maxKeyChars}}={0,2})`, "y")
/** The end of a line that a piece begins with. */
const partialLineBefore = new RegExp(`(?<=(?<!${base64})((${base64}{16,69})${gap}))`, "y")

/** Returns where a match ends that begins at an offset; the offset itself when there is none. */
const endOf = (pattern: RegExp, text: string, at: number): number =>
  at + Math.max(0, matchAt(pattern, text.slice(at, at + maxKeyChars), 0))

/** Returns where a match begins that ends at an offset; the offset itself when there is none. */
const startOf = (pattern: RegExp, text: string, at: number): number => {
  const from = Math.max(0, at - maxKeyChars)
  pattern.lastIndex = at - from
  return at - (pattern.exec(text.slice(from, at + 1))?.[1]?.length ?? 0)
}

/** Finds the keys with a beginning or an end that lies in the range. */
const keysByEdges = (text: string, from: number, to: number): ReadonlyArray<Span> => {
  const range = text.slice(from, to + edgeReach)
  if (!edgeWords.some((word) => range.includes(word))) return []
  const keys: Array<Span> = []
  let done = from
  for (const { 0: edge, index } of range.matchAll(keyEdges)) {
    const start = from + index
    if (start < done || start >= to) continue
    const bodyStart = start + edge.length
    if (!isBeginning(edge)) {
      const first = startOf(beforeEnd, text, start)
      if (first === start) continue
      keys.push({ start: first, end: bodyStart })
      done = bodyStart
      continue
    }
    const ahead = text.slice(bodyStart, bodyStart + maxKeyChars)
    const [other] = ahead.matchAll(keyEdges)
    const isWhole = other !== undefined && !isBeginning(other[0]) && !ahead.slice(0, other.index).includes("<")
    const end = isWhole ? bodyStart + other.index + other[0].length : endOf(afterBeginning, text, bodyStart)
    keys.push({ start, end })
    done = end
  }
  return keys
}

/** The lengths of the lines that OpenSSL, PuTTY and GnuPG write, and OpenSSH. */
const lineChars = new Set([64, 70])

const isBase64 = new Uint8Array(128)
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
  isBase64[character.charCodeAt(0)] = 1
}
const isBase64At = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at)
  return code < 128 && isBase64[code] === 1
}

/** What stands before a line of a key, and after it: line breaks, and what programs print there. */
const lineHead = /(?:^|[\n\r]|\\[nr])(?:(?!sha|md5)[^\s:"'\\]{1,120}:)?(?:[\s"'`|>→*#+-]|\d{1,6}[\t→|:-])*$/
const lineHeadReach = 200
const lineBreak = /[ \t]*(?:$|[\r\n]|\\{1,7}[nr])/y
const lineTail = /[ \t]*\\{0,7}["'`](?:$|[,;)\]}+\\]|[ \t]{1,4}\+|[ \t]*[\r\n])/y
/** A block of base64 that everybody may see: a certificate, a public key. */
const notPrivate = "(?!(?:[A-Z0-9]{1,16} ){0,3}PRIVATE)"
const publicBeginning = new RegExp(
  `(?:-{4,5} ?BEGIN ${notPrivate}[A-Z0-9 ]{1,40}-{4,5}(?:${header})*|Public-Lines: ?\\d{1,4})${gap}$`
)
const publicReach = 400
const publicEnd = new RegExp(`${gap}(?:-{4,5} ?END ${notPrivate}|Private-Lines:)`, "y")

const isRandomLine = (value: string): boolean =>
  /[A-Z]/.test(value) && /[a-z]/.test(value) && /\d/.test(value) && isRandom(value)

/** Returns whether these characters are all of a line that a key could have. One of its ends can be that of a quoted text. */
const isKeyLine = (text: string, start: number, end: number): boolean => {
  const isBroken = endOf(lineBreak, text, end) > end || end === text.length
  const isAlone = lineHead.test(text.slice(Math.max(0, start - lineHeadReach), start))
    ? isBroken || endOf(lineTail, text, end) > end
    : isBroken && /["'`]$/.test(text.charAt(start - 1))
  return isAlone && isRandomLine(text.slice(start, end))
}

/** Returns where a public block ends whose line these characters are; undefined when they are in none. */
const publicBlockEnd = (text: string, start: number, end: number): number | undefined => {
  const blockStart = startOf(linesBefore, text, start)
  const blockEnd = endOf(linesAfter, text, end)
  const lastEnd = endOf(nextLine, text, blockEnd)
  return publicBeginning.test(text.slice(Math.max(0, blockStart - publicReach), blockStart)) ||
    endOf(publicEnd, text, blockEnd) > blockEnd ||
    endOf(publicEnd, text, lastEnd) > lastEnd
    ? lastEnd
    : undefined
}

/** Extends a line to the lines beside it, which may be cut. */
const pieceOf = (text: string, start: number, end: number): Span => {
  partialLineBefore.lastIndex = start
  const [, before = "", partial = ""] = partialLineBefore.exec(text) ?? []
  let last = end
  while (last - start < maxKeyChars) {
    nextLine.lastIndex = last
    const [whole = "", next = ""] = nextLine.exec(text) ?? []
    if (whole === "" || !(next.endsWith("=") || (next.length >= 16 && isRandom(next)))) break
    last += whole.length
  }
  return { start: isRandomLine(partial) ? start - before.length : start, end: last }
}

/** Finds the pieces of private keys without a beginning or an end. Their first whole line lies in the range. */
export const keyPiecesIn = (text: string, from: number, to: number): ReadonlyArray<Span> => {
  const pieces: Array<Span> = []
  let done = from
  // A probe in each interval of this length hits every line.
  const step = Math.min(...lineChars)
  for (let probe = from; probe < to; probe += step) {
    if (probe < done || !isBase64At(text, probe)) continue
    let start = probe
    while (start > done && probe - start <= maxRunChars && isBase64At(text, start - 1)) start -= 1
    let end = probe + 1
    while (end - probe <= maxRunChars && isBase64At(text, end)) end += 1
    // The letter of an escaped line break, and the mark of a diff.
    if (text.charAt(start - 1) === "\\" || (text.charAt(start) === "+" && lineChars.has(end - start - 1))) start += 1
    if (!lineChars.has(end - start) || !isKeyLine(text, start, end)) continue
    const publicEnd = publicBlockEnd(text, start, end)
    if (publicEnd === undefined) pieces.push(pieceOf(text, start, end))
    done = publicEnd ?? pieces.at(-1)?.end ?? end
  }
  return pieces
}
/** A longer run of base64 is no line of a key. */
const maxRunChars = Math.max(...lineChars) + 2

/** Another notation of a private key: what shows that it is used, and its secret parts around that. */
interface Notation {
  /** A text without these does not use it. */
  readonly words: ReadonlyArray<string>
  readonly hint: RegExp
  readonly before: number
  readonly secret: RegExp
}

const notations: ReadonlyArray<Notation> = [
  // A JSON Web Key, whose members have no order.
  {
    words: ["kty"],
    hint: /(\\{0,7}["'])kty\1/g,
    before: 4_096,
    secret: /(?<=["'](?:d|p|q|dp|dq|qi|k)\\{0,7}["']\s{0,8}:\s{0,8}\\{0,7}["'])[A-Za-z0-9_-]{16,4096}/g
  },
  // XML of .NET.
  {
    words: ["<RSAKeyValue>"],
    hint: /<RSAKeyValue>/g,
    before: 0,
    secret: /(?<=<(?:D|P|Q|DP|DQ|InverseQ)>)[A-Za-z0-9+/=\s]{16,4096}/g
  },
  // The line behind the comment of minisign and signify.
  {
    words: ["untrusted comment:"],
    hint: /\buntrusted comment:/g,
    before: 0,
    secret: /(?<=secret key[^\n\r\\]{0,80}(?:[\n\r]|\\{1,7}[nr]){1,4})[A-Za-z0-9+/]{40,400}={0,2}/g
  },
  // The expression of GnuPG's agent.
  {
    words: ["private-key"],
    hint: /\((?:shadowed-|protected-)?private-key\b/g,
    before: 0,
    secret: /(?<=\([dpqu] ?)#[0-9A-Fa-f]{16,4096}#/g
  },
  // The text of OpenSSL.
  {
    words: ["privateExponent:", "prime1:", "priv:"],
    hint: /\b(?:privateExponent|prime1|priv):/g,
    before: 0,
    secret:
      /(?<=\b(?:privateExponent|prime[12]|exponent[12]|coefficient|priv):)(?:(?:\s|\\[nrt]){1,40}(?:[0-9A-Fa-f]{2}:){2,64}(?:[0-9A-Fa-f]{2})?){1,100}/g
  }
]
/** How far after its hint a notation reaches. */
const notationReach = 8_192

const keysInOtherNotations = (text: string, from: number, to: number): ReadonlyArray<Span> =>
  notations.flatMap(({ before, hint, secret, words }) => {
    const range = text.slice(from, to + edgeReach)
    if (!words.some((word) => range.includes(word))) return []
    const keys: Array<Span> = []
    let done = from
    for (const { index } of range.matchAll(hint)) {
      const at = from + index
      if (at < done || at >= to) continue
      const start = Math.max(0, at - before)
      for (const { 0: value, index: offset } of text.slice(start, at + notationReach).matchAll(secret)) {
        keys.push({ start: start + offset, end: start + offset + value.length })
      }
      // A hint that is skipped has the other half of the distance to itself.
      done = at + notationReach / 2
    }
    return keys
  })

/** Finds the private keys that begin, end or are named in a range of a text. They can overlap. */
export const privateKeysIn = (text: string, from: number, to: number): ReadonlyArray<Span> => [
  ...keysByEdges(text, from, to),
  ...keysInOtherNotations(text, from, to)
]
