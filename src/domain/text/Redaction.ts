/**
 * Removes secrets from a text before it reaches a reader who must not see them: private keys, tokens of known shapes, logins, and
 * values that follow a telling name. The text around them stays. The rules overlap, and their order decides which of them names a
 * finding. Every rule looks a bounded distance, so the time is linear in the length of the text.
 */

import type { Finding, Kind } from "./Finding.ts"
import { findLogins } from "./Logins.ts"
import { findNamed } from "./NamedSecrets.ts"
import { keyPiecesIn, privateKey, privateKeysIn } from "./PrivateKeys.ts"
import { hasDigitAndLetter, isRandom } from "./RandomText.ts"
import { findTokens } from "./SecretTokens.ts"
import { fileName, formed } from "./SecretValues.ts"
import * as Work from "./SlicedWork.ts"

/** Returns the mark that replaces a secret. */
export const redacted = (kind: Kind): string => `[redacted: ${kind}]`

/** The beginning of a mark; a text without it contains no mark. */
export const markStart = "[redacted: "

// All rules together

/** Characters searched between two pauses. */
const window = 131_072

const redactionMarks = /\[redacted: [^\]\n]{1,200}\]/g

/** Returns the parts of findings, given in order, that no earlier mark covers. A finding that touches no mark stays the same object. */
export const outsideMarks = <A extends Finding>(text: string, findings: ReadonlyArray<A>): ReadonlyArray<A> => {
  if (findings.length === 0 || !text.includes(markStart)) return findings
  const marks = Array.from(text.matchAll(redactionMarks), ({ 0: { length }, index }) => ({
    from: index,
    to: index + length
  }))
  let first = 0
  return findings.flatMap((finding) => {
    while ((marks[first]?.to ?? Infinity) <= finding.start) first += 1
    if ((marks[first]?.from ?? Infinity) >= finding.end) return [finding]
    const parts: Array<A> = []
    let start = finding.start
    for (let at = first; start < finding.end; at += 1) {
      const { from = Infinity, to = Infinity } = marks[at] ?? {}
      const end = Math.min(from, finding.end)
      if (start < end) parts.push({ ...finding, start, end })
      start = to
    }
    return parts
  })
}

/** Returns a text without the marks that replaced its secrets. */
export const withoutMarks = (text: string): string =>
  text.includes(markStart) ? text.replace(redactionMarks, "") : text

/** Sorts findings and removes overlaps and what earlier marks cover. The first rule that finds something names it. */
const resolvedFindings = (text: string, findings: ReadonlyArray<Finding>): ReadonlyArray<Finding> => {
  if (findings.length === 0) return findings
  const sorted = findings
    .map((finding, index) => ({ ...finding, index }))
    .sort((one, other) => one.start - other.start || one.end - other.end)
  const united: Array<Finding & { readonly index: number }> = []
  for (const next of sorted) {
    const last = united.at(-1)
    if (last === undefined || next.start >= last.end) {
      united.push(next)
      continue
    }
    const first = last.index <= next.index ? last : next
    united[united.length - 1] = { ...first, start: last.start, end: Math.max(last.end, next.end) }
  }
  return outsideMarks(text, united)
}

// Invisible and look-alike characters

/** Terminal colours and cursor movements, also as programs and JSON write them, and characters that only modify others. */
const hidden = new RegExp(
  [
    String.raw`(?:\u001b\[|\u009b|\\(?:u001[bB]|x1[bB]|0?33|e)\[)[0-?]{0,32}[ -/]{0,4}[@-~]`,
    String.raw`[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]`,
    String.raw`\udb40[\udc00-\udc7f]`,
    String.raw`\\u(?:00[aA][dD]|200[b-fB-F]|2060|[fF][eE][fF][fF])`
  ].join("|"),
  "g"
)
/** Blanks and signs that look like ASCII ones. */
const alike: ReadonlyArray<readonly [RegExp, string]> = [
  [/[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/g, " "],
  [/：/g, ":"],
  [/＝/g, "="]
]

/** A text without its hidden characters, and the number of hidden characters up to each offset. */
interface Seen {
  readonly text: string
  readonly gaps: ReadonlyArray<{ readonly at: number; readonly hidden: number }>
}

function* seeing(text: string): Work.SlicedWork<Seen> {
  let visible = ""
  let from = 0
  const gaps: Array<{ at: number; hidden: number }> = []
  for (const { 0: match, index } of text.matchAll(hidden)) {
    visible += text.slice(from, index)
    from = index + match.length
    gaps.push({ at: visible.length, hidden: from - visible.length })
    if (gaps.length % 8_192 === 0) yield
  }
  visible += text.slice(from)
  yield
  for (const [like, plain] of alike) visible = visible.replace(like, plain)
  return { text: visible, gaps }
}

/** Maps findings in the visible text to offsets in the whole text. */
const inWholeText = (findings: ReadonlyArray<Finding>, gaps: Seen["gaps"]): ReadonlyArray<Finding> => {
  if (gaps.length === 0) return findings
  let next = 0
  const place = (at: number): number => {
    while ((gaps[next]?.at ?? Infinity) <= at) next += 1
    return at + (gaps[next - 1]?.hidden ?? 0)
  }
  return findings.map(({ end, kind, start }) => ({ start: place(start), end: place(end - 1) + 1, kind }))
}

/** Finds every secret of a text, in order, in slices. */
export function* finding(whole: string): Work.SlicedWork<ReadonlyArray<Finding>> {
  const { gaps, text } = yield* seeing(whole)
  const findings: Array<Finding> = []
  const namedSecrets: Array<Finding> = []
  const pieces: Array<Finding> = []
  let reached = 0
  for (let from = 0; from < text.length; from += window) {
    const to = Math.min(text.length, from + window)
    for (const span of privateKeysIn(text, from, to)) findings.push({ ...span, kind: privateKey })
    reached = findTokens(text, Math.max(from, reached), to, findings)
    findLogins(text, from, to, findings)
    findNamed(text, from, to, namedSecrets)
    for (const span of keyPiecesIn(text, from, to)) pieces.push({ ...span, kind: privateKey })
    yield
  }
  return inWholeText(resolvedFindings(text, [...findings, ...namedSecrets, ...pieces]), gaps)
}

/** Returns every secret of a text, in order. */
const secretsIn = (text: string): ReadonlyArray<Finding> => Work.runSync(finding(text))

const without = (text: string, findings: ReadonlyArray<Finding>): string => {
  let result = ""
  let from = 0
  for (const { end, kind, start } of findings) {
    result += text.slice(from, start) + redacted(kind)
    from = end
  }
  return result + text.slice(from)
}

/** A removed secret. */
export interface Secret {
  readonly kind: Kind
  readonly value: string
}

/** A text without its secrets, and the removed secrets in order. */
interface Redaction {
  readonly text: string
  readonly secrets: ReadonlyArray<Secret>
}

/** Removing one secret may reveal another beside it; a few passes settle any text. */
const maxPasses = 4

/** Like `redact`, in slices; also returns the secrets that it found. */
export function* redacting(text: string, values: ReadonlyArray<Secret> = []): Work.SlicedWork<Redaction> {
  let result = text
  const secrets: Array<Secret> = []
  for (let look = 0; look < maxPasses; look += 1) {
    const findings = yield* finding(result)
    if (findings.length === 0) break
    for (const { end, kind, start } of findings) secrets.push({ kind, value: result.slice(start, end) })
    result = without(result, findings)
  }
  return { text: yield* withoutValues(result, values), secrets }
}

/** Returns whether a secret looks generated and is no path, handle, element or ordinary word: such a value occurs nowhere by chance. */
const isDistinctive = ({ value }: Secret): boolean =>
  isRandom(value) &&
  /\d/.test(value) &&
  !/h_[a-z2-7]/.test(value) &&
  !formed.test(value) &&
  (/^[A-Za-z0-9+_.~:%@$!^*#?&;,-]+$/.test(value)
    ? !fileName.test(value)
    : /^[A-Za-z0-9+/]{32,}={0,2}$/.test(value) && value.split("/").every((each) => !/^[A-Z]?[a-z]{3,}$/.test(each)))

/**
 * Returns whether a value is also removed from the user's words when another text revealed it. A shorter value is not: the output of
 * a tool must not decide what the user said.
 */
const isStrong = ({ value }: Secret): boolean => value.length >= 12 && hasDigitAndLetter(value)
/** Selects the revealed values that are also removed from the user's words. */
export const strongSecrets = (telling: ReadonlyArray<Secret>): ReadonlyArray<Secret> => telling.filter(isStrong)
/** Maximum number of values searched for in the written texts of a conversation, and in all of it: each costs one pass over the whole. */
export const maxDistinctiveSecrets = { written: 2_000, everywhere: 200 }

/** Returns the values of these secrets that are recognizable without their names, longest first. */
export const distinctiveSecrets = (
  secrets: Iterable<Secret>,
  maxSecrets = maxDistinctiveSecrets.written
): ReadonlyArray<Secret> => {
  const distinctive = new Map<string, Secret>()
  for (const { kind, value } of secrets) {
    // The stop of its sentence does not stand wherever the value does.
    const secret = { kind, value: value.replace(/[.,;:!?]+$/, "") }
    if (isDistinctive(secret)) distinctive.set(secret.value, secret)
  }
  return [...distinctive.values()].sort((one, other) => other.value.length - one.value.length).slice(0, maxSecrets)
}

/** Removes these values from a text: what a name revealed in one place is also a secret where it stands alone. */
export function* withoutValues(text: string, secrets: ReadonlyArray<Secret>): Work.SlicedWork<string> {
  let result = text
  for (const { kind, value } of secrets) {
    if (result.includes(value)) result = result.replaceAll(value, () => redacted(kind))
    yield
  }
  return result
}

/**
 * Replaces each secret in a text by its kind, and each of these values that are secrets elsewhere. Deterministic, and applying it
 * again changes nothing.
 */
export const redact = (text: string, values: ReadonlyArray<Secret> = []): string =>
  Work.runSync(redacting(text, values)).text

/**
 * Returns characters `start` to `end` of a text without the secrets of the whole text, including halves of secrets at the borders,
 * and without these values.
 */
export const redactSpan = (text: string, start: number, end: number, values: ReadonlyArray<Secret> = []): string =>
  redact(
    without(
      text.slice(start, end),
      secretsIn(text)
        .filter((secret) => secret.start < end && secret.end > start)
        .map((secret) => ({
          ...secret,
          start: Math.max(secret.start, start) - start,
          end: Math.min(secret.end, end) - start
        }))
    ),
    values
  )

/** Number of removed secrets by kind. */
type SecretCounts = Readonly<Record<Kind, number>>

/** Counts secrets by kind, in alphabetical order of the kinds. */
export const countSecrets = (secrets: Iterable<Secret>): SecretCounts => {
  const counts = new Map<Kind, number>()
  for (const { kind } of secrets) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return Object.fromEntries([...counts].sort(([one], [other]) => (one < other ? -1 : 1)))
}
