import { Schema } from "effect"
import { type Content, type Part, PartShape } from "./Content.ts"
import type { Entry } from "./Conversation.ts"
import {
  finding,
  type Finding,
  mostTelling,
  redacted,
  redacting,
  type Secret,
  strongOf,
  tellingOf,
  withoutValues
} from "./Redaction.ts"
import type { Work } from "./Work.ts"

/**
 * Messages without the secrets in them: what snapshots are written from, and what a summarizing model is sent. Handles stay
 * those of the whole messages, so that whoever may can recall what was taken out. The messages themselves are not changed.
 */

interface RedactedPart {
  readonly part: Part
  readonly secrets: ReadonlyArray<Secret>
}

const nothing: ReadonlyArray<Secret> = []

/** Bytes and signatures: nobody reads them, and they have to stay as they are. */
const isCarried = (key: string, holder: object): boolean =>
  key === "thoughtSignature" || (key === "data" && "mimeType" in holder)

/** A value of JSON written out with its strings as they are, and where in the text each key, string and number stands. */
const writtenOut = (value: unknown): { readonly text: string; readonly starts: ReadonlyArray<number> } => {
  const pieces: Array<string> = []
  const starts: Array<number> = []
  let length = 0
  const add = (piece: string) => {
    pieces.push(piece)
    length += piece.length
  }
  const put = (piece: string) => {
    starts.push(length)
    add(piece)
  }
  const write = (inner: unknown): void => {
    if (typeof inner === "string") {
      add('"')
      put(inner)
      add('"')
    } else if (typeof inner === "number") {
      put(String(inner))
    } else if (Array.isArray(inner)) {
      inner.forEach((one, index) => {
        if (index > 0) add(", ")
        write(one)
      })
    } else if (typeof inner === "object" && inner !== null) {
      Object.entries(inner).forEach(([key, one], index) => {
        if (isCarried(key, inner)) return
        if (index > 0) add(", ")
        add('"')
        put(key)
        add('": ')
        write(one)
      })
    }
  }
  write(value)
  return { text: pieces.join(""), starts }
}

/** What of a string's characters, from `start` on, was found; the rest stays. */
const cleaned = (value: string, start: number, found: ReadonlyArray<Finding>): string => {
  let result = ""
  let from = 0
  for (const one of found) {
    const [begin, end] = [Math.max(0, one.start - start), Math.min(value.length, one.end - start)]
    if (begin >= end) continue
    result += value.slice(from, begin) + redacted(one.kind)
    from = end
  }
  return result + value.slice(from)
}

/** A value of JSON without the secrets in its strings; what the name of a field tells counts too. */
export function* redactedJson(
  value: unknown
): Work<{ readonly value: unknown; readonly secrets: ReadonlyArray<Secret> }> {
  const { starts, text } = writtenOut(value)
  if (starts.length === 0) return { value, secrets: nothing }
  const found = yield* finding(text)
  if (found.length === 0) return { value, secrets: nothing }
  let at = 0
  let first = 0
  const next = (written: string): string => {
    const start = starts[at] ?? 0
    at += 1
    while ((found[first]?.end ?? Infinity) <= start) first += 1
    let last = first
    while ((found[last]?.start ?? Infinity) < start + written.length) last += 1
    return last === first ? written : cleaned(written, start, found.slice(first, last))
  }
  const rebuilt = (inner: unknown): unknown => {
    if (typeof inner === "string") return next(inner)
    if (typeof inner === "number") {
      const written = next(String(inner))
      return written === String(inner) ? inner : written
    }
    if (Array.isArray(inner)) return inner.map(rebuilt)
    if (typeof inner === "object" && inner !== null) {
      return Object.fromEntries(
        Object.entries(inner).map(([key, one]) => (isCarried(key, inner) ? [key, one] : [next(key), rebuilt(one)]))
      )
    }
    return inner
  }
  return {
    value: rebuilt(value),
    secrets: found.map(({ end, kind, start }) => ({ kind, value: text.slice(start, end) }))
  }
}

/** What was found stays known as long as the part does: a conversation is compressed many times. */
const known = new WeakMap<Part, RedactedPart>()

const isPart = Schema.is(PartShape)
/** What was rebuilt, as a part: should it be none any more, nothing of it is shown. */
const asPart = (value: unknown): Part => (isPart(value) ? value : { text: redacted("part") })

/** A part without the secrets in it: in its text, its call, its answer, its code, its address, whatever has letters. */
export function* redactedPart(part: Part): Work<RedactedPart> {
  const before = known.get(part)
  if (before !== undefined) return before
  const secrets: Array<Secret> = []
  let clean = part
  const { text, ...rest } = part
  const others = yield* redactedJson(rest)
  if (others.secrets.length > 0) clean = { ...asPart(others.value), ...(text === undefined ? {} : { text }) }
  secrets.push(...others.secrets)
  if (typeof text === "string" && text !== "") {
    const made = yield* redacting(text)
    if (made.secrets.length > 0) clean = { ...clean, text: made.text }
    secrets.push(...made.secrets)
  }
  const made = { part: clean, secrets }
  known.set(part, made)
  if (clean !== part) known.set(clean, { part: clean, secrets: nothing })
  return made
}

/** A message without secrets; the very same where it holds none. */
function* redactedContent(
  content: Content
): Work<{ readonly content: Content; readonly secrets: ReadonlyArray<Secret> }> {
  const parts: Array<Part> = []
  const secrets: Array<Secret> = []
  for (const part of content.parts) {
    const made = yield* redactedPart(part)
    parts.push(made.part)
    secrets.push(...made.secrets)
    yield 20
  }
  return secrets.length === 0 && parts.every((part, at) => part === content.parts[at])
    ? { content, secrets }
    : { content: { ...content, parts }, secrets }
}

function* withoutElsewhere(value: unknown, secrets: ReadonlyArray<Secret>): Work<unknown> {
  if (typeof value === "string") return yield* withoutValues(value, secrets)
  if (Array.isArray(value)) {
    const list: Array<unknown> = []
    for (const one of value) list.push(yield* withoutElsewhere(one, secrets))
    return list
  }
  if (typeof value !== "object" || value === null) return value
  const fields: Array<readonly [string, unknown]> = []
  for (const [key, one] of Object.entries(value)) {
    fields.push(
      isCarried(key, value) ? [key, one] : [yield* withoutValues(key, secrets), yield* withoutElsewhere(one, secrets)]
    )
  }
  return Object.fromEntries(fields)
}

/** A part in which none of these values stands; the very same where none did. */
function* partWithout(part: Part, secrets: ReadonlyArray<Secret>): Work<Part> {
  const { text } = writtenOut(part)
  yield (text.length * secrets.length) / 8
  return secrets.some(({ value }) => text.includes(value)) ? asPart(yield* withoutElsewhere(part, secrets)) : part
}

/** The secrets of these messages, of which some were searched before. */
export function* secretsOf(contents: ReadonlyArray<Content>): Work<ReadonlyArray<Secret>> {
  const secrets: Array<Secret> = []
  for (const { parts } of contents) {
    for (const part of parts) {
      for (const secret of (yield* redactedPart(part)).secrets) secrets.push(secret)
      yield 4
    }
  }
  return secrets
}

/** Messages without secrets, and what was taken out of them. What a name tells of one place is left out everywhere. */
export function* redactedContents(
  contents: ReadonlyArray<Content>,
  more: ReadonlyArray<Secret> = []
): Work<{ readonly contents: ReadonlyArray<Content>; readonly secrets: ReadonlyArray<Secret> }> {
  const clean: Array<Content> = []
  const secrets: Array<Secret> = []
  for (const content of contents) {
    const made = yield* redactedContent(content)
    clean.push(made.content)
    for (const secret of made.secrets) secrets.push(secret)
  }
  const telling = tellingOf([...more, ...secrets], mostTelling.everywhere)
  if (telling.length === 0) return { contents: clean, secrets }
  const strong = strongOf(telling)
  const everywhere: Array<Content> = []
  for (const content of clean) {
    const parts: Array<Part> = []
    for (const part of content.parts) {
      // What a tool printed does not rule what the user said.
      const other = yield* partWithout(part, content.role === "user" && part.text !== undefined ? strong : telling)
      if (other !== part) known.set(other, { part: other, secrets: nothing })
      parts.push(other)
    }
    everywhere.push(parts.every((part, at) => part === content.parts[at]) ? content : { ...content, parts })
  }
  return { contents: everywhere, secrets }
}

/** Entries without secrets, and what was taken out of them. */
export function* redactedEntries(
  entries: ReadonlyArray<Entry>,
  more: ReadonlyArray<Secret> = []
): Work<{ readonly entries: ReadonlyArray<Entry>; readonly secrets: ReadonlyArray<Secret> }> {
  const { contents, secrets } = yield* redactedContents(
    entries.map(({ content }) => content),
    more
  )
  const clean = entries.map((entry, at): Entry => {
    const content = contents[at] ?? entry.content
    if (content === entry.content) return entry
    // The JSON that a part was read from still holds what was taken out of the part.
    const { source: _, ...rest } = entry
    return { ...rest, content }
  })
  return { entries: clean, secrets }
}
