/**
 * Reads Gemini CLI sessions: one JSON document in older versions, records, one a line, in newer ones.
 *
 * One file: records of one session that replace, repeat and complete each other.
 */

import { absurd } from "effect"
import { isCall, isText, isThought, type Part } from "../../content/Content.ts"
import type { Draft } from "../../conversation/Conversation.ts"
import { missingResponse } from "../../conversation/Projection.ts"
import { withoutHiddenText } from "../../text/HiddenText.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { arraySlices, sliceAt, type SourceText } from "../../text/JsonSource.ts"
import { runSync, type SlicedWork } from "../../text/SlicedWork.ts"
import { draftOf, lineNumbers, type Piece, piecesOf, samePieces } from "../ExactParts.ts"
import { natural } from "../JsonRecord.ts"
import { isProblem, type Problem, problemUnder, recordProblem } from "../Problem.ts"
import { marksOf, readMarks } from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import { type Compaction, type LineReader, recordReader, type Transcript, VisibleMessages } from "../Transcript.ts"
import { folderIn, isSummary, messageOf, type MessageRecord, readMessage } from "./GeminiMessage.ts"
import { decodeGemini, decodeGeminiSession, type GeminiRecord, ignoredKinds } from "./Record.ts"

// --- from records to messages -----------------------------------------------------------------------------------------

/**
 * Turns records into messages, in order. It remembers whether the user has written anything yet, and which calls already
 * have results, because newer versions record results again as messages, and once more on resume. `owed`: calls for which
 * this program wrote a result that they never got; on resume that result returns without its mark.
 */
export class Flow {
  /** Environment messages that opened the conversation before these records. */
  private readonly known: ReadonlyArray<Draft>
  private readonly owed: Set<string>
  private readonly answered = new Set<string>()
  private begun = false
  /** Whether any message in the user's role was not an environment message. */
  private hasTurns = false

  constructor(known: ReadonlyArray<Draft>, owed: Set<string>) {
    this.known = known
    this.owed = owed
  }

  /** Returns the messages that a record would give if it came next, followed by `next`. */
  drafts({ at, gives, id, line, stays }: MessageRecord, next?: MessageRecord): ReadonlyArray<Draft> {
    if (gives._tag === "Nothing" || stays) return []
    const ids = id === undefined ? [] : [id]
    if (gives._tag === "Gemini") {
      const { answers, model, usage, whose: author } = gives
      const reply = draftOf("model", gives.pieces, { at, author, line, ids, model, usage })
      if (answers.length === 0) return [reply]
      const about = { at: gives.answeredAt ?? at, author: undefined, line, ids: ids.map((one) => `${one}_response`) }
      return [reply, draftOf("user", answers, about)]
    }
    const pieces = gives.exact ? gives.pieces : gives.pieces.filter((piece) => !this.isRepeated(piece))
    if (pieces.length === 0 && !gives.exact) return []
    if (gives.whose === "bare" || gives.whose === "marked") {
      const answer = next?.gives._tag === "Gemini" ? next.gives.pieces.map(({ part }) => part) : undefined
      const author = isSummary(gives.whose, !this.hasTurns, answer) ? "summary" : undefined
      return [draftOf("user", pieces, { at, author, line, ids })]
    }
    if (gives.whose !== "context") return [draftOf("user", pieces, { at, author: gives.whose, line, ids })]
    // The environment message stays when all others are replaced, so a checkpoint that repeats it adds nothing.
    if (!this.begun && this.known.some((draft) => samePieces(piecesOf(draft), pieces))) return []
    const author = this.begun || this.known.length > 0 ? "program" : "environment"
    return [draftOf("user", pieces, { at, author, line, ids })]
  }

  /** Adds a record and returns its messages. `next` is the record after it. */
  take(message: MessageRecord, next?: MessageRecord): ReadonlyArray<Draft> {
    const drafts = this.drafts(message, next)
    const { gives } = message
    if (gives._tag === "User") {
      this.begun = true
      this.hasTurns ||= gives.whose !== "context"
    }
    if (gives._tag === "Gemini") {
      for (const call of gives.calls) this.answered.delete(call)
      for (const call of gives.owed) this.owed.add(call)
    }
    for (const { content } of drafts) {
      for (const { functionResponse } of content.parts) {
        if (functionResponse?.id !== undefined) this.answered.add(functionResponse.id)
      }
    }
    return drafts
  }

  /** Returns how many results a record only repeats. */
  repeated({ gives }: MessageRecord): number {
    return gives._tag === "User" && !gives.exact ? gives.pieces.filter((piece) => this.isRepeated(piece)).length : 0
  }

  private isRepeated({ part }: Piece): boolean {
    const id = part.functionResponse?.id
    return id !== undefined && (this.answered.has(id) || (this.owed.has(id) && isOwedResponse(part)))
  }
}

/** Whether this program made up the response, for a call that has none. */
const isOwedResponse = ({ functionResponse: answer }: Part): boolean =>
  answer !== undefined && JSON.stringify(answer.response) === owedJson
const owedJson = JSON.stringify(missingResponse({ name: "" }).functionResponse?.response)

/** A record in its place. */
interface Held {
  readonly message: MessageRecord
  /** Whether it is part of the checkpoint at the beginning of its segment. */
  readonly inserted: boolean
}

/** By id. A record without an id is its own key. */
type Records = Map<string | MessageRecord, Held>
const keyOf = (message: MessageRecord): string | MessageRecord => message.id ?? message

/** The records that the agent saw from a checkpoint on, or from the beginning. */
interface ViewSegment {
  records: Records
  /** Environment messages of earlier segments. */
  readonly known: ReadonlyArray<Draft>
  readonly checkpoint: Pick<Compaction, "trigger" | "tokensBefore"> | undefined
}

/** Yields each record with the message record after it. */
const withNext = function* (records: Records) {
  const list = [...records]
  const speaks = ([, { message }]: (typeof list)[number]) => message.gives._tag !== "Nothing"
  for (const [index, [key, held]] of list.entries()) {
    // Only where it matters: a look ahead from every record could be quadratic.
    const { gives } = held.message
    const looks = gives._tag === "User" && (gives.whose === "bare" || gives.whose === "marked")
    const next = looks ? list.slice(index + 1).find(speaks)?.[1].message : undefined
    yield { key, held, next }
  }
}

/** Returns the messages of records, each with its record. */
const shownBy = (records: Records, known: ReadonlyArray<Draft>, owed: Set<string>) => {
  const flow = new Flow(known, owed)
  return [...withNext(records)].flatMap(({ held, next }) =>
    flow.take(held.message, next).map((draft) => ({ draft, held }))
  )
}
type ShownDraft = ReturnType<typeof shownBy>[number]

const isContext = ({ message }: Held): boolean => message.gives._tag === "User" && message.gives.whose === "context"
const isSpoken = ({ held }: ShownDraft): boolean => !isContext(held)

const joinedText = (pieces: ReadonlyArray<Piece>): string =>
  pieces.flatMap(({ part }) => (isText(part) ? part.text : [])).join("")

/** Whether two calls are equal, apart from key order and a signature. */
const sameCall = (later: Part, earlier: Part): boolean =>
  isCall(later) &&
  isCall(earlier) &&
  later.functionCall.id === earlier.functionCall.id &&
  later.functionCall.name === earlier.functionCall.name &&
  JSON.stringify(later.functionCall.args) === JSON.stringify(earlier.functionCall.args) &&
  (earlier.thoughtSignature === undefined || earlier.thoughtSignature === later.thoughtSignature)

/**
 * Whether a message of a checkpoint covers an earlier one, so that replacing it loses nothing. An answer is first recorded
 * with its visible text and its calls; a checkpoint holds its parts.
 */
const covers = (later: Draft, earlier: Draft): boolean => {
  if (later.content.role !== earlier.content.role || later.author !== earlier.author) return false
  const [now, then] = [piecesOf(later), piecesOf(earlier)]
  if (samePieces(now, then)) return true
  if (later.content.role === "user") return false
  // On resume, a thought without a description gets a space after its subject.
  const thoughtKey = (part: Part) => JSON.stringify({ ...part, text: part.text?.trim() })
  const thoughts = new Set(now.flatMap(({ part }) => (isThought(part) ? thoughtKey(part) : [])))
  if (then.some(({ part }) => isThought(part) && !thoughts.has(thoughtKey(part)))) return false
  const [text, recorded] = [joinedText(now), joinedText(then)]
  if (recorded !== text && recorded !== withoutHiddenText(text)) return false
  const rest = (pieces: ReadonlyArray<Piece>) => pieces.filter(({ part }) => !isText(part) && !isThought(part))
  const [others, recordedOthers] = [rest(now), rest(then)]
  return (
    others.length === recordedOthers.length &&
    others.every((piece, index) => {
      const other = recordedOthers[index]
      if (other === undefined) return false
      if (samePieces([piece], [other])) return true
      return piece.source === undefined && other.source === undefined && sameCall(piece.part, other.part)
    })
  )
}

/** Whether a checkpoint may omit this message without a change for the agent: on resume Gemini CLI drops text of hooks. */
const mayBeMissing = ({ draft }: ShownDraft): boolean => draft.author === "program"

/**
 * Returns, for each record of a checkpoint, the earlier record that it repeats. Undefined when the messages differ, because
 * then the agent sees something else.
 */
const partners = (
  then: ReadonlyArray<ShownDraft>,
  now: ReadonlyArray<ShownDraft>
): ReadonlyMap<Held, Held> | undefined => {
  const found = new Map<Held, Held>()
  let at = 0
  for (const shown of then) {
    const later = now[at]
    if (later === undefined || !covers(later.draft, shown.draft)) {
      if (mayBeMissing(shown)) continue
      return undefined
    }
    at += 1
    // Results may be in their own message now and in their call's record before.
    if (later.held.message.gives._tag === shown.held.message.gives._tag && !found.has(later.held)) {
      found.set(later.held, shown.held)
    }
  }
  return found
}

/**
 * Merges a record that a checkpoint repeats. On resume Gemini CLI writes all messages again without times, models, counts
 * and results, so these are taken from the earlier record.
 */
const repeated = (later: MessageRecord, earlier: MessageRecord): MessageRecord => {
  const { at = later.at, line } = earlier
  if (later.gives._tag !== "Gemini" || earlier.gives._tag !== "Gemini") return { ...later, at, line }
  const [now, then] = [later.gives, earlier.gives]
  const hasResults = now.answers.length > 0
  return samePieces(now.pieces, then.pieces) && (!hasResults || samePieces(now.answers, then.answers))
    ? { ...earlier, id: later.id }
    : {
        ...later,
        at,
        line,
        gives: {
          ...now,
          owed: [...then.owed, ...now.owed],
          model: now.model ?? then.model,
          usage: now.usage ?? then.usage
        }
      }
}

/** Counts the messages at the end of the agent's view that a checkpoint repeats at its end, unchanged. */
function* kept(inserted: ReadonlyArray<Draft>, seen: VisibleMessages["others"]): SlicedWork<number> {
  let count = 0
  while (count < Math.min(inserted.length, seen.length)) {
    const draft = inserted[inserted.length - 1 - count]
    const before = seen[seen.length - 1 - count]
    if (draft === undefined || before?.message === undefined || !sameMessage(draft, before.draft)) break
    count += 1
    yield
  }
  return count
}

/** Whether two messages say the same in the same voice. */
export const sameMessage = (left: Draft, right: Draft): boolean =>
  left.content.role === right.content.role &&
  left.author === right.author &&
  samePieces(piecesOf(left), piecesOf(right))

type SessionRecord = Extract<GeminiRecord, { readonly _tag: "Session" }>

/** The session read so far. */
class Recording {
  private readonly before: Array<ViewSegment> = []
  /** Owed calls of earlier segments. */
  private readonly owed = new Set<string>()
  private now: ViewSegment = { records: new Map(), known: [], checkpoint: undefined }
  /** A checkpoint with only the environment, until it is known whether the other messages are loaded again. */
  private unloaded: Records | undefined
  readonly skipped = new Skipped(ignoredKinds)
  private session: string | undefined
  private cwd: string | undefined

  describe({ folder, id }: Pick<SessionRecord, "folder" | "id">): void {
    this.session = id ?? this.session
    this.cwd = folder ?? this.cwd
  }

  /** Continues the conversation: messages that were not loaded again by now are no longer in the agent's view. */
  private settle(): void {
    const { unloaded } = this
    this.unloaded = undefined
    if (unloaded !== undefined) this.replace(unloaded, undefined)
  }

  /** Adds a message of a document, in which each message is separate. */
  add(message: MessageRecord): void {
    this.now.records.set(message, { message, inserted: false })
  }

  /** Adds a message record. It replaces an earlier record with the same id. */
  message(message: MessageRecord): void {
    this.settle()
    const inserted = this.now.records.get(keyOf(message))?.inserted ?? false
    this.now.records.set(keyOf(message), { message, inserted })
  }

  /** Drops a message and all that follow; an unknown id drops everything. */
  rewind(id: string): void {
    this.settle()
    const { records } = this.now
    let dropping = !records.has(id)
    for (const key of records.keys()) {
      dropping = dropping || key === id
      if (!dropping) continue
      records.delete(key)
      this.skipped.add("rewound")
    }
  }

  /**
   * Replaces all messages. When the new ones only repeat the earlier ones, and possibly continue them, the conversation did
   * not change; otherwise the agent sees something else from here on.
   */
  checkpoint(messages: ReadonlyArray<MessageRecord>, ours: ViewSegment["checkpoint"]): void {
    const { known, records } = this.now
    const next: Records = new Map(messages.map((message) => [keyOf(message), { message, inserted: false }]))
    this.unloaded = undefined
    if (ours === undefined) {
      const owed = new Set(this.owed)
      const then = shownBy(records, known, owed).filter(isSpoken)
      const isEmpty = next.size > 0 && [...next.values()].every(isContext)
      // Gemini CLI starts with the environment alone, and records it before it loads the resumed session.
      if (isEmpty && then.length > 0) {
        this.unloaded = next
        return
      }
      const earlier = partners(then, shownBy(next, known, owed).filter(isSpoken))
      if (earlier !== undefined) {
        this.repeat(next, earlier)
        return
      }
    }
    this.replace(next, ours)
  }

  /** Begins a new segment: the agent sees something else from here on. */
  private replace(next: Records, checkpoint: ViewSegment["checkpoint"]): void {
    const { known, records } = this.now
    const shown = shownBy(records, known, this.owed)
    const environments = shown.flatMap(({ draft }) => (draft.author === "environment" ? [draft] : []))
    this.before.push(this.now)
    for (const [key, { message }] of next) next.set(key, { message, inserted: true })
    this.now = {
      records: next,
      known: [...known, ...environments],
      checkpoint: checkpoint ?? { trigger: "auto", tokensBefore: undefined }
    }
  }

  /**
   * Keeps the earlier content under the records of a checkpoint that repeats it. Messages that the checkpoint omits stay in
   * place.
   */
  private repeat(next: Records, earlier: ReadonlyMap<Held, Held>): void {
    const old = [...this.now.records]
    const renewed = [...next.values()].some(isContext)
    const merged: Records = new Map()
    let at = 0
    const skipTo = (end: number) => {
      for (; at < end; at += 1) {
        const [key, held] = old[at] ?? []
        if (key === undefined || held === undefined || next.has(key)) continue
        if (isContext(held) && renewed) this.skipped.add("older environment message")
        else if (!isPaired.has(held)) merged.set(key, held)
      }
    }
    const isPaired = new Set(earlier.values())
    const places = new Map(old.map(([, held], index) => [held, index]))
    for (const [key, held] of next) {
      const before = earlier.get(held) ?? (isContext(held) ? this.now.records.get(key) : undefined)
      const inserted = before?.inserted ?? (isContext(held) && this.now.checkpoint !== undefined)
      if (before !== undefined) skipTo(places.get(before) ?? at)
      merged.set(key, {
        message: before === undefined ? held.message : repeated(held.message, before.message),
        inserted
      })
    }
    skipTo(old.length)
    this.now.records = merged
  }

  *end(): SlicedWork<Transcript> {
    const counted = new Set<string | MessageRecord>()
    const owed = new Set<string>()
    const seen = new VisibleMessages()
    let model: string | undefined
    for (const { checkpoint, known, records } of [...this.before, this.now]) {
      const flow = new Flow(known, owed)
      const inserted: Array<Draft> = []
      const added: Array<Draft> = []
      for (const { held, key, next } of withNext(records)) {
        const { inserted: old, message } = held
        // A checkpoint repeats records, and each is counted once.
        if (!counted.has(key)) this.count(message, flow)
        counted.add(key)
        const drafts = flow.take(message, next)
        if (message.gives._tag === "Gemini") model = message.gives.model ?? model
        for (const draft of drafts) (old ? inserted : added).push(draft)
        yield
      }
      if (checkpoint !== undefined) {
        const { others } = seen
        const count = yield* kept(inserted, others)
        const insert = inserted.slice(0, inserted.length - count)
        const keptFrom = others[others.length - count]?.message
        seen.add({ _tag: "Compaction", ...checkpoint, insert, keptFrom })
      }
      for (const draft of added) seen.add({ _tag: "Message", draft })
    }
    const { steps } = seen
    const environment = steps.flatMap((step) =>
      step._tag === "Message" && step.draft.author === "environment" ? [step.draft.content] : []
    )
    return {
      format: "gemini",
      session: this.session,
      cwd: this.cwd ?? folderIn(environment[0]?.parts ?? []),
      model,
      steps,
      skipped: this.skipped.counts,
      unknown: this.skipped.unknown("Gemini CLI", undefined)
    }
  }

  private count(message: MessageRecord, flow: Flow): void {
    if (message.gives._tag === "Nothing") this.skipped.addRecord(message.gives.kind)
    this.skipped.add("repeated result", flow.repeated(message))
  }
}

// --- files --------------------------------------------------------------------------------------------------------------

/** Reads the messages of a list. `list` is its JSON, when it is needed. */
function* readMessages(
  values: ReadonlyArray<unknown>,
  slices: ReadonlyArray<SourceText>,
  lines: (index: number) => number,
  place: string
): SlicedWork<ReadonlyArray<MessageRecord> | Problem> {
  const messages: Array<MessageRecord> = []
  for (const [index, value] of values.entries()) {
    const slice = slices[index] ?? ""
    const message = readMessage(value, slice, lines(index))
    if (isProblem(message)) return problemUnder(`${place}[${index}]`, message)
    messages.push(message)
    yield
  }
  return messages
}

const compactionOf = (record: Json): ViewSegment["checkpoint"] => {
  const { trigger } = readMarks(record)
  return trigger === undefined ? undefined : { trigger, tokensBefore: natural(marksOf(record).tokensBefore) }
}

/** Reads what a record says of the session, and the messages in it. */
const readSession = (
  recording: Recording,
  decoded: SessionRecord,
  record: Json,
  text: string,
  line: number
): Problem | undefined => {
  const { messages, root } = decoded
  if (messages !== undefined) {
    const place = [...root, "messages"]
    if (!Array.isArray(messages)) return recordProblem(`${place.join(".")}`, "expected a list of messages")
    const slices = arraySlices(sliceAt(text, place) ?? "")
    const read = runSync(readMessages(messages, slices, () => line, place.join(".")))
    if (isProblem(read)) return read
    recording.checkpoint(read, compactionOf(record))
  }
  recording.describe(decoded)
  return undefined
}

const readRecord = (recording: Recording, record: Json, text: string, line: number): Problem | undefined => {
  const decoded = decodeGemini(record)
  switch (decoded._tag) {
    case "Rewound":
      recording.rewind(decoded.to)
      return undefined
    case "Message":
    case "Note": {
      if (decoded.id === undefined) return recordProblem("id", "expected a text, the id of the message")
      const message = messageOf(decoded, record, text, line)
      if (isProblem(message)) return message
      recording.message(message)
      return undefined
    }
    case "Session":
      return readSession(recording, decoded, record, text, line)
    case "Other":
      recording.skipped.addRecord(decoded.kind)
      return undefined
    case "Broken":
      return decoded.problem
    default:
      return absurd(decoded)
  }
}

/**
 * Reads a Gemini CLI session of records, one a line. A message with a known id replaces the earlier one, `$rewindTo` drops
 * messages, and `messages` in a `$set` are the agent's view from there on: a compaction, unless they only repeat earlier
 * messages. Messages that it kept at the end are marked as kept.
 */
export const geminiReader = (): LineReader => {
  const recording = new Recording()
  return recordReader(
    'expected a record: metadata, a message, {"$set":…} or {"$rewindTo":…}',
    (record, text, line) => readRecord(recording, record, text, line),
    () => recording.end()
  )
}

/**
 * Reads a Gemini CLI session that is one JSON document; `value` is the parsed `text`. It is a plain list: messages that
 * share an id are all read.
 */
export function* readGeminiDocument(value: unknown, text: string): SlicedWork<Transcript | Problem> {
  if (!isJson(value) || !Array.isArray(value.messages)) {
    return recordProblem("", 'expected a Gemini CLI session: an object with "messages", a list')
  }
  const slices = arraySlices(sliceAt(text, ["messages"]) ?? "")
  const lines = lineNumbers(text, slices)
  yield
  const read = yield* readMessages(value.messages, slices, (index) => lines[index] ?? 1, "messages")
  if (isProblem(read)) return read
  const recording = new Recording()
  recording.describe(decodeGeminiSession(value))
  for (const message of read) recording.add(message)
  return yield* recording.end()
}
