import type { Author, Draft } from "../../conversation/Conversation.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { splitAuthorNote } from "../AuthorNote.ts"
import {
  answerPiece,
  callPiece,
  draftOf,
  locate,
  type Locator,
  type Piece,
  textPiece,
  thoughtPiece
} from "../ExactParts.ts"
import { isJson, type Json, textAt, timeAt } from "../JsonRecord.ts"
import { readBlocks } from "../ListedBlocks.ts"
import { isProblem, isRecordProblem, type Problem, problemAt, recordProblem, type RecordProblem } from "../Problem.ts"
import { exactPieces } from "../RecordLine.ts"
import { isClosed, markedAuthor, type Marks, type Native, readMarks, Steps } from "../RecordMarks.ts"
import { piUsage } from "../RecordUsage.ts"
import { Skipped } from "../Skipped.ts"
import type { LineReader, Transcript } from "../Transcript.ts"
import { authorOf } from "../voice/Voice.ts"

/**
 * Reads Pi sessions: a header, then entries, one a line. Version 1 is a list, versions 2 and 3 are a tree whose last entry
 * is the leaf.
 *
 * One file: the blocks, entries and tree of one format.
 */

/** Entries that this program knows and does not read. */
export const ignoredKinds: ReadonlySet<string> = new Set([
  "thinking_level_change",
  "model_change",
  "custom",
  "label",
  "leaf",
  "session_info",
  "bash left out of context"
])

/** The content that an entry adds to the conversation. */
type Gives =
  | {
      readonly _tag: "Message"
      readonly role: "user" | "model"
      readonly author: Author | undefined
      readonly answer: boolean
      readonly pieces: ReadonlyArray<Piece>
    }
  | {
      readonly _tag: "Compaction"
      /** Replaces the summarised messages. It may be empty in a record that this program wrote. */
      readonly summary: ReadonlyArray<Piece>
      /** An id, or in version 1 the number of a record (the header is 0). */
      readonly firstKept: string | number | undefined
      readonly tokens: number | undefined
    }
  | { readonly _tag: "Nothing"; readonly kind: string }

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
  readonly gives: Gives
}

const nothing = (kind: string): Gives => ({ _tag: "Nothing", kind })

const readBlock = (block: unknown, index: number, locator: Locator): Piece | RecordProblem | undefined => {
  if (!isJson(block) || typeof block.type !== "string")
    return recordProblem(`content[${index}]`, "expected a block, an object with a type")
  const wrong = (key: string) =>
    recordProblem(`content[${index}].${key}`, `expected a text in a ${String(block.type)} block`)
  switch (block.type) {
    case "text":
      return typeof block.text === "string" ? textPiece(block.text, locator.under(index, "text")) : wrong("text")
    case "thinking":
      return typeof block.thinking === "string"
        ? thoughtPiece(block.thinking, textAt(block, "thinkingSignature"), locator.under(index, "thinking"))
        : wrong("thinking")
    case "toolCall":
      return typeof block.name === "string"
        ? callPiece(
            {
              id: textAt(block, "id"),
              name: block.name,
              args: block.arguments,
              signature: textAt(block, "thoughtSignature")
            },
            locator.under(index, "arguments")
          )
        : wrong("name")
    case "image": {
      const mimeType = textAt(block, "mimeType")
      return typeof block.data === "string"
        ? {
            part: { inlineData: { ...(mimeType === undefined ? {} : { mimeType }), data: block.data } },
            source: undefined
          }
        : wrong("data")
    }
    default:
      return undefined
  }
}

const readContent = (
  content: unknown,
  locator: Locator,
  path: ReadonlyArray<string>,
  skipped: Skipped
): ReadonlyArray<Piece> | RecordProblem =>
  readBlocks<Piece>(
    content,
    (text) => textPiece(text, locator.at(path)),
    (block, index) => readBlock(block, index, locator),
    skipped
  )

/** Reads a message. A note in front of a user message names an author other than the user. */
const spokenBy = (
  role: "user" | "model",
  read: ReadonlyArray<Piece> | RecordProblem,
  author?: Author
): Gives | RecordProblem => {
  if (isRecordProblem(read)) return read
  const { author: noted, pieces } =
    role === "user" && author !== "summary" ? splitAuthorNote(read) : { author: undefined, pieces: read }
  const written = role === "user" ? authorOf(pieces.map(({ part }) => part)) : undefined
  return { _tag: "Message", role, author: noted ?? author ?? written, answer: false, pieces }
}

const plain = (text: string, locator: Locator, path: ReadonlyArray<string>): ReadonlyArray<Piece> => [
  textPiece(text, locator.at(path))
]

/** Returns the text of a command that the user ran, with its output and exit code. */
const bashText = (message: Json): string => {
  const output = textAt(message, "output") ?? ""
  const file = textAt(message, "fullOutputPath")
  const code = message.exitCode
  return [
    `$ ${textAt(message, "command") ?? ""}`,
    output === "" ? "(no output)" : output,
    ...(message.cancelled === true ? ["(cancelled)"] : []),
    ...(typeof code === "number" ? [`exit code ${code}`] : []),
    ...(message.truncated === true && file !== undefined ? [`full output: ${file}`] : [])
  ].join("\n")
}

const readSummary = (record: Json, locator: Locator, path: ReadonlyArray<string>): Gives | RecordProblem =>
  typeof record.summary === "string"
    ? spokenBy("user", plain(record.summary, locator, [...path, "summary"]), "summary")
    : recordProblem("summary", "expected a text")

const readMessage = (message: unknown, record: Json, text: string, skipped: Skipped): Gives | RecordProblem => {
  if (!isJson(message)) return recordProblem("message", "expected an object with role and content")
  const path = ["message", "content"]
  const locator = locate(record, text, path)
  const blocks = () => readContent(message.content, locator, path, skipped)
  switch (message.role) {
    case "user":
      return spokenBy("user", blocks())
    case "assistant":
      return spokenBy("model", blocks())
    case "toolResult": {
      const { content } = message
      if (content !== undefined && typeof content !== "string" && !Array.isArray(content)) {
        return recordProblem("message.content", "expected a text or a list of blocks")
      }
      const answer = {
        id: textAt(message, "toolCallId"),
        name: textAt(message, "toolName"),
        failed: message.isError === true,
        content
      }
      return {
        _tag: "Message",
        role: "user",
        author: undefined,
        answer: true,
        pieces: [answerPiece(answer, locator.at(path))]
      }
    }
    case "bashExecution":
      return message.excludeFromContext === true
        ? nothing("bash left out of context")
        : spokenBy("user", [{ part: { text: bashText(message) }, source: undefined }], "program")
    case "custom":
    case "hookMessage":
      return spokenBy("user", blocks(), "program")
    case "branchSummary":
    case "compactionSummary":
      return readSummary(message, locator, ["message"])
    default:
      return nothing(`message: ${String(message.role)}`)
  }
}

const readCompaction = (record: Json, text: string): Gives | RecordProblem => {
  if (typeof record.summary !== "string") return recordProblem("summary", "expected a text in a compaction")
  const { firstKeptEntryId: id, firstKeptEntryIndex: index, tokensBefore: tokens } = record
  return {
    _tag: "Compaction",
    summary: plain(record.summary, locate(record, text, []), ["summary"]),
    firstKept: typeof id === "string" ? id : typeof index === "number" ? index : undefined,
    tokens: typeof tokens === "number" && tokens > 0 ? tokens : undefined
  }
}

const readNative = (record: Json, text: string, skipped: Skipped): Gives | RecordProblem => {
  switch (record.type) {
    case "message":
      return readMessage(record.message, record, text, skipped)
    case "compaction":
      return readCompaction(record, text)
    case "branch_summary":
      return readSummary(record, locate(record, text, []), [])
    case "custom_message":
      return spokenBy(
        "user",
        readContent(record.content, locate(record, text, ["content"]), ["content"], skipped),
        "program"
      )
    default:
      return nothing(textAt(record, "type") ?? "unknown")
  }
}

/** Reads the content of an entry, with its exact parts and marks in place of its own form. */
const readGives = (record: Json, text: string, marks: Marks, skipped: Skipped): Gives | RecordProblem => {
  const gives = readNative(record, text, skipped)
  const exact = exactPieces(record, text, "parts")
  if (isRecordProblem(gives)) return gives
  if (isRecordProblem(exact)) return exact
  if (gives._tag === "Message") {
    return { ...gives, pieces: exact ?? gives.pieces, author: markedAuthor(marks, gives.author) }
  }
  return gives._tag === "Compaction" && exact !== undefined ? { ...gives, summary: exact } : gives
}

/** Reads an entry by its own form, without exact parts and marks, for the writer to compare. */
export const nativeEntry = (record: Json, text: string): Native => {
  const gives = readNative(record, text, new Skipped())
  const usage = readUsage(record)
  if (isRecordProblem(gives) || gives._tag === "Nothing") return { pieces: [], author: undefined, usage }
  return gives._tag === "Compaction"
    ? { pieces: gives.summary, author: "summary", usage }
    : { pieces: gives.pieces, author: gives.author, usage }
}

/** The model of answers without a model. */
export const unknownModel = "unknown"

const answerOf = (record: Json): Json | undefined =>
  isJson(record.message) && record.message.role === "assistant" ? record.message : undefined

/** Returns the model that an entry names: that of a model change, or of an answer. */
const modelOf = (record: Json): string | undefined => {
  const answer = answerOf(record)
  const model =
    record.type === "model_change"
      ? textAt(record, "modelId")
      : answer === undefined
        ? undefined
        : textAt(answer, "model")
  return model === unknownModel ? undefined : model
}

const readUsage = (record: Json): Usage | undefined => {
  const usage = answerOf(record)?.usage
  return isJson(usage) ? piUsage(usage) : undefined
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
      return problemAt(
        entry.number,
        recordProblem("", "its parentId leads back to itself; expected a path that ends at a root")
      )
    }
    entry = parent
  }
  const path = [...seen].reverse()
  return isMended ? path.sort((one, other) => one.number - other.number) : path
}

const draft = (entries: ReadonlyArray<Entry>): Draft => {
  const first = entries[0]
  const gives = entries.flatMap((entry) => (entry.gives._tag === "Message" ? entry.gives : []))
  return draftOf(
    gives[0]?.role ?? "user",
    gives.flatMap((one) => one.pieces),
    {
      at: first?.at,
      author: gives[0]?.author,
      line: first?.number ?? 0,
      ids: entries.flatMap((entry) => entry.id ?? []),
      model: first?.model,
      usage: entries.find((entry) => entry.usage !== undefined)?.usage
    }
  )
}

/** The entries of one message, and the ids of all entries that belong to it. */
interface Group {
  readonly entries: Array<Entry>
  readonly ids: ReadonlyArray<string | number>
}

const isAnswer = ({ gives }: Entry): boolean => gives._tag === "Message" && gives.answer

const roleOf = ({ gives }: Entry): string | undefined => (gives._tag === "Message" ? gives.role : undefined)

const namesOf = (entry: Entry): ReadonlyArray<string | number> =>
  entry.id === undefined ? [entry.index] : [entry.index, entry.id]

/** Collects the steps of a path. Consecutive tool results are one message. */
class Path {
  private readonly steps = new Steps()
  /** Entries that are not messages. Their ids refer to the next message. */
  private waiting: Array<string | number> = []
  private group: Group | undefined

  add(entry: Entry): void {
    const { gives } = entry
    if (gives._tag === "Nothing") this.waiting.push(...namesOf(entry))
    else if (gives._tag === "Compaction") this.compact(entry, gives)
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
    if (first === undefined || roleOf(first) !== roleOf(entry)) return false
    if (entry.marks.message !== undefined) return entry.marks.message === "same"
    return !isClosed(first.marks) && !isClosed(entry.marks) && entries.every(isAnswer) && isAnswer(entry)
  }

  private flush(): void {
    const { group } = this
    const first = group?.entries[0]
    if (group === undefined || first === undefined) return
    this.group = undefined
    this.steps.message(draft(group.entries), [...group.ids, ...group.entries.flatMap(namesOf)], first.marks)
  }

  private compact(entry: Entry, gives: Extract<Gives, { readonly _tag: "Compaction" }>): void {
    this.flush()
    const summary = draftOf("user", gives.summary, {
      at: entry.at,
      author: "summary",
      line: entry.number,
      ids: entry.id === undefined ? [] : [entry.id],
      usage: entry.usage
    })
    this.steps.compact(
      {
        insert: gives.summary.length === 0 ? [] : [summary],
        trigger: entry.marks.trigger ?? "auto",
        tokensBefore: gives.tokens
      },
      entry.marks,
      gives.firstKept
    )
  }
}

function* transcript(
  entries: ReadonlyArray<Entry>,
  header: Json,
  tree: boolean,
  skipped: Skipped,
  isLenient: boolean
): SlicedWork<Transcript | Problem> {
  const path = pathOf(entries, tree, isLenient)
  if (isProblem(path)) return path
  const steps = new Path()
  for (const entry of path) {
    steps.add(entry)
    yield 1_000
  }
  const onPath = new Set(path)
  for (const entry of entries) {
    if (entry.gives._tag === "Nothing") skipped.addRecord(entry.gives.kind)
    else if (!onPath.has(entry)) skipped.add("dead branch")
  }
  return {
    format: "pi",
    session: textAt(header, "id"),
    cwd: textAt(header, "cwd"),
    model: path.findLast((entry) => entry.model !== undefined)?.model ?? textAt(header, "modelId"),
    steps: steps.end(),
    skipped: skipped.counts,
    unknown: skipped.unknown("Pi", undefined)
  }
}

const newest = 3

const headerProblem = (header: Json): RecordProblem | undefined => {
  const version = header.version ?? 1
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1)
    return recordProblem("version", "expected 1, 2 or 3")
  return version > newest
    ? recordProblem("", `Pi session version ${version}; this program reads versions 1 to ${newest}`)
    : undefined
}

/**
 * Reads a Pi session of version 1 to 3. The conversation is the path from the root to the last entry; tool results that
 * follow each other are one Content. `isLenient` reads a path with gaps and circles.
 */
export const piReader = (isLenient = false): LineReader => {
  const skipped = new Skipped(ignoredKinds)
  const entries: Array<Entry> = []
  const ids = new Set<string>()
  let header: Json | undefined
  let records = 0
  const isTree = () => header !== undefined && typeof header.version === "number" && header.version > 1
  return {
    line: (record, text, number) => {
      if (!isJson(record)) return problemAt(number, recordProblem("", "expected an entry: an object with a type"))
      const index = records
      records += 1
      if (record.type === "session") {
        const problem = headerProblem(record)
        if (problem !== undefined) return problemAt(number, problem)
        if (header !== undefined) skipped.add("session")
        header ??= record
        return undefined
      }
      if (header === undefined) {
        return problemAt(number, recordProblem("", 'expected the header {"type":"session",…} before any entry'))
      }
      const id = textAt(record, "id")
      if (isTree() && id === undefined)
        return problemAt(number, recordProblem("id", "expected a text, the id of the entry"))
      if (isTree() && id !== undefined && ids.has(id)) {
        skipped.add("repeated entry")
        return undefined
      }
      const marks = readMarks(record)
      const gives = readGives(record, text, marks, skipped)
      if (isRecordProblem(gives)) return problemAt(number, gives)
      if (id !== undefined) ids.add(id)
      entries.push({
        number,
        index,
        id,
        parent: textAt(record, "parentId") ?? null,
        at: timeAt(record) ?? (isJson(record.message) ? timeAt(record.message) : undefined),
        model: modelOf(record),
        usage: marks.usage ?? readUsage(record),
        marks,
        gives
      })
      return undefined
    },
    end: () => transcript(entries, header ?? {}, isTree(), skipped, isLenient)
  }
}
