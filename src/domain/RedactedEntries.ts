import type { Content, Part } from "./Content.ts"
import type { Entry } from "./Conversation.ts"
import { finding, type Finding, type Kind, redacted, redacting } from "./Redaction.ts"
import type { Work } from "./Work.ts"

/**
 * Messages without the secrets in them: what snapshots are written from, and what a summarizing model is sent. Handles stay
 * those of the whole messages, so that whoever may can recall what was taken out. The messages themselves are not changed.
 */

interface RedactedPart {
  readonly part: Part
  readonly kinds: ReadonlyArray<Kind>
}

const nothing: ReadonlyArray<Kind> = []

/** A value of JSON written out with its strings as they are, and where in the text each of them stands. */
const writtenOut = (value: unknown): { readonly text: string; readonly starts: ReadonlyArray<number> } => {
  const pieces: Array<string> = []
  const starts: Array<number> = []
  let length = 0
  const add = (piece: string) => {
    pieces.push(piece)
    length += piece.length
  }
  const write = (inner: unknown): void => {
    if (typeof inner === "string") {
      add('"')
      starts.push(length)
      add(inner)
      add('"')
    } else if (Array.isArray(inner)) {
      inner.forEach((one, index) => {
        if (index > 0) add(", ")
        write(one)
      })
    } else if (typeof inner === "object" && inner !== null) {
      Object.entries(inner).forEach(([key, one], index) => {
        if (index > 0) add(", ")
        add(`"${key}": `)
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
export function* redactedJson(value: unknown): Work<{ readonly value: unknown; readonly kinds: ReadonlyArray<Kind> }> {
  const { starts, text } = writtenOut(value)
  if (starts.length === 0) return { value, kinds: nothing }
  const found = yield* finding(text)
  if (found.length === 0) return { value, kinds: nothing }
  let at = 0
  let first = 0
  const rebuilt = (inner: unknown): unknown => {
    if (typeof inner === "string") {
      const start = starts[at] ?? 0
      at += 1
      while ((found[first]?.end ?? Infinity) <= start) first += 1
      let last = first
      while ((found[last]?.start ?? Infinity) < start + inner.length) last += 1
      return last === first ? inner : cleaned(inner, start, found.slice(first, last))
    }
    if (Array.isArray(inner)) return inner.map(rebuilt)
    if (typeof inner === "object" && inner !== null) {
      return Object.fromEntries(Object.entries(inner).map(([key, one]) => [key, rebuilt(one)]))
    }
    return inner
  }
  return { value: rebuilt(value), kinds: found.map(({ kind }) => kind) }
}

/** What was found stays known as long as the part does: a conversation is compressed many times. */
const known = new WeakMap<Part, RedactedPart>()

/** A part without the secrets in its text, its call's arguments or its answer. */
export function* redactedPart(part: Part): Work<RedactedPart> {
  const before = known.get(part)
  if (before !== undefined) return before
  const kinds: Array<Kind> = []
  let clean = part
  if (typeof part.text === "string" && part.text !== "") {
    const made = yield* redacting(part.text)
    if (made.kinds.length > 0) clean = { ...clean, text: made.text }
    kinds.push(...made.kinds)
  }
  if (part.functionCall?.args !== undefined) {
    const args = yield* redactedJson(part.functionCall.args)
    if (args.kinds.length > 0) clean = { ...clean, functionCall: { ...part.functionCall, args: args.value } }
    kinds.push(...args.kinds)
  }
  if (part.functionResponse?.response !== undefined) {
    const { kinds: found, value } = yield* redactedJson(part.functionResponse.response)
    if (found.length > 0) clean = { ...clean, functionResponse: { ...part.functionResponse, response: value } }
    kinds.push(...found)
  }
  const made = { part: clean, kinds }
  known.set(part, made)
  if (clean !== part) known.set(clean, { part: clean, kinds: nothing })
  return made
}

/** A message without secrets; the very same where it holds none. */
export function* redactedContent(
  content: Content
): Work<{ readonly content: Content; readonly kinds: ReadonlyArray<Kind> }> {
  const parts: Array<Part> = []
  const kinds: Array<Kind> = []
  for (const part of content.parts) {
    const made = yield* redactedPart(part)
    parts.push(made.part)
    kinds.push(...made.kinds)
    yield 20
  }
  return kinds.length === 0 && parts.every((part, at) => part === content.parts[at])
    ? { content, kinds }
    : { content: { ...content, parts }, kinds }
}

/** Entries without secrets, and what was taken out of them. */
export function* redactedEntries(
  entries: ReadonlyArray<Entry>
): Work<{ readonly entries: ReadonlyArray<Entry>; readonly kinds: ReadonlyArray<Kind> }> {
  const clean: Array<Entry> = []
  const kinds: Array<Kind> = []
  for (const entry of entries) {
    const made = yield* redactedContent(entry.content)
    kinds.push(...made.kinds)
    if (made.content === entry.content) clean.push(entry)
    else {
      // The JSON that a part was read from still holds what was taken out of the part.
      const { source: _, ...rest } = entry
      clean.push({ ...rest, content: made.content })
    }
  }
  return { entries: clean, kinds }
}
