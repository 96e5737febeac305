import { isCall, isText, isThought, type Part } from "../Content.ts"
import type { Draft } from "../Conversation.ts"
import { arraySlices, sliceAt, type SourceText } from "../Source.ts"
import { runSync, type Work } from "../Work.ts"
import {
  draftOf,
  isJson,
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
 * Turns records into messages, one after the other. It knows what came before: whether the person has said anything yet,
 * and which calls have their results already, because newer versions record these a second time as messages (spec 11).
 */
export class Flow {
  /** Environment messages that opened the conversation before these records. */
  private readonly known: ReadonlyArray<Draft>
  private readonly answered = new Set<string>()
  private begun = false

  constructor(known: ReadonlyArray<Draft>) {
    this.known = known
  }

  /** The messages that a record would give if it came next. */
  drafts({ at, gives, id, line, stays }: Said): ReadonlyArray<Draft> {
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
    if (gives.whose !== "context") return [draftOf("user", pieces, { at, author: gives.whose, line, ids })]
    // The environment message stays when all others are replaced: a checkpoint that repeats it says nothing new.
    if (!this.begun && this.known.some((draft) => samePieces(piecesOf(draft), pieces))) return []
    const author = this.begun || this.known.length > 0 ? "program" : "environment"
    return [draftOf("user", pieces, { at, author, line, ids })]
  }

  /** The messages that a record gives; the next one comes after it. */
  take(said: Said): ReadonlyArray<Draft> {
    const drafts = this.drafts(said)
    const { gives } = said
    if (gives._tag === "User") this.begun = true
    if (gives._tag === "Gemini") {
      for (const call of gives.calls) this.answered.delete(call)
      for (const { part } of gives.answers) {
        if (part.functionResponse?.id !== undefined) this.answered.add(part.functionResponse.id)
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
    return id !== undefined && this.answered.has(id)
  }
}

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

/** The messages of records, each with its record. */
const shownBy = (records: Records, known: ReadonlyArray<Draft>) => {
  const flow = new Flow(known)
  return [...records.values()].flatMap((held) => flow.take(held.said).map((draft) => ({ draft, held })))
}

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
  const thoughts = new Set(now.flatMap(({ part }) => (isThought(part) ? JSON.stringify(part) : [])))
  if (then.some(({ part }) => isThought(part) && !thoughts.has(JSON.stringify(part)))) return false
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
  private now: Stretch = { records: new Map(), known: [], checkpoint: undefined }
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

  /** A message of a document, where every one stands for itself. */
  add(said: Said): void {
    this.now.records.set(said, { said, inserted: false })
  }

  /** A message record: one whose id is known takes the place of the earlier (spec 11). */
  message(said: Said): void {
    const inserted = this.now.records.get(keyOf(said))?.inserted ?? false
    this.now.records.set(keyOf(said), { said, inserted })
  }

  /** Drops the message and all that follow; an unknown id drops everything (spec 11). */
  rewind(id: string): void {
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
    const then = shownBy(records, known)
    const now = shownBy(next, known)
    const repeats =
      ours === undefined &&
      then.every(({ draft }, index) => {
        const later = now[index]?.draft
        return later !== undefined && covers(later, draft)
      })
    if (!repeats) {
      const environments = then.flatMap(({ draft }) => (draft.author === "environment" ? [draft] : []))
      this.before.push(this.now)
      for (const [key, { said }] of next) next.set(key, { said, inserted: true })
      this.now = {
        records: next,
        known: [...known, ...environments],
        checkpoint: ours ?? { trigger: "auto", tokensBefore: undefined }
      }
      return
    }
    for (const [index, { held }] of now.entries()) {
      if (then[index]?.held.inserted === true) next.set(keyOf(held.said), { said: held.said, inserted: true })
    }
    const others = [...records].filter(([key, { said }]) => said.gives._tag === "Nothing" && !next.has(key))
    this.now.records = new Map([...others, ...next])
  }

  *end(): Work<Transcript> {
    const steps: Array<Step> = []
    const counted = new Set<string | Said>()
    let seen: ReadonlyArray<Seen> = []
    let messages = 0
    let model: string | undefined
    for (const { checkpoint, known, records } of [...this.before, this.now]) {
      const flow = new Flow(known)
      const inserted: Array<Draft> = []
      const added: Array<Draft> = []
      for (const [key, { inserted: old, said }] of records) {
        // A checkpoint repeats records; each is counted once.
        if (!counted.has(key)) this.count(said, flow)
        counted.add(key)
        const drafts = flow.take(said)
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
