import type { Author, Draft } from "../Conversation.ts"
import type { Usage } from "../Tokens.ts"
import type { Work } from "../Work.ts"
import {
  answerPiece,
  callPiece,
  draftOf,
  exactPieces,
  isJson,
  type Json,
  locate,
  type Locator,
  type Piece,
  Skipped,
  textAt,
  textPiece,
  thoughtPiece,
  timeAt,
  withoutNote
} from "./Contents.ts"
import { isClosed, markedAuthor, type Marks, type Native, readMarks, Steps, usageOf } from "./Marks.ts"
import type { LineReader, Problem, Transcript } from "./Transcript.ts"

/**
 * Pi sessions: a header, then entries, one a line. Version 1 is a list, versions 2 and 3 are a tree whose last entry is
 * the leaf.
 */

/** What an entry gives the conversation. */
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
      /** What stands in place of what was summarised; of a record of ours that may be nothing. */
      readonly summary: ReadonlyArray<Piece>
      /** An id, or in version 1 the number of a record (the header is 0). */
      readonly firstKept: string | number | undefined
      readonly tokens: number | undefined
    }
  | { readonly _tag: "Nothing"; readonly kind: string }

interface Entry {
  readonly number: number
  /** The number of the record in the file, the header being 0. */
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

const readBlock = (block: unknown, index: number, locator: Locator): Piece | string | undefined => {
  if (!isJson(block) || typeof block.type !== "string")
    return `content[${index}]: expected a block, an object with a type`
  const wrong = (key: string) => `content[${index}].${key}: expected a text in a ${String(block.type)} block`
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

const readBlocks = (
  content: unknown,
  locator: Locator,
  path: ReadonlyArray<string>,
  skipped: Skipped
): ReadonlyArray<Piece> | string => {
  if (typeof content === "string") return [textPiece(content, locator.at(path))]
  if (!Array.isArray(content)) return "content: expected a text or a list of blocks"
  const pieces: Array<Piece> = []
  for (const [index, item] of content.entries()) {
    const piece = readBlock(item, index, locator)
    if (typeof piece === "string") return piece
    if (piece === undefined) skipped.add(`block: ${isJson(item) ? String(item.type) : "unknown"}`)
    else pieces.push(piece)
  }
  return pieces
}

/** A message; in the user's role a note in front says whose words they are when they are not the user's. */
const said = (role: "user" | "model", read: ReadonlyArray<Piece> | string, author?: Author): Gives | string => {
  if (typeof read === "string") return read
  const { author: noted, pieces } =
    role === "user" && author !== "summary" ? withoutNote(read) : { author: undefined, pieces: read }
  return { _tag: "Message", role, author: noted ?? author, answer: false, pieces }
}

const plain = (text: string, locator: Locator, path: ReadonlyArray<string>): ReadonlyArray<Piece> => [
  textPiece(text, locator.at(path))
]

/** A command that the person ran, with what it printed and how it ended. */
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

const readSummary = (record: Json, locator: Locator, path: ReadonlyArray<string>): Gives | string =>
  typeof record.summary === "string"
    ? said("user", plain(record.summary, locator, [...path, "summary"]), "summary")
    : "summary: expected a text"

const readMessage = (message: unknown, record: Json, text: string, skipped: Skipped): Gives | string => {
  if (!isJson(message)) return "message: expected an object with role and content"
  const path = ["message", "content"]
  const locator = locate(record, text, path)
  const blocks = () => readBlocks(message.content, locator, path, skipped)
  switch (message.role) {
    case "user":
      return said("user", blocks())
    case "assistant":
      return said("model", blocks())
    case "toolResult": {
      const { content } = message
      if (content !== undefined && typeof content !== "string" && !Array.isArray(content)) {
        return "message.content: expected a text or a list of blocks"
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
        : said("user", [{ part: { text: bashText(message) }, source: undefined }], "program")
    case "custom":
    case "hookMessage":
      return said("user", blocks(), "program")
    case "branchSummary":
    case "compactionSummary":
      return readSummary(message, locator, ["message"])
    default:
      return nothing(`message: ${String(message.role)}`)
  }
}

const readCompaction = (record: Json, text: string): Gives | string => {
  if (typeof record.summary !== "string") return "summary: expected a text in a compaction"
  const { firstKeptEntryId: id, firstKeptEntryIndex: index, tokensBefore: tokens } = record
  return {
    _tag: "Compaction",
    summary: plain(record.summary, locate(record, text, []), ["summary"]),
    firstKept: typeof id === "string" ? id : typeof index === "number" ? index : undefined,
    tokens: typeof tokens === "number" && tokens > 0 ? tokens : undefined
  }
}

const readNative = (record: Json, text: string, skipped: Skipped): Gives | string => {
  switch (record.type) {
    case "message":
      return readMessage(record.message, record, text, skipped)
    case "compaction":
      return readCompaction(record, text)
    case "branch_summary":
      return readSummary(record, locate(record, text, []), [])
    case "custom_message":
      return said(
        "user",
        readBlocks(record.content, locate(record, text, ["content"]), ["content"], skipped),
        "program"
      )
    default:
      return nothing(textAt(record, "type") ?? "unknown")
  }
}

/** What an entry gives, its exact parts and marks in the place of what its own form says. */
const readGives = (record: Json, text: string, marks: Marks, skipped: Skipped): Gives | string => {
  const gives = readNative(record, text, skipped)
  const exact = exactPieces(record, text, "parts")
  if (typeof gives === "string") return gives
  if (typeof exact === "string") return exact
  if (gives._tag === "Message") {
    return { ...gives, pieces: exact ?? gives.pieces, author: markedAuthor(marks, gives.author) }
  }
  return gives._tag === "Compaction" && exact !== undefined ? { ...gives, summary: exact } : gives
}

/** What the native form of an entry says, its exact parts and marks left aside, for the writer to compare. */
export const nativeEntry = (record: Json, text: string): Native => {
  const gives = readNative(record, text, new Skipped())
  const usage = readUsage(record)
  if (typeof gives === "string" || gives._tag === "Nothing") return { pieces: [], author: undefined, usage }
  return gives._tag === "Compaction"
    ? { pieces: gives.summary, author: "summary", usage }
    : { pieces: gives.pieces, author: gives.author, usage }
}

/** The model of answers that nobody says the model of. */
export const unknownModel = "unknown"

const answerOf = (record: Json): Json | undefined =>
  isJson(record.message) && record.message.role === "assistant" ? record.message : undefined

/** The model that an entry names: a change of model, or whoever answered. */
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
  return isJson(usage)
    ? usageOf({ input: usage.input, cacheRead: usage.cacheRead, cacheWrite: usage.cacheWrite, output: usage.output })
    : undefined
}

/** From the last entry to its root. An unknown parent ends the path: what it led to is not in the file. */
const pathOf = (entries: ReadonlyArray<Entry>, tree: boolean): ReadonlyArray<Entry> | Problem => {
  if (!tree) return entries
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  const seen = new Set<Entry>()
  for (let entry = entries.at(-1); entry !== undefined;) {
    seen.add(entry)
    const parent = entry.parent === null ? undefined : byId.get(entry.parent)
    if (parent !== undefined && seen.has(parent)) {
      return { line: entry.number, message: "its parentId leads back to itself; expected a path that ends at a root" }
    }
    entry = parent
  }
  return [...seen].reverse()
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

/** Entries of one message, and the names of all that stand for it. */
interface Group {
  readonly entries: Array<Entry>
  readonly ids: ReadonlyArray<string | number>
}

const isAnswer = ({ gives }: Entry): boolean => gives._tag === "Message" && gives.answer

const roleOf = ({ gives }: Entry): string | undefined => (gives._tag === "Message" ? gives.role : undefined)

const namesOf = (entry: Entry): ReadonlyArray<string | number> =>
  entry.id === undefined ? [entry.index] : [entry.index, entry.id]

/** The steps of a path: tool results that follow each other are one message. */
class Path {
  private readonly steps = new Steps()
  /** Entries that are no messages: they stand for the message that comes next. */
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
  skipped: Skipped
): Work<Transcript | Problem> {
  const path = pathOf(entries, tree)
  if ("message" in path) return path
  const steps = new Path()
  for (const entry of path) {
    steps.add(entry)
    yield 1_000
  }
  const onPath = new Set(path)
  for (const entry of entries) {
    if (entry.gives._tag === "Nothing") skipped.add(entry.gives.kind)
    else if (!onPath.has(entry)) skipped.add("dead branch")
  }
  return {
    format: "pi",
    session: textAt(header, "id"),
    cwd: textAt(header, "cwd"),
    model: path.findLast((entry) => entry.model !== undefined)?.model ?? textAt(header, "modelId"),
    steps: steps.end(),
    skipped: skipped.counts
  }
}

const newest = 3

const headerProblem = (header: Json): string | undefined => {
  const version = header.version ?? 1
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1) return "version: expected 1, 2 or 3"
  return version > newest ? `Pi session version ${version}; this program reads versions 1 to ${newest}` : undefined
}

/**
 * Reads a Pi session of version 1 to 3. The conversation is the path from the root to the last entry; tool results that
 * follow each other are one Content.
 */
export const piReader = (): LineReader => {
  const skipped = new Skipped()
  const entries: Array<Entry> = []
  const ids = new Set<string>()
  let header: Json | undefined
  let records = 0
  const isTree = () => header !== undefined && typeof header.version === "number" && header.version > 1
  return {
    line: (record, text, number) => {
      if (!isJson(record)) return { line: number, message: "expected an entry: an object with a type" }
      const index = records
      records += 1
      if (record.type === "session") {
        const problem = headerProblem(record)
        if (problem !== undefined) return { line: number, message: problem }
        if (header !== undefined) skipped.add("session")
        header ??= record
        return undefined
      }
      if (header === undefined) {
        return { line: number, message: 'expected the header {"type":"session",…} before any entry' }
      }
      const id = textAt(record, "id")
      if (isTree() && id === undefined) return { line: number, message: "id: expected a text, the id of the entry" }
      if (isTree() && id !== undefined && ids.has(id)) {
        skipped.add("repeated entry")
        return undefined
      }
      const marks = readMarks(record)
      const gives = readGives(record, text, marks, skipped)
      if (typeof gives === "string") return { line: number, message: gives }
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
    end: () => transcript(entries, header ?? {}, isTree(), skipped)
  }
}
