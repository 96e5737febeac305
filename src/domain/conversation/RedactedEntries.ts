/**
 * Redacts secrets from messages, for snapshots and for requests to a summarizing model. The handles are those of the whole
 * messages, so a reader with access can recall the redacted content. The messages themselves do not change.
 */

import { type Content, isPart, type Part } from "../content/Content.ts"
import type { Finding } from "../text/Finding.ts"
import {
  finding,
  maxDistinctiveSecrets,
  redacted,
  redacting,
  type Secret,
  strongSecrets,
  distinctiveSecrets,
  withoutValues
} from "../text/Redaction.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import type { Entry } from "./Conversation.ts"

interface RedactedPart {
  readonly part: Part
  readonly secrets: ReadonlyArray<Secret>
}

const nothing: ReadonlyArray<Secret> = []

/** Whether a field holds bytes or a signature. Those have to stay unchanged, and no model reads them. */
const isCarried = (key: string, holder: object): boolean =>
  key === "thoughtSignature" || (key === "data" && "mimeType" in holder)

/** Writes out a JSON value with its strings unescaped. Returns the text, and where each key, string and number begins in it. */
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
      add("[")
      inner.forEach((one, index) => {
        if (index > 0) add(", ")
        write(one)
      })
      add("]")
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

/** Redacts the findings in a string that begins at `start`. */
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

/** Redacts secrets in the strings of a JSON value. Field names count as context. */
function* redactedJson(
  value: unknown
): SlicedWork<{ readonly value: unknown; readonly secrets: ReadonlyArray<Secret> }> {
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

/** Caches the result per part, because a conversation is compressed many times. */
const partCache = new WeakMap<Part, RedactedPart>()

/** Returns the redacted value as a part. A value that is no longer a valid part is replaced as a whole. */
const asPart = (value: unknown): Part => (isPart(value) ? value : { text: redacted("part") })

/** Redacts secrets in a part: in its text, call, response, code, address and any other string. */
function* redactedPart(part: Part): SlicedWork<RedactedPart> {
  const before = partCache.get(part)
  if (before !== undefined) return before
  const secrets: Array<Secret> = []
  let clean = part
  const { text, ...rest } = part
  const others = yield* redactedJson(rest)
  if (others.secrets.length > 0) clean = { ...asPart(others.value), ...(text === undefined ? {} : { text }) }
  for (const each of others.secrets) secrets.push(each)
  if (typeof text === "string" && text !== "") {
    const made = yield* redacting(text)
    if (made.secrets.length > 0) clean = { ...clean, text: made.text }
    for (const each of made.secrets) secrets.push(each)
  }
  const made = { part: clean, secrets }
  partCache.set(part, made)
  if (clean !== part) partCache.set(clean, { part: clean, secrets: nothing })
  return made
}

/** Redacts secrets in a message. Returns the same object when it contains none. */
function* redactedContent(
  content: Content
): SlicedWork<{ readonly content: Content; readonly secrets: ReadonlyArray<Secret> }> {
  const parts: Array<Part> = []
  const secrets: Array<Secret> = []
  for (const part of content.parts) {
    const made = yield* redactedPart(part)
    parts.push(made.part)
    for (const each of made.secrets) secrets.push(each)
    yield
  }
  return secrets.length === 0 && parts.every((part, at) => part === content.parts[at])
    ? { content, secrets }
    : { content: { ...content, parts }, secrets }
}

function* withoutElsewhere(value: unknown, secrets: ReadonlyArray<Secret>): SlicedWork<unknown> {
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

/** Removes these values from a part. Returns the same object when it contains none of them. */
function* partWithout(part: Part, secrets: ReadonlyArray<Secret>): SlicedWork<Part> {
  const { text } = writtenOut(part)
  yield
  return secrets.some(({ value }) => text.includes(value)) ? asPart(yield* withoutElsewhere(part, secrets)) : part
}

/** Returns the secrets of these messages, reusing the results of earlier searches. */
export function* secretsOf(contents: ReadonlyArray<Content>): SlicedWork<ReadonlyArray<Secret>> {
  const secrets: Array<Secret> = []
  for (const { parts } of contents) {
    for (const part of parts) {
      for (const secret of (yield* redactedPart(part)).secrets) secrets.push(secret)
      yield
    }
  }
  return secrets
}

/** Redacts messages, and reports the secrets. A value that is recognised in one place is removed everywhere. */
export function* redactedContents(
  contents: ReadonlyArray<Content>,
  more: ReadonlyArray<Secret> = []
): SlicedWork<{ readonly contents: ReadonlyArray<Content>; readonly secrets: ReadonlyArray<Secret> }> {
  const clean: Array<Content> = []
  const secrets: Array<Secret> = []
  for (const content of contents) {
    const made = yield* redactedContent(content)
    clean.push(made.content)
    for (const secret of made.secrets) secrets.push(secret)
  }
  const telling = distinctiveSecrets([...more, ...secrets], maxDistinctiveSecrets.everywhere)
  if (telling.length === 0) return { contents: clean, secrets }
  const strong = strongSecrets(telling)
  const everywhere: Array<Content> = []
  for (const content of clean) {
    const parts: Array<Part> = []
    for (const part of content.parts) {
      // A value from tool output must not redact the user's words.
      const other = yield* partWithout(part, content.role === "user" && part.text !== undefined ? strong : telling)
      if (other !== part) partCache.set(other, { part: other, secrets: nothing })
      parts.push(other)
    }
    everywhere.push(parts.every((part, at) => part === content.parts[at]) ? content : { ...content, parts })
  }
  return { contents: everywhere, secrets }
}

/** Redacts entries, and reports the secrets. */
export function* redactedEntries(
  entries: ReadonlyArray<Entry>,
  more: ReadonlyArray<Secret> = []
): SlicedWork<{ readonly entries: ReadonlyArray<Entry>; readonly secrets: ReadonlyArray<Secret> }> {
  const { contents, secrets } = yield* redactedContents(
    entries.map(({ content }) => content),
    more
  )
  const clean = entries.map((entry, at): Entry => {
    const content = contents[at] ?? entry.content
    if (content === entry.content) return entry
    // The source JSON of the part would still contain the secret.
    const { source: _, ...rest } = entry
    return { ...rest, content }
  })
  return { entries: clean, secrets }
}
