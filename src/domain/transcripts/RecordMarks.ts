/**
 * Writes the lines of records for other agents, and reads what they carry besides. Under the key `palimpsest`, a record has exact parts and
 * marks for which its own format has no place; a note names an author where a format has no field for it. Records may repeat each
 * other: an agent that sees only what follows a compaction needs the kept messages again after it. `Steps` makes a conversation of them.
 */

import { Schema } from "effect"
import { isPart, payload } from "../content/Content.ts"
import { Author, type Draft } from "../conversation/Conversation.ts"
import { foreignNotes } from "../conversation/Projection.ts"
import { decode, encode } from "../text/Bytes.ts"
import { isJson, type Json } from "../text/JsonObject.ts"
import { arraySlices, sliceAt, type SourceText } from "../text/JsonSource.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { Usage } from "../tokens/Tokens.ts"
import { type Piece, wirePiece, samePieces } from "./ExactParts.ts"
import { type Problem, recordProblem } from "./Problem.ts"
import { type Compaction, type Step, VisibleMessages } from "./Transcript.ts"

/** The key under which a record carries exact parts and marks. */
const extension = "palimpsest"

/** Replaces escapes of single bytes (see Bytes.ts) by these bytes, as they were in the original file. */
const withBytes = (json: string): string => {
  if (!json.includes("\\udc")) return json
  const raw = json.replace(/\\\\|\\u(dc[89a-f][0-9a-f])/g, (match, hex: string | undefined) =>
    hex === undefined ? match : String.fromCharCode(Number.parseInt(hex, 16))
  )
  return decode(encode(raw)).text === raw ? raw : json
}

/**
 * Writes the exact JSON of a part on one line. Content that the handle returns as text has its bytes; content that it
 * returns as JSON keeps its spelling. A source text with line breaks becomes a JSON string of that text.
 */
const exactJson = ({ part, source }: Piece): string => {
  if (source !== undefined) return /[\r\n]/.test(source) ? withBytes(JSON.stringify(source)) : source
  return payload(part).form === "text" ? withBytes(JSON.stringify(part)) : JSON.stringify(part)
}

/**
 * Writes a record as a line of its format. `exact` holds, by name, parts that the record's own form would not return exactly
 * (`exactPieces` reads them), and `marks` everything else that its own form cannot hold (`marksOf` reads it).
 */
export const recordLine = (
  record: Json,
  exact: Readonly<Record<string, ReadonlyArray<Piece>>> = {},
  marks: Json = {}
): string => {
  const ours = [
    ...Object.entries(marks).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`),
    ...Object.entries(exact).map(([name, pieces]) => `"${name}":[${pieces.map(exactJson).join(",")}]`)
  ]
  const line = withBytes(JSON.stringify(record))
  return ours.length === 0 ? line : `${line.slice(0, -1)},"${extension}":{${ours.join(",")}}}`
}

const none = {}

/** Returns the marks that a record carries. */
export const marksOf = (record: Json): Json => {
  const ours = record[extension]
  return isJson(ours) ? ours : none
}

/** Reads a part, with the text it was read from when that has to be kept; undefined when the value is not a part. */
const exactPiece = (value: unknown, slice: SourceText | undefined): Piece | undefined => {
  if (typeof value === "string") {
    const part = parsedOrUndefined(value)
    return isPart(part) ? { part, source: value } : undefined
  }
  return isPart(value) ? wirePiece(value, slice) : undefined
}

/** Returns the exact parts that a record carries under a name; undefined when its own form is exact. */
export const exactPieces = (record: Json, text: string, name: string): ReadonlyArray<Piece> | Problem | undefined => {
  const list = marksOf(record)[name]
  if (list === undefined) return undefined
  if (!Array.isArray(list)) return recordProblem(`${extension}.${name}`, "expected a list of parts")
  const slices = arraySlices(sliceAt(text, [extension, name]) ?? "")
  const pieces: Array<Piece> = []
  for (const [index, value] of list.entries()) {
    const piece = exactPiece(value, slices[index])
    if (piece === undefined) return recordProblem(`${extension}.${name}[${index}]`, "expected a part")
    pieces.push(piece)
  }
  return pieces
}

const MarksShape = Schema.Struct({
  /** The author; null: the one that the role implies. Absent: the record's own form decides. */
  author: Schema.optionalKey(Schema.NullOr(Author)),
  /** Whether the record opens a message or continues the previous one. Absent: the format's own rule decides. */
  message: Schema.optionalKey(Schema.Literals(["new", "same"])),
  /** The record is one of the messages that the compaction before it inserted. */
  inserted: Schema.optionalKey(Schema.Literal(true)),
  /** The id of the record that this one repeats. */
  again: Schema.optionalKey(Schema.String),
  /** The record answers calls that never got a response, so that the agent can continue. It is not part of the conversation. */
  owed: Schema.optionalKey(Schema.Literal(true)),
  usage: Schema.optionalKey(Usage),
  /** The keys of the message besides its role and its parts. */
  keys: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  /** The trigger of a compaction, when the format has no place for it. */
  trigger: Schema.optionalKey(Schema.Literals(["manual", "auto"]))
})
/** The marks that a record carries under the key `palimpsest`. */
export type Marks = typeof MarksShape.Type

/** A message as its record's own form describes it. */
export interface Native {
  readonly pieces: ReadonlyArray<Piece>
  readonly author: Author | undefined
  readonly usage: Usage | undefined
}

const isMarks = Schema.is(MarksShape)

/** Reads the marks of a record; empty when it has none, or invalid ones. */
export const readMarks = (record: Json): Marks => {
  const marks = marksOf(record)
  // Most records have no marks, and full validation takes longer than reading them.
  return Object.keys(marks).length > 0 && isMarks(marks) ? marks : none
}

/** Whether a record repeats or replaces another, so that no record of the agent itself belongs to the same message. */
export const isClosed = (marks: Marks): boolean => marks.inserted === true || marks.again !== undefined

/** Returns the author from a mark, else the one from the record's own form. */
export const markedAuthor = (marks: Marks, native: Author | undefined): Author | undefined =>
  marks.author === undefined ? native : (marks.author ?? undefined)

/** Returns the mark for keys of a message besides its role and its parts. */
const keysMark = ({ content: { parts: _parts, role: _role, ...keys } }: Draft): Marks =>
  Object.keys(keys).length === 0 ? none : { keys }

const withKeys = (draft: Draft, { keys }: Marks): Draft => {
  const { parts, role } = draft.content
  return keys === undefined ? draft : { ...draft, content: { ...draft.content, ...keys, role, parts } }
}

const sameUsage = (left: Usage | undefined, right: Usage | undefined): boolean =>
  left === right ||
  (left !== undefined &&
    right !== undefined &&
    left.prompt === right.prompt &&
    left.answer === right.answer &&
    left.thoughts === right.thoughts &&
    left.cached === right.cached &&
    left.cacheWrite === right.cacheWrite &&
    left.cacheWriteHour === right.cacheWriteHour)

/** Returns the mark for a usage that the record's own form would lose. */
const usageMark = ({ usage }: Draft, native: Usage | undefined): Marks =>
  usage === undefined || sameUsage(usage, native) ? none : { usage }

/** Returns the author that a note in front of a message names, and the pieces without it. */
export const splitAuthorNote = (
  pieces: ReadonlyArray<Piece>
): { readonly author: Author | undefined; readonly pieces: ReadonlyArray<Piece> } => {
  const first = pieces[0]?.part
  // A note is a plain text: not a thought, and without a signature.
  const note = first !== undefined && Object.keys(first).length === 1 ? first.text : undefined
  const author = note === foreignNotes.summary ? "summary" : note === foreignNotes.program ? "program" : undefined
  return { author, pieces: author === undefined ? pieces : pieces.slice(1) }
}

/** What a line of a message stands for, besides its record. */
export interface LineContent {
  readonly pieces: ReadonlyArray<Piece>
  readonly marks: Marks
  /** The message that begins with this line. */
  readonly opens: Draft | undefined
}

/** Writes a record in its own form, together with everything that a reader of this form would lose. */
export const exactLine = (
  record: Json,
  { marks, opens, pieces }: LineContent,
  readBack: (value: Json, line: string) => Native
): string => {
  const native = recordLine(record)
  // Own JSON: the line was parsed before.
  const value: unknown = JSON.parse(native)
  const read = readBack(isJson(value) ? value : {}, native)
  const all: Marks = {
    ...marks,
    ...(opens === undefined || opens.author === read.author ? {} : { author: opens.author ?? null }),
    ...(opens === undefined ? {} : { ...keysMark(opens), ...usageMark(opens, read.usage) })
  }
  const isExact = samePieces(read.pieces, pieces)
  return isExact && Object.keys(all).length === 0 ? native : recordLine(record, isExact ? {} : { parts: pieces }, all)
}

type Id = string | number
/** A message that repeats another: its draft, the ids of its records, and the number of the original. */
interface Again {
  readonly draft: Draft
  readonly ids: ReadonlyArray<Id>
  readonly number: number
}

/** A compaction whose inserted and repeated messages are still being read. */
interface Open {
  readonly compaction: Omit<Compaction, "_tag">
  readonly inserted: Array<Draft>
  readonly again: Array<Again>
}

const isEnvironment = ({ draft }: Again): boolean => draft.author === "environment"

/**
 * Collects the steps of a conversation from messages in order. Messages marked as repetitions of what a compaction kept
 * become its `keptFrom` again when they repeat all of it; otherwise they are ordinary messages.
 */
export class Steps {
  private readonly view = new VisibleMessages()
  private readonly numbers = new Map<Id, number>()
  /** Records whose ids refer to the next message. */
  private waiting: Array<Id> = []
  private open: Open | undefined

  /** Adds the next message, with the ids of its records. */
  message(said: Draft, ids: ReadonlyArray<Id>, marks: Marks): void {
    const { open } = this
    const draft = withKeys(said, marks)
    if (open !== undefined && marks.inserted === true && open.again.every(isEnvironment)) {
      open.inserted.push(draft)
      for (const each of ids) this.waiting.push(each)
      return
    }
    const own = [...this.waiting, ...ids]
    this.waiting = []
    const number = marks.again === undefined ? undefined : this.numbers.get(marks.again)
    if (open !== undefined && number !== undefined) {
      open.again.push({ draft, ids: own, number })
      return
    }
    this.close()
    this.push(draft, own)
  }

  /** Adds a compaction. `firstKept`: the first record whose message was kept, when the format contains it. */
  compact(compaction: Omit<Compaction, "_tag" | "keptFrom">, marks: Marks, firstKept?: Id): void {
    this.close()
    const keptFrom = firstKept === undefined ? undefined : this.numbers.get(firstKept)
    this.open = {
      compaction: { ...compaction, keptFrom },
      inserted: compaction.insert.map((draft) => withKeys(draft, marks)),
      again: []
    }
  }

  /** Returns all steps. Call it after the last message. */
  end(): ReadonlyArray<Step> {
    this.close()
    return this.view.steps
  }

  private push(draft: Draft, ids: ReadonlyArray<Id>): void {
    for (const id of ids) this.numbers.set(id, this.view.messages)
    this.view.add({ _tag: "Message", draft })
  }

  private close(): void {
    const { open } = this
    if (open === undefined) return
    this.open = undefined
    const { compaction, inserted } = open
    const again = open.again.filter((one) => !isEnvironment(one))
    const { others } = this.view
    const last = others.slice(Math.max(0, others.length - again.length))
    const repeats =
      compaction.keptFrom === undefined && again.every(({ number }, index) => number === last[index]?.message)
    const keptFrom = repeats ? last[0]?.message : compaction.keptFrom
    this.view.add({ _tag: "Compaction", ...compaction, insert: inserted, keptFrom })
    for (const one of open.again) {
      if (!repeats && !isEnvironment(one)) this.push(one.draft, one.ids)
      else for (const id of one.ids) this.numbers.set(id, one.number)
    }
  }
}
