/** The estimated tokens of a text by class: prose, code, base64, and others that vocabularies treat differently. */

import type { Part } from "../content/Content.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { beginning, partTokens, requestContent, roundedTokens, scan } from "./Tokens.ts"

/** Classes of text that vocabularies treat differently. Stored calibrations depend on the order. */
export const textClasses = [
  "prose",
  "code",
  /** Logs, tables, numbers in JSON. */
  "figures",
  "hexadecimal",
  "base64",
  "latin",
  /** Alphabets that are neither Latin nor ideographic. */
  "script",
  "cjk",
  "symbols",
  "emoji",
  "media",
  /** The protocol's own tokens around parts, calls and responses. */
  "frame"
] as const
/** A class of text. */
export type TextClass = (typeof textClasses)[number]

/** Estimated tokens by class. */
export type Features = Readonly<Record<TextClass, number>>

type Amounts = Record<TextClass, number>

const noFeatures: Features = {
  prose: 0,
  code: 0,
  figures: 0,
  hexadecimal: 0,
  base64: 0,
  latin: 0,
  script: 0,
  cjk: 0,
  symbols: 0,
  emoji: 0,
  media: 0,
  frame: 0
}

/** The features of several texts together, and of what came before them. */
export const sumFeatures = (all: ReadonlyArray<Features>, before: Features = noFeatures): Features => {
  // Field by field: looked up by name, a request of 10,000 messages takes several milliseconds, a few times a turn.
  let { prose, code, figures, hexadecimal, base64, latin, script, cjk, symbols, emoji, media, frame } = before
  for (const each of all) {
    prose += each.prose
    code += each.code
    figures += each.figures
    hexadecimal += each.hexadecimal
    base64 += each.base64
    latin += each.latin
    script += each.script
    cjk += each.cjk
    symbols += each.symbols
    emoji += each.emoji
    media += each.media
    frame += each.frame
  }
  return { prose, code, figures, hexadecimal, base64, latin, script, cjk, symbols, emoji, media, frame }
}

/** All estimated tokens of these features. */
export const totalTokens = (features: Features): number =>
  textClasses.reduce((total, name) => total + features[name], 0)

/** Changes whenever features or the estimator below them do: factors learned with another version mean nothing. */
export const featuresVersion = 4

/** Letters with accents stand within words and form no run of their own. */
const latinEnd = 0x250

/** What a character is in a word: digits, letters, and the characters that join them in base64, file names and UUIDs. */
const kind = { other: 0, joint: 1, digit: 2, lower: 3, upper: 4 }

/** The kinds of the Latin characters. */
const kinds = Uint8Array.from({ length: latinEnd }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[a-z]/.test(character)) return kind.lower
  if (/[0-9]/.test(character)) return kind.digit
  if (/[A-Z]/.test(character)) return kind.upper
  return /[-+/=_]/.test(character) ? kind.joint : kind.other
})

const otherClass = (code: number): TextClass => {
  if (code < 0x2000) return "script"
  if (code === 0x200d || code === 0xfe0f || (code >= 0x2600 && code < 0x27c0)) return "emoji"
  if (code < 0x2e80) return "symbols"
  if (code < 0xd800) return "cjk"
  return code < 0xe000 ? "emoji" : "cjk"
}

/** Where the run of characters of one class beyond the Latin ones ends. */
const otherEnd = (text: string, start: number, end: number, name: TextClass): number => {
  let at = start + 1
  for (; at < end; at += 1) {
    const code = text.charCodeAt(at)
    if (code < latinEnd || otherClass(code) !== name) break
  }
  return at
}

/** A shorter run is a word, whatever it looks like. */
const minEncodedChars = 20
/** Changes between digits, small and capital letters, a character: words and camelCase stay below, hashes above. */
const encodedChangeRate = 0.28
/** A run is judged in pieces of this length, so that a long one needs no second look. */
const maxRunChars = 512

const hexadecimal = /^[0-9a-f-]+$|^[0-9A-F-]+$/

/** The composition of a stretch of text. */
class Composition {
  length = 0
  letters = 0
  digits = 0
  marks = 0
  accents = 0
  /** Changes between digits, small and capital letters. */
  changes = 0

  /** Becomes that of the run of word characters at `start`. Returns where it ends. */
  readRun(text: string, start: number, end: number): number {
    this.clear()
    const most = Math.min(end, start + maxRunChars)
    let before = kind.other
    let isCapital = false
    let at = start
    for (; at < most; at += 1) {
      const one = kinds[text.charCodeAt(at)] ?? kind.other
      if (one === kind.other) break
      if (one === kind.joint) {
        this.marks += 1
        continue
      }
      // A capital begins the word that follows it.
      if (one !== before && !(isCapital && one === kind.lower)) this.changes += 1
      isCapital = one === kind.upper && before !== kind.upper
      before = one
      if (one === kind.digit) this.digits += 1
      else this.letters += 1
    }
    this.length = at - start
    return at
  }

  /** Whether a run is an encoding rather than words. */
  get isJumble(): boolean {
    return this.length >= minEncodedChars && this.changes > this.length * encodedChangeRate
  }

  add(other: Composition): void {
    this.length += other.length
    this.letters += other.letters
    this.digits += other.digits
    this.marks += other.marks
    this.accents += other.accents
  }

  /** Adds a Latin character that is in no word. */
  addCharacter(code: number): void {
    this.length += 1
    if (code >= 128) this.accents += 1
    else if (code > 32) this.marks += 1
  }

  clear(): void {
    this.length = this.letters = this.digits = this.marks = this.accents = this.changes = 0
  }
}

/** Characters of a window. Latin text is classified in windows of whole lines of about this length. */
const windowChars = 256
const figureShare = 0.16
const markShare = 0.11
const accentShare = 0.02

const windowClass = ({ accents, digits, letters, marks }: Composition): TextClass => {
  const all = digits + letters + marks + accents
  if (accents > all * accentShare) return "latin"
  if (digits > all * figureShare) return "figures"
  return marks > all * markShare ? "code" : "prose"
}

const step = 65_536

/** Features of a text, computed in slices. Each stretch costs what it costs in its place, so the sum is the estimate. */
export function* textFeatures(text: string): SlicedWork<Features> {
  const amounts: Amounts = { ...noFeatures }
  let at = 0
  let reported = 0
  let progress = beginning
  /** Where the tokens that have no class yet begin. */
  let counted = 0
  /** Returns the tokens from there to `end`. Called once for many words: a call costs more than a word. */
  const tokensTo = (end: number): number => {
    const before = progress.cost
    progress = scan(text, counted, end, progress)
    counted = end
    return (progress.cost - before) / 100
  }
  // Runs with a class of their own are no part of a window. Its tokens before such a run wait for its class.
  const window = new Composition()
  const run = new Composition()
  let waiting = 0
  const closeWindow = () => {
    amounts[windowClass(window)] += waiting + tokensTo(at)
    waiting = 0
    window.clear()
  }
  /** Reads on to `end`, over a run with a class of its own. */
  const addOwn = (name: TextClass, end: number) => {
    waiting += tokensTo(at)
    amounts[name] += tokensTo(end)
    at = end
  }
  while (at < text.length) {
    const start = at
    const end = Math.min(text.length, start + step)
    const code = text.charCodeAt(start)
    if (code >= latinEnd) {
      const name = otherClass(code)
      addOwn(name, otherEnd(text, start, end, name))
    } else {
      const stop = run.readRun(text, start, end)
      if (run.isJumble) addOwn(hexadecimal.test(text.slice(start, stop)) ? "hexadecimal" : "base64", stop)
      else if (stop > start) {
        window.add(run)
        at = stop
      } else {
        window.addCharacter(code)
        at += 1
      }
      if (window.length >= windowChars && (code === 10 || window.length >= 4 * windowChars)) closeWindow()
    }
    if (at - reported >= step) {
      yield
      reported = at
    }
  }
  closeWindow()
  yield
  return amounts
}

/** Scales features to the estimator's whole tokens: it rounds every text separately. */
const rounded = (features: Features): Features => {
  const exact = totalTokens(features)
  const tokens = roundedTokens(exact)
  if (exact === 0 || exact === tokens) return features
  const amounts: Amounts = { ...features }
  for (const name of textClasses) amounts[name] *= tokens / exact
  return amounts
}

/** Features of one part as it stands in a request. Their total is the estimator's count. */
export function* partFeatures(part: Part): SlicedWork<Features> {
  if (part.inlineData !== undefined || part.fileData !== undefined) {
    return { ...noFeatures, media: yield* partTokens(part) }
  }
  const { frame, media, texts } = requestContent(part)
  const latest: Array<Features> = [{ ...noFeatures, frame }]
  for (const text of texts) latest.push(rounded(yield* textFeatures(text)))
  for (const one of media) latest.push(yield* partFeatures(one))
  return sumFeatures(latest)
}
