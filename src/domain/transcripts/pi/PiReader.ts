/** Reads Pi sessions: the conversation is the path from the root of a tree to its last entry. */

import type { Author, Draft } from "../../conversation/Conversation.ts"
import type { Json } from "../../text/JsonObject.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { answerPiece, draftOf, locate, type Piece, textPiece, under } from "../ExactParts.ts"
import { kindAt, passOver } from "../JsonRecord.ts"
import { readBlocks } from "../ListedBlocks.ts"
import { isProblem, type Problem, recordProblem } from "../Problem.ts"
import {
  exactPieces,
  isClosed,
  markedAuthor,
  type Marks,
  type Native,
  readMarks,
  Steps,
  splitAuthorNote
} from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import { type LineReader, recordReader, type Transcript } from "../Transcript.ts"
import { authorOf } from "../voice/Voice.ts"
import { decodePi, ignoredKinds, type PiRecord } from "./Record.ts"

/** What an entry says. */
interface Said {
  readonly role: "user" | "model"
  readonly author: Author | undefined
  readonly isResult: boolean
  readonly pieces: ReadonlyArray<Piece>
}

interface Entry {
  readonly number: number
  /** The number of the record in the file, where the header is 0. */
  readonly index: number
  readonly id: string | undefined
  /** null at a root. */
  readonly parent: string | null
  readonly at: number | undefined
  readonly model: string | undefined
  readonly usage: Usage | undefined
  readonly marks: Marks
  /** Undefined for an entry that is no message. That of a compaction may be empty in a record that this program wrote. */
  readonly said: Said | undefined
  readonly compaction:
    | Pick<Extract<PiRecord, { readonly _tag: "Compacted" }>, "firstKept" | "kept" | "tokens">
    | undefined
  readonly kind: string
}

const blockForm = {
  call: "toolCall",
  arguments: "arguments",
  callSignature: "thoughtSignature",
  thoughtSignature: "thinkingSignature"
}

const inUserRole = (author: Author | undefined, pieces: ReadonlyArray<Piece>, isResult = false): Said => ({
  role: "user",
  author,
  isResult,
  pieces
})

const readMessage = (
  decoded: Extract<PiRecord, { readonly _tag: "Message" }>,
  record: Json,
  text: string,
  skipped: Skipped
): Said | Problem => {
  const { by, content, path } = decoded
  const pieces = readBlocks(content, under(locate(record, text), ...path), blockForm, skipped)
  if (isProblem(pieces)) return pieces
  if (by === "model") return { role: "model", author: undefined, isResult: false, pieces }
  // A note in front of a message names an author other than the user.
  const split = splitAuthorNote(pieces)
  const written = by === "program" ? by : authorOf(split.pieces.map(({ part }) => part))
  return inUserRole(split.author ?? written, split.pieces)
}

/** Reads what an entry says by its own form; undefined for one that is no message. */
const readNative = (decoded: PiRecord, record: Json, text: string, skipped: Skipped): Said | Problem | undefined => {
  switch (decoded._tag) {
    case "Message":
      return readMessage(decoded, record, text, skipped)
    case "Result": {
      const { call: id, content, failed, tool: name } = decoded
      if (content !== undefined && typeof content !== "string" && !Array.isArray(content)) {
        return recordProblem("message.content", "expected a text or a list of blocks")
      }
      const exact = locate(record, text)(["message", "content"])
      return inUserRole(undefined, [answerPiece({ id, name, failed, content }, exact)], true)
    }
    case "Command":
      return inUserRole("program", [textPiece(decoded.text, () => undefined)])
    case "Summary":
    case "Compacted":
      return inUserRole("summary", [textPiece(decoded.text, locate(record, text)(decoded.path))])
    case "Broken":
      return decoded.problem
    default:
      return passOver<"Session" | "ModelChanged" | "LevelChanged" | "Titled" | "Other">(decoded)
  }
}

const readSaid = (
  decoded: PiRecord,
  record: Json,
  text: string,
  marks: Marks,
  skipped: Skipped
): Said | Problem | undefined => {
  const said = readNative(decoded, record, text, skipped)
  const exact = exactPieces(record, text, "parts")
  if (said === undefined || isProblem(said)) return said
  if (isProblem(exact)) return exact
  return { ...said, pieces: exact ?? said.pieces, author: markedAuthor(marks, said.author) }
}

const usageOf = (decoded: PiRecord): Usage | undefined => (decoded._tag === "Message" ? decoded.usage : undefined)

/** Reads an entry by its own form, without exact parts and marks, for the writer to compare. */
export const nativeEntry = (record: Json, text: string): Native => {
  const decoded = decodePi(record)
  const said = readNative(decoded, record, text, new Skipped())
  const usage = usageOf(decoded)
  return said === undefined || isProblem(said)
    ? { pieces: [], author: undefined, usage }
    : { pieces: said.pieces, author: said.author, usage }
}

/**
 * Returns the path from the root to the last entry. It begins after an unknown parent, which is not in the file. A lenient path
 * goes on with the entry before the gap, or before a circle.
 */
const pathOf = (entries: ReadonlyArray<Entry>, tree: boolean, isLenient: boolean): ReadonlyArray<Entry> | Problem => {
  if (!tree) return entries
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  const places = new Map(entries.map((entry, place) => [entry, place]))
  const seen = new Set<Entry>()
  let isMended = false
  for (let entry = entries.at(-1); entry !== undefined;) {
    seen.add(entry)
    const parent = entry.parent === null ? undefined : byId.get(entry.parent)
    if (isLenient && entry.parent !== null && (parent === undefined || seen.has(parent))) {
      isMended = true
      let place = (places.get(entry) ?? 0) - 1
      for (entry = entries[place]; entry !== undefined && seen.has(entry); entry = entries[place]) place -= 1
      continue
    }
    if (parent !== undefined && seen.has(parent)) {
      return recordProblem("", "its parentId leads back to itself; expected a path that ends at a root", entry.number)
    }
    entry = parent
  }
  const path = [...seen].reverse()
  return isMended ? path.sort((one, other) => one.number - other.number) : path
}

const draft = (entries: ReadonlyArray<Entry>): Draft => {
  const [first] = entries
  return draftOf(
    first?.said?.role ?? "user",
    entries.flatMap(({ said }) => said?.pieces ?? []),
    {
      at: first?.at,
      author: first?.said?.author,
      line: first?.number ?? 0,
      ids: entries.flatMap(({ id }) => id ?? []),
      model: first?.model,
      usage: entries.find(({ usage }) => usage !== undefined)?.usage
    }
  )
}

/** The entries of one message, and the ids of all entries that belong to it. */
interface Group {
  readonly entries: Array<Entry>
  readonly ids: ReadonlyArray<string | number>
}

const isResult = ({ said }: Entry): boolean => said?.isResult === true

const namesOf = (entry: Entry): ReadonlyArray<string | number> =>
  entry.id === undefined ? [entry.index] : [entry.index, entry.id]

/** Collects the steps of a path. Consecutive tool results are one message. */
class Path {
  private readonly steps = new Steps()
  /** Entries that are not messages. Their ids refer to the next message. */
  private waiting: Array<string | number> = []
  /** The numbers of the records that are messages. */
  private readonly messages: Array<number> = []
  private group: Group | undefined

  add(entry: Entry): void {
    if (entry.said !== undefined && entry.compaction === undefined) this.messages.push(entry.index)
    if (entry.said === undefined) for (const each of namesOf(entry)) this.waiting.push(each)
    else if (entry.compaction !== undefined) this.compact(entry, entry.compaction)
    else if (this.group !== undefined && this.goesOn(this.group, entry)) this.group.entries.push(entry)
    else {
      this.flush()
      this.group = { entries: [entry], ids: this.waiting }
      this.waiting = []
    }
  }

  end(): Transcript["steps"] {
    this.flush()
    return this.steps.end()
  }

  /** Whether an entry belongs to the message before it. */
  private goesOn({ entries }: Group, entry: Entry): boolean {
    const [first] = entries
    if (first?.said?.role !== entry.said?.role) return false
    if (entry.marks.message !== undefined) return entry.marks.message === "same"
    return [...entries, entry].every((one) => isResult(one) && !isClosed(one.marks))
  }

  private flush(): void {
    const { group } = this
    const first = group?.entries[0]
    if (group === undefined || first === undefined) return
    this.group = undefined
    this.steps.message(draft(group.entries), [...group.ids, ...group.entries.flatMap(namesOf)], first.marks)
  }

  private compact(entry: Entry, { firstKept, kept, tokens }: NonNullable<Entry["compaction"]>): void {
    this.flush()
    const isEmpty = entry.said?.pieces.length === 0
    this.steps.compact(
      {
        insert: isEmpty ? [] : [{ ...draft([entry]), author: "summary" }],
        trigger: entry.marks.trigger ?? "auto",
        tokensBefore: tokens
      },
      entry.marks,
      firstKept ?? (kept > 0 ? this.messages.at(-kept) : undefined)
    )
  }
}

function* transcript(
  entries: ReadonlyArray<Entry>,
  header: Header | undefined,
  skipped: Skipped,
  isLenient: boolean
): SlicedWork<Transcript | Problem> {
  const path = pathOf(entries, isTree(header), isLenient)
  if (isProblem(path)) return path
  const steps = new Path()
  for (const entry of path) {
    steps.add(entry)
    yield
  }
  const onPath = new Set(path)
  for (const entry of entries) {
    if (entry.said === undefined) skipped.addRecord(entry.kind)
    else if (!onPath.has(entry)) skipped.add("dead branch")
  }
  return {
    format: "pi",
    session: header?.id,
    cwd: header?.folder,
    model: path.findLast((entry) => entry.model !== undefined)?.model ?? header?.model,
    steps: steps.end(),
    skipped: skipped.counts,
    unknown: skipped.unknown("Pi", undefined)
  }
}

type Header = Extract<PiRecord, { readonly _tag: "Session" }>

const newest = 3

const headerProblem = ({ version = 1 }: Header): Problem | undefined => {
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1)
    return recordProblem("version", "expected 1, 2 or 3")
  return version > newest
    ? recordProblem("", `Pi session version ${version}; this program reads versions 1 to ${newest}`)
    : undefined
}

const isTree = (header: Header | undefined): boolean => typeof header?.version === "number" && header.version > 1

/**
 * Reads a Pi session of version 1 to 3. The conversation is the path from the root to the last entry; tool results that
 * follow each other are one Content. `isLenient` reads a path with gaps and circles.
 */
export const piReader = (isLenient = false): LineReader => {
  const skipped = new Skipped(ignoredKinds)
  const entries: Array<Entry> = []
  const ids = new Set<string>()
  let header: Header | undefined
  let records = 0
  const read = (record: Json, text: string, number: number): Problem | undefined => {
    const index = records
    records += 1
    const decoded = decodePi(record)
    if (decoded._tag === "Session") {
      const problem = headerProblem(decoded)
      if (problem !== undefined) return problem
      if (header !== undefined) skipped.add("session")
      header ??= decoded
      return undefined
    }
    if (header === undefined) return recordProblem("", 'expected the header {"type":"session",…} before any entry')
    const { at, id, parent } = decoded
    if (isTree(header) && id === undefined) return recordProblem("id", "expected a text, the id of the entry")
    if (isTree(header) && id !== undefined && ids.has(id)) {
      skipped.add("repeated entry")
      return undefined
    }
    const marks = readMarks(record)
    const said = readSaid(decoded, record, text, marks, skipped)
    if (isProblem(said)) return said
    if (id !== undefined) ids.add(id)
    entries.push({
      number,
      index,
      id,
      parent,
      at,
      model: decoded._tag === "Message" || decoded._tag === "ModelChanged" ? decoded.model : undefined,
      usage: marks.usage ?? usageOf(decoded),
      marks,
      said,
      compaction: decoded._tag === "Compacted" ? decoded : undefined,
      kind: decoded._tag === "Other" ? decoded.kind : kindAt(record)
    })
    return undefined
  }
  const end = () => transcript(entries, header, skipped, isLenient)
  return recordReader("expected an entry: an object with a type", read, end)
}
