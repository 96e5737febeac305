/** Makes the events of a session from the conversation of another agent. */

import { Effect } from "effect"
import { handoverOf } from "../../domain/compression/handover/Extractive.ts"
import type { Hash } from "../../domain/content/Handle.ts"
import {
  compressed,
  type Conversation,
  type Draft,
  type Entry,
  type EntryId,
  entryId,
  entryTokens,
  type Patch,
  sum,
  view,
  viewTokens
} from "../../domain/conversation/Conversation.ts"
import { type BoundedResult, boundedPart } from "../../domain/conversation/ToolOutputBound.ts"
import {
  applyEvent,
  emptySession,
  entriesOf,
  logVersion,
  type Session,
  type SessionEvent
} from "../../domain/session/Session.ts"
import { encode } from "../../domain/text/Bytes.ts"
import { redact } from "../../domain/text/Redaction.ts"
import { run } from "../../domain/text/SlicedWork.ts"
import { estimatorVersion, TokenCount } from "../../domain/tokens/Tokens.ts"
import { type Compaction, draftsOf, type Step, type Transcript } from "../../domain/transcripts/Transcript.ts"
import { HandleIndex, makeEntry } from "../session/EntryBuilder.ts"
import { TempStore } from "../session/TempStore.ts"
import { TokenCounter, type TokenCountError } from "../tokens/TokenCounter.ts"

/** Returns the patch of a compaction: the inserted messages in place of everything before the first kept message. */
const patchOf = (
  conversation: Conversation,
  messages: ReadonlyMap<EntryId, number>,
  keptFrom: number | undefined,
  insert: ReadonlyArray<Entry>
): Patch => {
  const shown = view(conversation).filter((item) => item.entry.author !== "environment")
  const kept = keptFrom === undefined ? -1 : shown.findIndex((item) => (messages.get(item.entry.id) ?? -1) >= keptFrom)
  const dropped = kept < 0 ? shown : shown.slice(0, kept)
  const from = dropped[0]?.entry.id
  const to = dropped.at(-1)?.entry.id
  return {
    ...(from === undefined || to === undefined ? {} : { drop: { from, to } }),
    insert,
    shorten: []
  }
}

const compaction = (
  conversation: Conversation,
  messages: ReadonlyMap<EntryId, number>,
  { keptFrom, trigger }: Compaction,
  insert: ReadonlyArray<Entry>,
  at: number
): SessionEvent => {
  const patch = patchOf(conversation, messages, keptFrom, insert)
  return {
    _tag: "Compressed",
    at,
    status: "COMPRESSED",
    strategy: "imported",
    trigger,
    before: TokenCount.make(viewTokens(conversation)),
    after: TokenCount.make(viewTokens(compressed(conversation, patch))),
    patch
  }
}

/** Tokens of the handover that stands for an encrypted summary. */
const handoverTokens = 4_000

/** Returns the messages of a step, with a handover of the session in the place of a summary that only its provider can read. */
const draftsIn = Effect.fnUntraced(function* ({ conversation }: Session, one: Step, cwd: string | undefined) {
  if (one._tag === "Message" || one.encryptedAt === undefined) return draftsOf(one)
  const shown = view(conversation).map(({ entry }) => entry)
  const text = yield* run(handoverOf(shown, { budget: handoverTokens, cwd }))
  const at = shown.at(-1)?.at
  const summary: Draft = {
    content: { role: "user", parts: [{ text: redact(text) }] },
    author: "summary",
    ...(at === undefined ? {} : { at })
  }
  return one.insert.toSpliced(one.encryptedAt, 0, summary)
})

/** Returns an entry with its results as the agent's model saw them. Their whole texts stay in it. */
const asShown = Effect.fnUntraced(function* (
  entry: Entry,
  shown: ReadonlyMap<string, string>
): Effect.fn.Return<Entry, TokenCountError, TokenCounter> {
  const counter = yield* TokenCounter
  const bounded: Record<string, BoundedResult> = {}
  for (const [index, part] of entry.content.parts.entries()) {
    const text = shown.get(part.functionResponse?.id ?? "")
    const handle = entry.handles[index]
    if (text === undefined || handle === undefined) continue
    const tokens = sum(yield* counter.count([boundedPart(part, handle, { text })]))
    if (tokens < (entry.tokens[index] ?? 0)) bounded[String(index)] = { text, tokens: TokenCount.make(tokens) }
  }
  return Object.keys(bounded).length === 0 ? entry : { ...entry, bounded }
})

const base32 = "abcdefghijklmnopqrstuvwxyz234567"

/**
 * Returns a UUIDv7 that is always the same for the same time and bytes, so that reading a file twice gives the same session.
 */
const sessionId = (at: number, hash: Hash): string => {
  const time = Math.max(0, Math.floor(at)).toString(16).padStart(12, "0").slice(-12)
  const random = Array.from(hash, (char) => (base32.indexOf(char) % 16).toString(16)).join("")
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6, 18)}`
}

const startedOf = Effect.fnUntraced(function* (
  transcript: Transcript,
  events: ReadonlyArray<SessionEvent>
): Effect.fn.Return<Extract<SessionEvent, { readonly _tag: "Started" }>, never, TempStore> {
  const store = yield* TempStore
  const first = transcript.steps.flatMap(draftsOf).find((draft) => draft.at !== undefined)?.at ?? 0
  const handles = events.flatMap((event) => entriesOf(event).flatMap((entry) => entry.handles))
  const hash = yield* store.hash(encode([transcript.format, transcript.session ?? "", ...handles].join("\n")))
  return {
    _tag: "Started",
    version: logVersion,
    session: sessionId(first, hash),
    at: first,
    estimator: estimatorVersion,
    ...(transcript.model === undefined ? {} : { model: transcript.model }),
    ...(transcript.cwd === undefined ? {} : { cwd: transcript.cwd }),
    importedFrom: {
      format: transcript.format,
      ...(transcript.session === undefined ? {} : { session: transcript.session })
    }
  }
})

/** Tokens made into entries between two points where the fiber can be interrupted. */
const importSliceTokens = 50_000

/** Imports a transcript, and returns its events with the session that they fold to. */
export const importWithSession = Effect.fnUntraced(function* (transcript: Transcript) {
  const held = new HandleIndex()
  const events: Array<SessionEvent> = []
  const messages = new Map<EntryId, number>()
  let session = emptySession
  let at = 0
  let done = 0
  for (const one of transcript.steps) {
    const made: Array<Entry> = []
    for (const draft of yield* draftsIn(session, one, transcript.cwd)) {
      at = draft.at ?? at
      const whole = yield* makeEntry(draft, entryId(session.conversation.next + made.length), held)
      const entry = transcript.shown === undefined ? whole : yield* asShown(whole, transcript.shown)
      made.push(entry)
      done += entryTokens(entry) + entry.tokens.length
      if (done > importSliceTokens) {
        done = 0
        yield* Effect.yieldNow
      }
    }
    const added: ReadonlyArray<SessionEvent> =
      one._tag === "Compaction"
        ? [compaction(session.conversation, messages, one, made, at)]
        : made.map((entry): SessionEvent => ({ _tag: "Appended", entry }))
    if (one._tag === "Message") for (const entry of made) messages.set(entry.id, messages.size)
    for (const event of added) {
      session = applyEvent(session, event)
      events.push(event)
    }
  }
  const started = yield* startedOf(transcript, events)
  return { events: [started, ...events], session: { ...session, started } }
})

/**
 * Imports the conversation of another agent as events of a session: `Started`, one `Appended` a message, one `Compressed` a
 * compaction. The same transcript always gives the same events, session id included.
 */
export const importTranscript = Effect.fn("Transcripts.importTranscript")(function* (
  transcript: Transcript
): Effect.fn.Return<ReadonlyArray<SessionEvent>, TokenCountError, TokenCounter | TempStore> {
  const { events } = yield* importWithSession(transcript)
  return events
})
