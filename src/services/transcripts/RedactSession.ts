/** Makes copies of sessions without their secrets. */

import { Effect, Result, Schema } from "effect"
import { decodeLine, encodeLine } from "../../domain/session/LogFormat.ts"
import { applyEvent, emptySession, entriesOf, type SessionEvent } from "../../domain/session/Session.ts"
import { maxLogDepth, parsedOrUndefined, parseJson } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import type { Replaced, SecretSearch, SessionSecrets } from "../../domain/transcripts/RecordSecrets.ts"
import { HandleIndex, makeEntry } from "../session/EntryBuilder.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter, TokenCountError } from "../tokens/TokenCounter.ts"
import { secretsOfEvents } from "./FindSecrets.ts"
import type { Loaded } from "./LoadedTranscript.ts"

/** A secret cannot be removed from a session. The message says where it is, and shows no value. */
export class RedactionError extends Schema.TaggedError<RedactionError>()("RedactionError", {
  message: Schema.String
}) {}

/** A part of a copy in which no secret can be recognized for certain. */
export interface Unsearched {
  /** The line of the file, or the message of the conversation: `line 12`. */
  readonly place: string
  /** Bytes are copied as they are. A broken record is searched as plain text, in which escapes can hide a secret. */
  readonly what: "bytes" | "broken record"
}

/** A copy, how many places were replaced, and what could not be searched. */
export interface Redacted<A> {
  readonly copy: A
  readonly replaced: number
  readonly unsearched: ReadonlyArray<Unsearched>
}

const notRemoved = (place: string) =>
  new RedactionError({
    message: `a secret in ${place} cannot be removed: it is part of a signature or of the bytes of a file`
  })

const isRecord = (line: string): boolean => /^\s*[{[]/.test(line) && parsedOrUndefined(line) !== undefined

/** A record of a file, or what is between two records. */
interface FilePiece {
  readonly text: string
  /** The line at which it begins, from 1. */
  readonly line: number
  readonly isRecord: boolean
}

const piecesOf = (text: string): ReadonlyArray<FilePiece> => {
  if (parsedOrUndefined(text) !== undefined) return [{ text, line: 1, isRecord: true }]
  const pieces: Array<{ text: string; readonly line: number; readonly isRecord: boolean }> = []
  for (const [index, line] of text.split("\n").entries()) {
    const last = pieces.at(-1)
    const isJson = isRecord(line)
    if (isJson || last === undefined || last.isRecord) pieces.push({ text: line, line: index + 1, isRecord: isJson })
    else last.text += `\n${line}`
  }
  return pieces
}

/** Replaces the secrets in a text that is no whole record: in the strings that it has, if it is part of one, then as it is. */
function* replaceInText(text: string, secrets: SessionSecrets): Work.SlicedWork<Replaced> {
  if (!text.startsWith("{")) return yield* secrets.replace(text, false)
  const inStrings = yield* secrets.replace(text)
  const rest = yield* secrets.replace(inStrings.text, false)
  return { ...rest, replaced: inStrings.replaced + rest.replaced }
}

/**
 * Replaces the secrets in the text of a file: in each line that is a record, in the whole document, or in the text as it is.
 * Fails when a value that is a secret is still there.
 */
export const redactFile = Effect.fn("RedactSession.redactFile")(function* (
  text: string,
  secrets: SessionSecrets
): Effect.fn.Return<Redacted<string>, RedactionError> {
  const pieces = piecesOf(text)
  const hasRecords = pieces.some((piece) => piece.isRecord)
  const copy: Array<string> = []
  const unsearched: Array<Unsearched> = []
  let replaced = 0
  for (const piece of pieces) {
    const place = `line ${piece.line}`
    const made = yield* Work.run(piece.isRecord ? secrets.replace(piece.text) : replaceInText(piece.text, secrets))
    if (secrets.isRevealedBy(made.text)) return yield* notRemoved(place)
    copy.push(made.text)
    replaced += made.replaced
    if (made.hasBytes) unsearched.push({ place, what: "bytes" })
    // The last line can still be being written.
    const isBroken = hasRecords && !piece.isRecord && piece.text.trim() !== "" && piece !== pieces.at(-1)
    if (isBroken) unsearched.push({ place, what: "broken record" })
  }
  return { copy: copy.join("\n"), replaced, unsearched }
})

/**
 * Returns a conversation without its secrets, personal data, home folders and names of accounts: those whose home folders it
 * names, and those of `search`. Also how many places were replaced, and a function that replaces them in another text.
 */
export const redactLoaded = Effect.fn("RedactSession.redactLoaded")(function* (loaded: Loaded, search: SecretSearch) {
  const { secrets } = yield* secretsOfEvents(loaded.events, "", { ...search, accounts: search.accounts ?? [] })
  const { copy, replaced, unsearched } = yield* redactEvents(loaded.events, secrets)
  const session = copy.reduce(applyEvent, emptySession)
  return {
    loaded: { ...loaded, events: copy, session, transcript: undefined } satisfies Loaded,
    replaced,
    unsearched,
    inText: (text: string) => Work.runSync(secrets.replace(text, false)).text
  }
})

const handleForm = /h_[a-z2-7]{10,52}/g

/**
 * Replaces the secrets in the events of a session. What was replaced cannot be recalled from the copy: the parts have new bytes,
 * and the handles that name them are those of the new bytes, wherever they are mentioned. Fails when a secret is still there, or
 * when a record without it is none.
 */
export const redactEvents = Effect.fn("RedactSession.redactEvents")(function* (
  events: ReadonlyArray<SessionEvent>,
  secrets: SessionSecrets
): Effect.fn.Return<Redacted<ReadonlyArray<SessionEvent>>, RedactionError | TokenCountError, TokenCounter | TempStore> {
  const handles = new Map<string, string>()
  const index = new HandleIndex()
  const made: Array<{ readonly place: string; readonly text: string }> = []
  const unsearched: Array<Unsearched> = []
  let replaced = 0
  let messages = 0
  for (const event of events) {
    messages += entriesOf(event).length
    const place = `message ${messages}`
    const one = yield* Work.run(secrets.replace(encodeLine(event)))
    if (secrets.isRevealedBy(one.text)) return yield* notRemoved(place)
    if (one.hasBytes) unsearched.push({ place, what: "bytes" })
    made.push({ place, text: one.text })
    replaced += one.replaced
    for (const [at, entry] of one.replaced === 0 ? [] : entriesOf(yield* decoded(one.text, place)).entries()) {
      const fresh = yield* makeEntry(entry, entry.id, index)
      const before = entriesOf(event)[at]?.handles ?? []
      for (const [part, handle] of before.entries()) {
        const now = fresh.handles[part]
        if (now !== undefined) handles.set(handle, now)
      }
    }
    yield* Effect.yieldNow
  }
  if (replaced === 0) return { copy: events, replaced, unsearched }
  const renamed = (line: string) => line.replace(handleForm, (handle) => handles.get(handle) ?? handle)
  const copy = yield* Effect.forEach(made, ({ place, text }) => decoded(renamed(text), place))
  return { copy, replaced, unsearched }
})

/** Reads back an event whose strings and numbers alone have changed. */
const decoded = (line: string, place: string): Effect.Effect<SessionEvent, RedactionError> => {
  const made = Result.flatMap(
    Result.mapError(parseJson(line, maxLogDepth), () => "not JSON"),
    decodeLine
  )
  return Result.isFailure(made) || made.success === undefined
    ? new RedactionError({ message: `a secret in ${place} cannot be removed: its record could not be read without it` })
    : Effect.succeed(made.success.event)
}
