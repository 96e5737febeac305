/**
 * Finds secrets and personal data in the records of any transcript, and puts placeholders in their place. Only strings of the JSON
 * change, and numbers that are passwords, which become 0; the order of everything stays byte for byte.
 */

import { accountFinder, accountNamesIn, minAccountChars } from "../text/AccountNames.ts"
import type { Finding } from "../text/Finding.ts"
import { jsonNumberAt, type JsonPiece, type JsonString, jsonStrings, withLiterals } from "../text/JsonStrings.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { personalDataIn, personalKinds } from "../text/PersonalData.ts"
import { privateKey } from "../text/PrivateKeys.ts"
import { distinctiveSecrets, finding, markStart, outsideMarks, type Secret, withoutMarks } from "../text/Redaction.ts"
import { runSync, type SlicedWork } from "../text/SlicedWork.ts"

/** What is looked for. */
export interface SecretSearch {
  readonly secrets: boolean
  readonly personal: boolean
  /** Values that are secrets wherever they stand, such as those of environment variables. */
  readonly known: ReadonlyArray<Secret>
  /** Names of accounts. Given, they are found as whole words and with their home folders, and so are those whose home folders the session names. */
  readonly accounts?: ReadonlyArray<string> | undefined
}

const signatureKey = /^(?:signature|thoughtSignature|thinkingSignature|textSignature|encrypted_content)$/

/** Returns whether a string is a provider's own signature or encrypted text, which no rule reads. */
const isSignature = ({ key, value }: JsonString): boolean =>
  key !== undefined && signatureKey.test(key) && /^[A-Za-z0-9+/_-]{100,}={0,2}$/.test(value)

/** Returns whether a string is the bytes of a picture or file, which no rule reads. */
const isBytes = ({ isKey, value }: JsonString): boolean =>
  !isKey && value.length > 1_000 && /^(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/]{1000}[A-Za-z0-9+/]*={0,2}$/.test(value)

/** Whether a string holds JSON of its own, such as the arguments of a call. */
const isJsonText = (value: string): boolean => /^\s*[{[]/.test(value) && /[}\]]\s*$/.test(value) && value.includes('"')

const base64Of = (text: string): string => {
  let binary = ""
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** The forms in which base64 holds a value: one for each place that its first byte can have in a group of three. */
const encodedForms = (value: string): ReadonlyArray<string> =>
  [0, 1, 2].map((shift) => {
    const whole = base64Of("\0".repeat(shift) + value).replace(/=+$/, "")
    const length = new TextEncoder().encode(value).length + shift
    // The first and the last character also hold bits of the neighbours.
    return whole.slice(shift === 0 ? 0 : shift + 1, length % 3 === 0 ? undefined : -1)
  })

const minEncodedChars = 16

/** The finished places of one string. */
interface FoundPlace extends Finding {
  /** The value that the place stands for, which is another than its text where it is encoded. */
  readonly value: string
  /** What is written in its place; absent: a placeholder. */
  readonly instead?: string
}

/** A string or number of a record that holds secrets. The places of a number are in its digits. */
interface Holder extends JsonPiece {
  /** Without escapes. */
  readonly value: string
  readonly isNumber: boolean
  readonly places: ReadonlyArray<FoundPlace>
}

/** The number in the place of a password that is one: the record stays valid, and of the same form. */
const noNumber = "0"

/** Where known values stand in a text, as they are and in base64. */
const knownIn = (text: string, known: ReadonlyArray<KnownValue>): ReadonlyArray<FoundPlace> => {
  const places: Array<FoundPlace> = []
  for (const { forms, kind, value } of known) {
    for (const form of forms) {
      if (form.length > text.length) continue
      for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) {
        places.push({ start: at, end: at + form.length, kind, value })
      }
    }
  }
  return places
}

interface KnownValue extends Secret {
  readonly forms: ReadonlyArray<string>
}

const withForms = ({ kind, value }: Secret): KnownValue => ({
  kind,
  value,
  forms: [value, ...encodedForms(value).filter(({ length }) => length >= minEncodedChars)]
})

/** Joins places of a text that overlap, and leaves out what earlier marks cover. The longest names them. */
const joined = (text: string, places: ReadonlyArray<FoundPlace>): ReadonlyArray<FoundPlace> => {
  const sorted = [...places].sort((a, b) => a.start - b.start || b.end - a.end)
  const result: Array<FoundPlace> = []
  for (const place of sorted) {
    const last = result.at(-1)
    if (last === undefined || place.start >= last.end) result.push(place)
    else if (place.end > last.end) {
      const longer = place.end - place.start > last.end - last.start ? place : last
      result[result.length - 1] = { ...longer, start: last.start, end: place.end }
    }
  }
  const whole = new Set(result)
  return outsideMarks(text, result).map((place) =>
    whole.has(place) ? place : { ...place, value: text.slice(place.start, place.end) }
  )
}

/** A record or text with placeholders in place of its secrets. */
export interface Replaced {
  readonly text: string
  /** How many were replaced. */
  readonly replaced: number
  /** Whether it has the bytes of a picture or file, which are not searched. */
  readonly hasBytes: boolean
}

/** A secret of a record. */
export interface RecordSecret extends Secret {
  /** Whether its form tells it apart wherever it stands. */
  readonly isPersonal: boolean
}

/**
 * Collects the secrets of a session and replaces them: first `collect` every record, then `replace` each. The same value has the
 * same placeholder everywhere. Mutable.
 */
export class SessionSecrets {
  private readonly options: SecretSearch
  private readonly found = new Map<string, Secret>()
  private readonly names = new Map<string, string>()
  private readonly counts = new Map<string, number>()
  private readonly accountNames: Set<string>
  private accounts: ReturnType<typeof accountFinder>
  private values: ReadonlyArray<KnownValue>
  /** Texts without a secret: agents record the same results several times. */
  private readonly clean = new Set<string>()

  constructor(search: SecretSearch) {
    this.options = search
    this.values = search.known.map(withForms)
    this.accountNames = new Set(search.accounts)
    this.accounts = accountFinder([...this.accountNames])
  }

  /** Returns the secrets of a record, or of a text that is no JSON, and remembers those that are recognizable without their surroundings. */
  *collect(text: string, isJson = true): SlicedWork<ReadonlyArray<RecordSecret>> {
    if (this.options.accounts !== undefined) for (const name of accountNamesIn(text)) this.accountNames.add(name)
    return (yield* this.search(text, isJson)).holders.flatMap(({ places, value }) => this.remember(value, places))
  }

  private remember(text: string, places: ReadonlyArray<FoundPlace>): ReadonlyArray<RecordSecret> {
    return places.map(({ end, kind, start, value }) => {
      const isPersonal = personalData.has(kind)
      if (!isPersonal && text.slice(start, end) === value) this.found.set(value, { kind, value })
      return { kind, value, isPersonal }
    })
  }

  /** Ends the collecting: from here on, distinctive values are replaced wherever they stand. */
  settle(): void {
    const known = new Map(this.options.known.map((secret) => [secret.value, secret]))
    for (const secret of distinctiveSecrets(this.found.values())) known.set(secret.value, secret)
    this.clean.clear()
    this.accounts = accountFinder([...this.accountNames])
    this.values = [...known.values()].map(withForms)
  }

  /** Returns a record, or a text that is no JSON, with placeholders in place of its secrets. */
  *replace(text: string, isJson = true): SlicedWork<Replaced> {
    let result = text
    let replaced = 0
    let hasBytes = false
    // Removing one may reveal another beside it.
    for (let pass = 0; pass < maxPasses; pass += 1) {
      const found = yield* this.search(result, isJson)
      hasBytes = found.hasBytes
      if (found.holders.length === 0) break
      for (const { places } of found.holders) replaced += places.length
      result = withLiterals(
        result,
        found.holders.map(({ from, isNumber, places, to, value }) => {
          const literal = isNumber ? noNumber : this.without(value, places)
          return { piece: { from, to }, literal: isJson && !isNumber ? JSON.stringify(literal) : literal }
        })
      )
    }
    return { text: result, replaced, hasBytes }
  }

  /** Returns a path with names in place of its secrets that every file system takes: `redacted-GitHub-token-1.txt`. */
  replaceInPath(path: string): string {
    const { text } = runSync(this.replace(path, false))
    return text.replace(/\[(redacted): ([^\]]{1,80})\]/g, (_, mark: string, name: string) =>
      `${mark}-${name}`.replace(/[^\w.-]+/g, "-")
    )
  }

  /** Whether a text still holds a value that was settled on. */
  isRevealedBy(text: string): boolean {
    const rest = withoutMarks(text)
    return this.values.some(({ forms }) => forms.some((form) => rest.includes(form)))
  }

  private nameOf(kind: string, value: string): string {
    const known = this.names.get(value)
    if (known !== undefined) return known
    const count = (this.counts.get(kind) ?? 0) + 1
    this.counts.set(kind, count)
    const name = `${markStart}${kind} #${count}]`
    this.names.set(value, name)
    return name
  }

  private without(text: string, places: ReadonlyArray<FoundPlace>): string {
    let result = ""
    let at = 0
    for (const { end, instead, kind, start, value } of places) {
      result += text.slice(at, start) + (instead ?? this.nameOf(kind, value))
      at = end
    }
    return result + text.slice(at)
  }

  private *placesInText(text: string): SlicedWork<ReadonlyArray<FoundPlace>> {
    if (this.clean.has(text)) return []
    const found = [
      ...(this.options.secrets ? yield* finding(text) : []),
      ...(this.options.personal ? personalDataIn(text) : []),
      ...this.accounts(text)
    ].map((one): FoundPlace => ({ ...one, value: text.slice(one.start, one.end) }))
    const known = knownIn(text, this.values)
    yield
    if (found.length + known.length === 0 && text.length > minCleanChars && this.clean.size < maxClean)
      this.clean.add(text)
    return joined(text, [...found, ...known])
  }

  /** Finds the strings and numbers of a record that hold secrets, in order. Keys count as the context of their values. Any other text is one string. */
  private *search(
    json: string,
    isJson = true
  ): SlicedWork<{ readonly holders: ReadonlyArray<Holder>; readonly hasBytes: boolean }> {
    if (!isJson) {
      const places = yield* this.placesInText(json)
      const whole = { from: 0, to: json.length, value: json, isNumber: false, places }
      return { holders: places.length === 0 ? [] : [whole], hasBytes: false }
    }
    const all = jsonStrings(json)
    const strings = all.filter((string) => !isSignature(string) && !isBytes(string))
    const structure = this.options.secrets ? yield* findingsByStructure(json, strings) : nothingFound
    const least = this.options.accounts === undefined ? minSecretChars : minAccountChars
    const holders: Array<Holder> = []
    for (const [index, { from, isKey, to, value }] of strings.entries()) {
      const ofStructure = structure.inStrings.get(index) ?? []
      const places =
        // A short key is structure, if it is no known value.
        isKey && value.length < 2 * minSecretChars
          ? knownIn(value, this.values)
          : value.length < least
            ? ofStructure
            : isJsonText(value)
              ? yield* this.placesInJsonText(value, ofStructure)
              : [...ofStructure, ...(yield* this.placesInText(value))]
      const own = joined(value, places)
      if (own.length > 0) holders.push({ from, to, value, isNumber: false, places: own })
    }
    return {
      holders: [...holders, ...structure.numbers].sort((one, other) => one.from - other.from),
      hasBytes: all.some(isBytes)
    }
  }

  /**
   * The places in a string that holds JSON: those of its own strings and numbers, and others that leave its structure alone, such
   * as those that the structure around it shows.
   */
  private *placesInJsonText(text: string, around: ReadonlyArray<FoundPlace>): SlicedWork<ReadonlyArray<FoundPlace>> {
    const places: Array<FoundPlace> = []
    for (const { from, isNumber, places: inner, to, value: decoded } of (yield* this.search(text)).holders) {
      const start = isNumber ? from : from + 1
      const raw = text.slice(start, isNumber ? to : to - 1)
      for (const place of inner) {
        const written = JSON.stringify(decoded.slice(place.start, place.end)).slice(1, -1)
        const at = raw === decoded ? place.start : raw.indexOf(written)
        // Written with other escapes than ours, all of the string goes.
        const span = at >= 0 ? { start: at, end: at + written.length } : { start: 0, end: raw.length }
        places.push({
          ...place,
          start: start + span.start,
          end: start + span.end,
          ...(isNumber ? { instead: noNumber } : {})
        })
      }
    }
    const isWhole = parsedOrUndefined(text) !== undefined
    const leavesStructure = ({ end, start }: FoundPlace) =>
      !isWhole || end - start === text.length || !text.slice(start, end).includes('"')
    for (const each of [...around, ...(yield* this.placesInText(text))].filter(leavesStructure)) places.push(each)
    return places
  }
}

/** What the structure of a record shows to be secret. */
interface StructureFindings {
  /** The places in strings, by their index. */
  readonly inStrings: ReadonlyMap<number, ReadonlyArray<FoundPlace>>
  readonly numbers: ReadonlyArray<Holder>
}

const nothingFound: StructureFindings = { inStrings: new Map(), numbers: [] }

/**
 * Finds secrets in a record with its strings unescaped, so that a rule sees a name and its value as they were meant. Of a long
 * string the beginning is enough: all of it is searched on its own.
 */
function* findingsByStructure(json: string, strings: ReadonlyArray<JsonString>): SlicedWork<StructureFindings> {
  let text = ""
  let at = 0
  /** Where the text before a string begins, here and in the record, and where the string does. */
  const parts: Array<{ readonly gap: number; readonly json: number; readonly start: number; readonly end: number }> = []
  for (const { from, isKey, to, value } of strings) {
    const gap = text.length
    const between = json.slice(at, from + 1)
    // A value and the next key are no list of two.
    text += isKey ? between.replace(/,(?=[^,]*$)/, ";") : between
    const start = text.length
    text += value.slice(0, maxStructureChars)
    parts.push({ gap, json: at, start, end: text.length })
    at = to - 1
  }
  parts.push({ gap: text.length, json: at, start: Infinity, end: Infinity })
  text += json.slice(at)
  const inStrings = new Map<number, Array<FoundPlace>>()
  const numbers: Array<Holder> = []
  let next = 0
  for (const { end, kind, start } of yield* finding(text)) {
    while ((parts[next]?.end ?? Infinity) <= start) next += 1
    const part = parts[next]
    if (part !== undefined && end <= part.start) {
      const piece = jsonNumberAt(json, part.json + start - part.gap)
      const value = piece === undefined ? "" : json.slice(piece.from, piece.to)
      if (piece !== undefined)
        numbers.push({ ...piece, value, isNumber: true, places: [{ start: 0, end: value.length, kind, value }] })
      continue
    }
    for (let index = next; index < strings.length && (parts[index]?.start ?? Infinity) < end; index += 1) {
      const string = strings[index]
      const begin = parts[index]?.start ?? 0
      if (string === undefined || string.isKey) continue
      const from = Math.max(0, start - begin)
      const to = Math.min(string.value.length, maxStructureChars, end - begin)
      if (from < to) {
        const whole = to === maxStructureChars && kind !== privateKey ? restOfWord(string.value, to) : to
        const places = inStrings.get(index) ?? []
        places.push({ start: from, end: whole, kind, value: string.value.slice(from, whole) })
        inStrings.set(index, places)
      }
      // What follows is another value, whatever a rule made of it. The lines of a key can be a list.
      if (kind !== privateKey) break
    }
  }
  return { inStrings, numbers }
}

/** Returns where the word ends that continues at an offset. */
const restOfWord = (text: string, at: number): number => {
  const length = text.slice(at).search(/\s/)
  return length < 0 ? text.length : at + length
}

const personalData = new Set([...personalKinds, "home folder", "account"])
/** Only texts of this length are remembered, and this many. */
const minCleanChars = 200
const maxClean = 5_000
/** A longer value of a name is searched on its own. */
const maxStructureChars = 400
const maxPasses = 4
/** A shorter string holds no secret on its own. */
const minSecretChars = 8
