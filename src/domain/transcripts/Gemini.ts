import { isCall, isText, isThought, type Part } from "../Content.ts"
import type { Draft } from "../Conversation.ts"
import { owedResponse } from "../Projection.ts"
import { arraySlices, sliceAt, type SourceText } from "../Source.ts"
import { runSync, type Work } from "../Work.ts"
import {
  draftOf,
  isJson,
  isSummary,
  type Json,
  lineNumbers,
  marksOf,
  type Piece,
  piecesOf,
  samePieces,
  Skipped,
  textAt
} from "./Contents.ts"
import { natural, readMessage, type Said } from "./GeminiRecord.ts"
import { readMarks } from "./Marks.ts"
import type { LineReader, Problem, Step, Transcript } from "./Transcript.ts"
import { visibleText } from "../VisibleText.ts"

/** Gemini CLI sessions (spec 11): at first one JSON document, in newer versions records, one a line. */

// --- from records to messages -----------------------------------------------------------------------------------------

/**
 * Turns records into messages, one after the other. It knows what came before: whether the user has said anything yet, and
 * which calls have their results already, because newer versions record these again as messages, and once more on resume.
 * `owed`: the calls to which we wrote a result that they never got; on resume it comes back without its mark.
 */
export class Flow {
  /** Environment messages that opened the conversation before these records. */
  private readonly known: ReadonlyArray<Draft>
  private readonly owed: Set<string>
  private readonly answered = new Set<string>()
  private begun = false
  /** Whether anything but environment messages came in the user's role. */
  private spoken = false

  constructor(known: ReadonlyArray<Draft>, owed: Set<string>) {
    this.known = known
    this.owed = owed
  }

  /** The messages that a record would give if it came next, with `next` behind it. */
  drafts({ at, gives, id, line, stays }: Said, next?: Said): ReadonlyArray<Draft> {
    if (gives._tag === "Nothing" || stays) return []
    const ids = id === undefined ? [] : [id]
    if (gives._tag === "Gemini") {
      const { answers, model, usage, whose: author } = gives
      const said = draftOf("model", gives.pieces, { at, author, line, ids, model, usage })
      if (answers.length === 0) return [said]
      const about = { at: gives.answeredAt ?? at, author: undefined, line, ids: ids.map((one) => `${one}_response`) }
      return [said, draftOf("user", answers, about)]
    }
    const pieces = gives.exact ? gives.pieces : gives.pieces.filter((piece) => !this.isRepeated(piece))
    if (pieces.length === 0 && !gives.exact) return []
    if (gives.whose === "bare" || gives.whose === "marked") {
      const answer = next?.gives._tag === "Gemini" ? next.gives.pieces.map(({ part }) => part) : undefined
      const author = isSummary(gives.whose, !this.spoken, answer) ? "summary" : undefined
      return [draftOf("user", pieces, { at, author, line, ids })]
    }
    if (gives.whose !== "context") return [draftOf("user", pieces, { at, author: gives.whose, line, ids })]
    // The environment message stays when all others are replaced: a checkpoint that repeats it says nothing new.
    if (!this.begun && this.known.some((draft) => samePieces(piecesOf(draft), pieces))) return []
    const author = this.begun || this.known.length > 0 ? "program" : "environment"
    return [draftOf("user", pieces, { at, author, line, ids })]
  }

  /** The messages that a record gives, of which `next` is the one behind it. */
  take(said: Said, next?: Said): ReadonlyArray<Draft> {
    const drafts = this.drafts(said, next)
    const { gives } = said
    if (gives._tag === "User") {
      this.begun = true
      this.spoken ||= gives.whose !== "context"
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

  /** How many results a record only repeats. */
  repeated({ gives }: Said): number {
    return gives._tag === "User" && !gives.exact ? gives.pieces.filter((piece) => this.isRepeated(piece)).length : 0
  }

  private isRepeated({ part }: Piece): boolean {
    const id = part.functionResponse?.id
    return id !== undefined && (this.answered.has(id) || (this.owed.has(id) && isOwedResponse(part)))
  }
}

/** Whether a response is the one that we write where there was none. */
const isOwedResponse = ({ functionResponse: said }: Part): boolean =>
  said !== undefined && JSON.stringify(said.response) === owedJson
const owedJson = JSON.stringify(owedResponse({ name: "" }).functionResponse?.response)

/** A record in its place. */
interface Held {
  readonly said: Said
  /** Whether it came with the checkpoint that its stretch begins with. */
  readonly inserted: boolean
}

/** By id; a record without one stands for itself. */
type Records = Map<string | Said, Held>
const keyOf = (said: Said): string | Said => said.id ?? said

type Compaction = Extract<Step, { readonly _tag: "Compaction" }>

/** What the agent saw from a checkpoint on, or from the beginning. */
interface Stretch {
  records: Records
  /** Environment messages of the stretches before. */
  readonly known: ReadonlyArray<Draft>
  readonly checkpoint: Pick<Compaction, "trigger" | "tokensBefore"> | undefined
}

/** Each record with the message record behind it. */
const withNext = function* (records: Records) {
  const list = [...records]
  const speaks = ([, { said }]: (typeof list)[number]) => said.gives._tag !== "Nothing"
  for (const [index, [key, held]] of list.entries()) {
    // Only where it matters: looking ahead from every record could be quadratic.
    const { gives } = held.said
    const looks = gives._tag === "User" && (gives.whose === "bare" || gives.whose === "marked")
    const next = looks ? list.slice(index + 1).find(speaks)?.[1].said : undefined
    yield { key, held, next }
  }
}

/** The messages of records, each with its record. */
const shownBy = (records: Records, known: ReadonlyArray<Draft>, owed: Set<string>) => {
  const flow = new Flow(known, owed)
  return [...withNext(records)].flatMap(({ held, next }) =>
    flow.take(held.said, next).map((draft) => ({ draft, held }))
  )
}
type ShownDraft = ReturnType<typeof shownBy>[number]

const isContext = ({ said }: Held): boolean => said.gives._tag === "User" && said.gives.whose === "context"
const isSpoken = ({ held }: ShownDraft): boolean => !isContext(held)

const joinedText = (pieces: ReadonlyArray<Piece>): string =>
  pieces.flatMap(({ part }) => (isText(part) ? part.text : [])).join("")

/** The same call: order of keys and a signature aside. */
const sameCall = (later: Part, earlier: Part): boolean =>
  isCall(later) &&
  isCall(earlier) &&
  later.functionCall.id === earlier.functionCall.id &&
  later.functionCall.name === earlier.functionCall.name &&
  JSON.stringify(later.functionCall.args) === JSON.stringify(earlier.functionCall.args) &&
  (earlier.thoughtSignature === undefined || earlier.thoughtSignature === later.thoughtSignature)

/**
 * Whether a message of a checkpoint is the one that was there, so that nothing of that is lost. What was recorded first of
 * an answer are its visible text and its calls; a checkpoint holds the parts themselves.
 */
const covers = (later: Draft, earlier: Draft): boolean => {
  if (later.content.role !== earlier.content.role || later.author !== earlier.author) return false
  const [now, then] = [piecesOf(later), piecesOf(earlier)]
  if (samePieces(now, then)) return true
  if (later.content.role === "user") return false
  // A thought without a description gets a space behind its subject on resume.
  const thoughtKey = (part: Part) => JSON.stringify({ ...part, text: part.text?.trim() })
  const thoughts = new Set(now.flatMap(({ part }) => (isThought(part) ? thoughtKey(part) : [])))
  if (then.some(({ part }) => isThought(part) && !thoughts.has(thoughtKey(part)))) return false
  const [text, recorded] = [joinedText(now), joinedText(then)]
  if (recorded !== text && recorded !== visibleText(text)) return false
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

/** What a checkpoint may leave out although the agent goes on as before: on resume Gemini CLI drops the words of hooks. */
const mayBeMissing = ({ draft }: ShownDraft): boolean => draft.author === "program"

/**
 * By record of a checkpoint, the earlier record that it repeats. Undefined where the messages are not the same ones: then
 * the agent sees something else.
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
    // Results may stand in a message of their own now, and in their call's record before.
    if (later.held.said.gives._tag === shown.held.said.gives._tag && !found.has(later.held)) {
      found.set(later.held, shown.held)
    }
  }
  return found
}

/**
 * A record that a checkpoint repeats. On resume Gemini CLI writes all messages anew, without times, models, counts and
 * results: what the earlier record says beyond the later one stays.
 */
const repeated = (later: Said, earlier: Said): Said => {
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

/** A message that the agent saw, and its number among the `Message` steps when it is one of them. */
interface Seen {
  readonly draft: Draft
  readonly number: number | undefined
}

/** How many messages at the end of what the agent saw are the last ones of a checkpoint, unchanged. */
function* kept(inserted: ReadonlyArray<Draft>, seen: ReadonlyArray<Seen>): Work<number> {
  let count = 0
  while (count < Math.min(inserted.length, seen.length)) {
    const draft = inserted[inserted.length - 1 - count]
    const before = seen[seen.length - 1 - count]
    if (draft === undefined || before?.number === undefined || !sameMessage(draft, before.draft)) break
    count += 1
    yield 5_000
  }
  return count
}

const sameMessage = (left: Draft, right: Draft): boolean =>
  left.content.role === right.content.role &&
  left.author === right.author &&
  samePieces(piecesOf(left), piecesOf(right))

/** The session as it is being read. */
class Recording {
  private readonly before: Array<Stretch> = []
  /** Owed calls of the stretches before. */
  private readonly owed = new Set<string>()
  private now: Stretch = { records: new Map(), known: [], checkpoint: undefined }
  /** A checkpoint of the environment alone, until it is known whether the rest is loaded again. */
  private unloaded: Records | undefined
  private readonly skipped = new Skipped()
  private session: string | undefined
  private cwd: string | undefined

  skip(kind: string): void {
    this.skipped.add(kind)
  }

  metadata(record: Json): void {
    this.session = textAt(record, "sessionId") ?? this.session
    // Gemini CLI does not say in which folder it ran. A subagent gets those of the workspace, others those added later.
    const folders: ReadonlyArray<unknown> = Array.isArray(record.directories) ? record.directories : []
    const [first] = record.kind === "subagent" ? folders : []
    this.cwd = textAt(record, "cwd") ?? (typeof first === "string" ? first : this.cwd)
  }

  /** The conversation goes on: what was not loaded again by now is out of the agent's sight. */
  private settle(): void {
    const { unloaded } = this
    this.unloaded = undefined
    if (unloaded !== undefined) this.replace(unloaded, undefined)
  }

  /** A message of a document, where every one stands for itself. */
  add(said: Said): void {
    this.now.records.set(said, { said, inserted: false })
  }

  /** A message record: one whose id is known takes the place of the earlier (spec 11). */
  message(said: Said): void {
    this.settle()
    const inserted = this.now.records.get(keyOf(said))?.inserted ?? false
    this.now.records.set(keyOf(said), { said, inserted })
  }

  /** Drops the message and all that follow; an unknown id drops everything (spec 11). */
  rewind(id: string): void {
    this.settle()
    const { records } = this.now
    let dropping = !records.has(id)
    for (const key of records.keys()) {
      dropping = dropping || key === id
      if (!dropping) continue
      records.delete(key)
      this.skip("rewound")
    }
  }

  /**
   * All messages anew. Where they only repeat what was there, and perhaps go on, nothing happened to the conversation;
   * else the agent sees something else from here on.
   */
  checkpoint(messages: ReadonlyArray<Said>, ours: Stretch["checkpoint"]): void {
    const { known, records } = this.now
    const next: Records = new Map(messages.map((said) => [keyOf(said), { said, inserted: false }]))
    this.unloaded = undefined
    if (ours === undefined) {
      const owed = new Set(this.owed)
      const then = shownBy(records, known, owed).filter(isSpoken)
      const isEmpty = next.size > 0 && [...next.values()].every(isContext)
      // Gemini CLI starts with the environment alone, and writes that down before it loads what it resumes.
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

  /** From here on the agent sees something else. */
  private replace(next: Records, checkpoint: Stretch["checkpoint"]): void {
    const { known, records } = this.now
    const shown = shownBy(records, known, this.owed)
    const environments = shown.flatMap(({ draft }) => (draft.author === "environment" ? [draft] : []))
    this.before.push(this.now)
    for (const [key, { said }] of next) next.set(key, { said, inserted: true })
    this.now = {
      records: next,
      known: [...known, ...environments],
      checkpoint: checkpoint ?? { trigger: "auto", tokensBefore: undefined }
    }
  }

  /** What was there under the records of a checkpoint that repeats it; what the checkpoint leaves out stays in its place. */
  private repeat(next: Records, earlier: ReadonlyMap<Held, Held>): void {
    const old = [...this.now.records]
    const renewed = [...next.values()].some(isContext)
    const merged: Records = new Map()
    let at = 0
    const skipTo = (end: number) => {
      for (; at < end; at += 1) {
        const [key, held] = old[at] ?? []
        if (key === undefined || held === undefined || next.has(key)) continue
        if (isContext(held) && renewed) this.skip("older environment message")
        else if (!isPaired.has(held)) merged.set(key, held)
      }
    }
    const isPaired = new Set(earlier.values())
    const places = new Map(old.map(([, held], index) => [held, index]))
    for (const [key, held] of next) {
      const before = earlier.get(held) ?? (isContext(held) ? this.now.records.get(key) : undefined)
      const inserted = before?.inserted ?? (isContext(held) && this.now.checkpoint !== undefined)
      if (before !== undefined) skipTo(places.get(before) ?? at)
      merged.set(key, { said: before === undefined ? held.said : repeated(held.said, before.said), inserted })
    }
    skipTo(old.length)
    this.now.records = merged
  }

  *end(): Work<Transcript> {
    const steps: Array<Step> = []
    const counted = new Set<string | Said>()
    const owed = new Set<string>()
    let seen: ReadonlyArray<Seen> = []
    let messages = 0
    let model: string | undefined
    for (const { checkpoint, known, records } of [...this.before, this.now]) {
      const flow = new Flow(known, owed)
      const inserted: Array<Draft> = []
      const added: Array<Draft> = []
      for (const { held, key, next } of withNext(records)) {
        const { inserted: old, said } = held
        // A checkpoint repeats records; each is counted once.
        if (!counted.has(key)) this.count(said, flow)
        counted.add(key)
        const drafts = flow.take(said, next)
        if (said.gives._tag === "Gemini") model = said.gives.model ?? model
        for (const draft of drafts) (old ? inserted : added).push(draft)
        yield 1_000
      }
      if (checkpoint !== undefined) {
        const opening = seen.filter(({ draft }) => draft.author === "environment")
        const others = seen.filter(({ draft }) => draft.author !== "environment")
        const count = yield* kept(inserted, others)
        const tail = others.slice(others.length - count)
        const insert = inserted.slice(0, inserted.length - count)
        steps.push({ _tag: "Compaction", ...checkpoint, insert, keptFrom: tail[0]?.number })
        seen = [...opening, ...insert.map((draft) => ({ draft, number: undefined })), ...tail]
      }
      const from = messages
      for (const draft of added) steps.push({ _tag: "Message", draft })
      seen = [...seen, ...added.map((draft, index) => ({ draft, number: from + index }))]
      messages += added.length
    }
    return { format: "gemini", session: this.session, cwd: this.cwd, model, steps, skipped: this.skipped.counts }
  }

  private count(said: Said, flow: Flow): void {
    if (said.gives._tag === "Nothing") this.skip(said.gives.kind)
    for (let left = flow.repeated(said); left > 0; left -= 1) this.skip("repeated result")
  }
}

// --- files --------------------------------------------------------------------------------------------------------------

/** The messages of a list, of which `list` is the JSON where it is needed. */
function* readMessages(
  values: ReadonlyArray<unknown>,
  slices: ReadonlyArray<SourceText>,
  lines: (index: number) => number,
  place: string
): Work<ReadonlyArray<Said> | string> {
  const messages: Array<Said> = []
  for (const [index, value] of values.entries()) {
    const slice = slices[index] ?? ""
    const message = readMessage(value, slice, lines(index))
    if (typeof message === "string") {
      return isJson(value) ? `${place}[${index}].${message}` : `${place}[${index}]: ${message}`
    }
    messages.push(message)
    yield slice.length
  }
  return messages
}

const isMessage = (record: Json): boolean =>
  ["user", "gemini", "info", "error", "warning"].some((type) => record.type === type) && "content" in record

const isMetadata = (record: Json): boolean => "sessionId" in record || "projectHash" in record

const compactionOf = (record: Json): Stretch["checkpoint"] => {
  const { trigger } = readMarks(record)
  return trigger === undefined ? undefined : { trigger, tokensBefore: natural(marksOf(record).tokensBefore) }
}

/** Takes the metadata under a path of a record, and the messages among it. A text: what is wrong. */
const readMetadata = (recording: Recording, record: Json, text: string, path: ReadonlyArray<string>, line: number) => {
  const metadata = path.reduce<unknown>((value, key) => (isJson(value) ? value[key] : undefined), record)
  if (!isJson(metadata)) return `${path.join(".")}: expected an object`
  const { messages } = metadata
  if (messages !== undefined) {
    const place = [...path, "messages"]
    if (!Array.isArray(messages)) return `${place.join(".")}: expected a list of messages`
    const slices = arraySlices(sliceAt(text, place) ?? "")
    const read = runSync(readMessages(messages, slices, () => line, place.join(".")))
    if (typeof read === "string") return read
    recording.checkpoint(read, compactionOf(record))
  }
  recording.metadata(metadata)
  return undefined
}

const readRecord = (recording: Recording, record: unknown, text: string, line: number): string | undefined => {
  if (!isJson(record)) return 'expected a record: metadata, a message, {"$set":…} or {"$rewindTo":…}'
  if ("$rewindTo" in record) {
    if (typeof record.$rewindTo !== "string") return "$rewindTo: expected a text, the id of a message"
    recording.rewind(record.$rewindTo)
    return undefined
  }
  if (typeof record.id === "string") {
    const said = readMessage(record, text, line)
    if (typeof said === "string") return said
    recording.message(said)
    return undefined
  }
  if (isMessage(record)) return "id: expected a text, the id of the message"
  if ("$set" in record) return readMetadata(recording, record, text, ["$set"], line)
  if (isMetadata(record)) return readMetadata(recording, record, text, [], line)
  recording.skip(textAt(record, "type") ?? "unknown record")
  return undefined
}

/**
 * Reads a Gemini CLI session of records, one a line. A message whose id is known replaces the earlier one, `$rewindTo`
 * drops messages, and `messages` in a `$set` are what the agent saw from there on: a compaction, unless they only repeat
 * what was there. What it kept at the end is told as kept.
 */
export const geminiReader = (): LineReader => {
  const recording = new Recording()
  return {
    line: (record, text, number) => {
      const message = readRecord(recording, record, text, number)
      return message === undefined ? undefined : { line: number, message }
    },
    end: () => recording.end()
  }
}

/**
 * Reads a Gemini CLI session that is one JSON document; `value` is what `text` parses to. It is a plain list: messages that
 * share an id are all read.
 */
export function* readGeminiDocument(value: unknown, text: string): Work<Transcript | Problem> {
  if (!isJson(value) || !Array.isArray(value.messages)) {
    return { line: 0, message: 'expected a Gemini CLI session: an object with "messages", a list' }
  }
  const slices = arraySlices(sliceAt(text, ["messages"]) ?? "")
  const lines = lineNumbers(text, slices)
  yield text.length
  const read = yield* readMessages(value.messages, slices, (index) => lines[index] ?? 1, "messages")
  if (typeof read === "string") return { line: 0, message: read }
  const recording = new Recording()
  recording.metadata(value)
  for (const said of read) recording.add(said)
  return yield* recording.end()
}
