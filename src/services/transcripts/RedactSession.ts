import { Effect, Result } from "effect"
import { decodeLine, encodeLine } from "../../domain/session/LogFormat.ts"
import { applyEvent, emptySession, entriesOf, type SessionEvent } from "../../domain/session/Session.ts"
import { maxLogDepth, parsedOrUndefined, parseJson } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { type SecretSearch, SessionSecrets } from "../../domain/transcripts/RecordSecrets.ts"
import { HandleIndex, makeEntry } from "../session/EntryBuilder.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter, TokenCountError } from "../tokens/TokenCounter.ts"
import type { Loaded } from "./LoadedTranscript.ts"

/** Makes copies of sessions without their secrets. */

/** A copy, and how many places were replaced. */
export interface Redacted<A> {
  readonly copy: A
  readonly replaced: number
}

/** Replaces the secrets in the text of a file: in each line that is JSON, in the whole document, or in the text as it is. */
export const redactFile = Effect.fn("RedactSession.redactFile")(function* (
  text: string,
  secrets: SessionSecrets
): Effect.fn.Return<Redacted<string>> {
  const isDocument = parsedOrUndefined(text) !== undefined && text.trimEnd().includes("\n")
  const lines = isDocument ? [text] : text.split("\n")
  const copy: Array<string> = []
  let replaced = 0
  for (const line of lines) {
    if (parsedOrUndefined(line) === undefined) {
      const made = yield* Work.run(secrets.replaceText(line))
      copy.push(made.text)
      replaced += made.replaced
    } else {
      const made = yield* Work.run(secrets.replace(line))
      copy.push(made.json)
      replaced += made.replaced
    }
  }
  return { copy: copy.join("\n"), replaced }
})

/** Collects the secrets of a session's events, to replace them. */
export const secretsIn = Effect.fn("RedactSession.secretsIn")(function* (
  events: ReadonlyArray<SessionEvent>,
  search: SecretSearch
): Effect.fn.Return<SessionSecrets> {
  const secrets = new SessionSecrets(search)
  for (const event of events) yield* Work.run(secrets.collect(encodeLine(event)))
  secrets.settle()
  return secrets
})

/**
 * Returns a conversation without its secrets, personal data, home folders and names of accounts: those whose home folders it
 * names, and those of `search`. Also how many places were replaced, and a function that replaces them in another text.
 */
export const redactLoaded = Effect.fn("RedactSession.redactLoaded")(function* (loaded: Loaded, search: SecretSearch) {
  const secrets = yield* secretsIn(loaded.events, { ...search, accounts: search.accounts ?? [] })
  const { copy, replaced } = yield* redactEvents(loaded.events, secrets)
  const session = copy.reduce(applyEvent, emptySession)
  return {
    loaded: { ...loaded, events: copy, session, transcript: undefined } satisfies Loaded,
    replaced,
    inText: (text: string) => Work.runSync(secrets.replaceText(text)).text
  }
})

const handleForm = /h_[a-z2-7]{10,52}/g

/**
 * Replaces the secrets in the events of a session. What was replaced cannot be recalled from the copy: the parts have new bytes,
 * and the handles that name them are those of the new bytes, wherever they are mentioned.
 */
export const redactEvents = Effect.fn("RedactSession.redactEvents")(function* (
  events: ReadonlyArray<SessionEvent>,
  secrets: SessionSecrets
): Effect.fn.Return<Redacted<ReadonlyArray<SessionEvent>>, TokenCountError, TokenCounter | TempStore> {
  const handles = new Map<string, string>()
  const index = new HandleIndex()
  const lines: Array<string> = []
  let replaced = 0
  for (const event of events) {
    const made = yield* Work.run(secrets.replace(encodeLine(event)))
    lines.push(made.json)
    replaced += made.replaced
    for (const [at, entry] of made.replaced === 0 ? [] : entriesOf(decoded(made.json)).entries()) {
      const fresh = yield* makeEntry(entry, entry.id, index)
      const before = entriesOf(event)[at]?.handles ?? []
      for (const [part, handle] of before.entries()) {
        const now = fresh.handles[part]
        if (now !== undefined && now !== handle) handles.set(handle, now)
      }
    }
    yield* Effect.yieldNow
  }
  if (replaced === 0) return { copy: events, replaced }
  const renamed = (line: string) => line.replace(handleForm, (handle) => handles.get(handle) ?? handle)
  return { copy: lines.map((line) => decoded(renamed(line))), replaced }
})

/** Reads back an event whose strings alone have changed. */
const decoded = (line: string): SessionEvent => {
  const made = Result.flatMap(
    Result.mapError(parseJson(line, maxLogDepth), () => "not JSON"),
    (value) => decodeLine(value)
  )
  if (Result.isFailure(made) || made.success === undefined) throw new Error("a redacted event is no event")
  return made.success.event
}
