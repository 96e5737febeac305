import { accountFinder, accountNamesIn, minAccountChars } from "../text/AccountNames.ts"
import { type JsonString, jsonStrings, withStrings } from "../text/JsonStrings.ts"
import { personalDataIn, personalKinds } from "../text/PersonalData.ts"
import { distinctiveSecrets, finding, type Finding, markStart, type Secret } from "../text/Redaction.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"

/**
 * Finds secrets and personal data in the records of any transcript, and puts placeholders in their place. Only strings of the JSON
 * change; keys, numbers and the order of everything stay byte for byte.
 */

/** What is looked for. */
export interface SecretSearch {
  readonly secrets: boolean
  readonly personal: boolean
  /** Values that are secrets wherever they stand, such as those of environment variables. */
  readonly known: ReadonlyArray<Secret>
  /** Names of accounts. Given, they are found as whole words and with their home folders, and so are those whose home folders the session names. */
  readonly accounts?: ReadonlyArray<string> | undefined
}

/** Strings that carry bytes or signatures, which no rule reads. */
const carried = /^(?:signature|thoughtSignature|thinkingSignature|textSignature|encrypted_content)$/

const isCarried = ({ isKey, key, value }: JsonString): boolean =>
  (key !== undefined && carried.test(key)) ||
  (!isKey && value.length > 1_000 && /^(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/]{1000}[A-Za-z0-9+/]*={0,2}$/.test(value))

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
interface Place extends Finding {
  /** The value that the place stands for, which is another than its text where it is encoded. */
  readonly value: string
}

/** Where known values stand in a text, as they are and in base64. */
const knownIn = (text: string, known: ReadonlyArray<KnownValue>): ReadonlyArray<Place> => {
  const places: Array<Place> = []
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

/** Joins places that overlap. The longest names them. */
const joined = (places: ReadonlyArray<Place>): ReadonlyArray<Place> => {
  const sorted = [...places].sort((a, b) => a.start - b.start || b.end - a.end)
  const result: Array<Place> = []
  for (const place of sorted) {
    const last = result.at(-1)
    if (last === undefined || place.start >= last.end) result.push(place)
    else if (place.end > last.end) {
      const longer = place.end - place.start > last.end - last.start ? place : last
      result[result.length - 1] = { ...longer, start: last.start, end: place.end }
    }
  }
  return result
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
  private readonly search: SecretSearch
  private readonly found = new Map<string, Secret>()
  private readonly names = new Map<string, string>()
  private readonly counts = new Map<string, number>()
  private readonly accountNames: Set<string>
  private accounts: ReturnType<typeof accountFinder>
  private values: ReadonlyArray<KnownValue>
  /** Texts without a secret: agents record the same results several times. */
  private readonly clean = new Set<string>()

  constructor(search: SecretSearch) {
    this.search = search
    this.values = search.known.map(withForms)
    this.accountNames = new Set(search.accounts)
    this.accounts = accountFinder([...this.accountNames])
  }

  private collectAccounts(text: string): void {
    if (this.search.accounts !== undefined) for (const name of accountNamesIn(text)) this.accountNames.add(name)
  }

  /** Returns the secrets of a record, and remembers those that are recognizable without their surroundings. */
  *collect(json: string): SlicedWork<ReadonlyArray<RecordSecret>> {
    const secrets: Array<RecordSecret> = []
    this.collectAccounts(json)
    for (const { places, string } of yield* this.placesIn(json)) {
      for (const { end, kind, start, value } of places) {
        const isPersonal = personalData.has(kind)
        secrets.push({ kind, value, isPersonal })
        const shown = string.value.slice(start, end)
        if (!isPersonal && shown === value) this.found.set(value, { kind, value })
      }
    }
    return secrets
  }

  /** Ends the collecting: from here on, distinctive values are replaced wherever they stand. */
  settle(): void {
    const known = new Map(this.search.known.map((secret) => [secret.value, secret]))
    for (const secret of distinctiveSecrets(this.found.values())) known.set(secret.value, secret)
    this.clean.clear()
    this.accounts = accountFinder([...this.accountNames])
    this.values = [...known.values()].sort((a, b) => b.value.length - a.value.length).map(withForms)
  }

  /** Returns a record with placeholders in place of its secrets, and how many were replaced. */
  *replace(json: string): SlicedWork<{ readonly json: string; readonly replaced: number }> {
    let result = json
    let replaced = 0
    // Removing one may reveal another beside it.
    for (let pass = 0; pass < maxPasses; pass += 1) {
      const found = yield* this.placesIn(result)
      if (found.length === 0) break
      for (const { places } of found) replaced += places.length
      result = withStrings(
        result,
        found.map(({ places, string }) => ({ string, value: this.without(string.value, places) }))
      )
    }
    return { json: result, replaced }
  }

  /** Returns a text that is no JSON with placeholders in place of its secrets. */
  *replaceText(text: string): SlicedWork<{ readonly text: string; readonly replaced: number }> {
    let result = text
    let replaced = 0
    for (let pass = 0; pass < maxPasses; pass += 1) {
      const places = yield* this.placesInText(result)
      if (places.length === 0) break
      replaced += places.length
      result = this.without(result, places)
    }
    return { text: result, replaced }
  }

  /** Returns the secrets of a text that is no JSON, and remembers them like `collect`. */
  *collectText(text: string): SlicedWork<ReadonlyArray<RecordSecret>> {
    const secrets: Array<RecordSecret> = []
    this.collectAccounts(text)
    for (const { end, kind, start, value } of yield* this.placesInText(text)) {
      const isPersonal = personalData.has(kind)
      secrets.push({ kind, value, isPersonal })
      if (!isPersonal && text.slice(start, end) === value) this.found.set(value, { kind, value })
    }
    return secrets
  }

  /** Whether a text still holds a value that was settled on. */
  isRevealedBy(text: string): boolean {
    return this.values.some(({ forms }) => forms.some((form) => text.includes(form)))
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

  private without(text: string, places: ReadonlyArray<Place>): string {
    let result = ""
    let at = 0
    for (const { end, kind, start, value } of places) {
      result += text.slice(at, start) + this.nameOf(kind, value)
      at = end
    }
    return result + text.slice(at)
  }

  private *placesInText(text: string): SlicedWork<ReadonlyArray<Place>> {
    if (this.clean.has(text)) return []
    const found = [
      ...(this.search.secrets ? yield* finding(text) : []),
      ...(this.search.personal ? personalDataIn(text) : []),
      ...this.accounts(text)
    ].map((one): Place => ({ ...one, value: text.slice(one.start, one.end) }))
    const known = knownIn(text, this.values)
    yield (text.length * this.values.length) / 8
    if (found.length + known.length === 0 && text.length > minCleanChars && this.clean.size < maxClean)
      this.clean.add(text)
    return joined([...found, ...known])
  }

  /** The places in the strings of a record, by string. Keys count as the context of their values. */
  private *placesIn(
    json: string
  ): SlicedWork<ReadonlyArray<{ readonly string: JsonString; readonly places: ReadonlyArray<Place> }>> {
    const strings = jsonStrings(json).filter((string) => !isCarried(string))
    const places = strings.map((): Array<Place> => [])
    if (this.search.secrets) {
      // The record with its strings unescaped, so that a rule sees a name and its value as they were meant. Of a long string the
      // beginning is enough: all of it is searched on its own.
      let text = ""
      let at = 0
      const starts: Array<number> = []
      for (const { from, isKey, to, value } of strings) {
        const between = json.slice(at, from + 1)
        // A value and the next key are no list of two.
        text += isKey ? between.replace(",", ";") : between
        starts.push(text.length)
        text += value.slice(0, maxStructureChars)
        at = to - 1
      }
      text += json.slice(at)
      let next = 0
      for (const { end, kind, start } of yield* finding(text)) {
        while (
          next < strings.length &&
          (starts[next] ?? 0) + Math.min(maxStructureChars, strings[next]?.value.length ?? 0) <= start
        )
          next += 1
        for (let index = next; index < strings.length && (starts[index] ?? 0) < end; index += 1) {
          const string = strings[index]
          const begin = starts[index] ?? 0
          if (string === undefined) break
          if (string.isKey) continue
          const [from, to] = [Math.max(0, start - begin), Math.min(string.value.length, maxStructureChars, end - begin)]
          if (from < to) places[index]?.push({ start: from, end: to, kind, value: string.value.slice(from, to) })
          // What follows is another value, whatever a rule made of it.
          break
        }
      }
    }
    const least = this.search.accounts === undefined ? minSecretChars : minAccountChars
    for (const [index, { isKey, value }] of strings.entries()) {
      if (value.length < least || (isKey && value.length < 2 * minSecretChars)) continue
      const own = yield* isJsonText(value) ? this.placesInJsonText(value) : this.placesInText(value)
      places[index]?.push(...own)
    }
    return strings.flatMap((string, index) => {
      const own = joined(places[index] ?? [])
      // The keys of a record are its structure.
      return own.length === 0 || (string.isKey && string.value.length < 2 * minSecretChars)
        ? []
        : [{ string, places: own }]
    })
  }

  /** The places in a string that holds JSON: those of its own strings, as long as they are written without escapes. */
  private *placesInJsonText(text: string): SlicedWork<ReadonlyArray<Place>> {
    const places: Array<Place> = [...(yield* this.placesInText(text))]
    for (const { places: inner, string } of yield* this.placesIn(text)) {
      const raw = text.slice(string.from + 1, string.to - 1)
      for (const { end, kind, start, value } of inner) {
        const written = JSON.stringify(string.value.slice(start, end)).slice(1, -1)
        const at = raw === string.value ? start : raw.indexOf(written)
        if (at >= 0) {
          places.push({ start: string.from + 1 + at, end: string.from + 1 + at + written.length, kind, value })
        } else {
          // Written with other escapes than ours: all of the string goes.
          places.push({ start: string.from + 1, end: string.to - 1, kind, value })
        }
      }
    }
    return joined(places)
  }
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
