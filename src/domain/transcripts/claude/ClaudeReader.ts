import type { Author, Draft } from "../../conversation/Conversation.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { splitAuthorNote } from "../AuthorNote.ts"
import {
  type Answer,
  answerPiece,
  callPiece,
  draftOf,
  type Exact,
  locate,
  type Locator,
  needsExact,
  type Piece,
  textPiece,
  thoughtPiece
} from "../ExactParts.ts"
import { isJson, type Json, textAt, timeAt } from "../JsonRecord.ts"
import { readBlocks } from "../ListedBlocks.ts"
import {
  isProblem,
  isRecordProblem,
  type Problem,
  problemAt,
  problemUnder,
  recordProblem,
  type RecordProblem
} from "../Problem.ts"
import { exactPieces } from "../RecordLine.ts"
import { isClosed, markedAuthor, type Marks, type Native, readMarks, Steps } from "../RecordMarks.ts"
import { claudeUsage } from "../RecordUsage.ts"
import { Skipped } from "../Skipped.ts"
import type { LineReader, Transcript } from "../Transcript.ts"
import { authorOf } from "../voice/Voice.ts"

/**
 * Reads Claude Code transcripts: a tree of records, one a line. The conversation is the chain from the last message back to
 * its root.
 *
 * One file: the blocks, queue and tree of one format, which refer to each other's lines.
 */

/** A block of a message. A tool result waits for the name of its call. */
type Block =
  | {
      readonly _tag: "Piece"
      readonly piece: Piece
      readonly call: string | undefined
      readonly name: string | undefined
    }
  | { readonly _tag: "Answer"; readonly answer: Answer; readonly exact: Exact }

/** A message line. */
interface LineMessage {
  readonly role: "user" | "model"
  /** The id that all lines of one API message share. */
  readonly messageId: string
  readonly model: string | undefined
  readonly blocks: ReadonlyArray<Block>
  /** The exact parts, when its blocks do not hold them. */
  readonly exact: ReadonlyArray<Piece> | undefined
  readonly kind: "message" | "program" | "summary" | "api error"
  readonly author: Author | undefined
  readonly usage: Usage | undefined
  readonly marks: Marks
}

/** The content of a compact boundary. */
interface Boundary {
  readonly trigger: "manual" | "auto"
  readonly tokens: number | undefined
}

interface Line {
  readonly number: number
  readonly uuid: string
  /** Whether the record has a uuid of its own. */
  readonly named: boolean
  /** null at a root, undefined when the record does not contain it. */
  readonly parent: string | null | undefined
  readonly logicalParent: string | undefined
  readonly sidechain: boolean
  readonly at: number | undefined
  readonly session: string | undefined
  /** Undefined when the line is only a link of the chain. */
  readonly message: LineMessage | undefined
  readonly boundary: Boundary | undefined
  /** The previous message line in the file, of the same kind of chain. */
  readonly previous: Line | undefined
}

const media = (block: Json): Piece | undefined => {
  const source = isJson(block.source) ? block.source : {}
  const mimeType = textAt(source, "media_type")
  const about = mimeType === undefined ? {} : { mimeType }
  const data = textAt(source, "data")
  const url = textAt(source, "url")
  if (source.type === "base64" && data !== undefined)
    return { part: { inlineData: { ...about, data } }, source: undefined }
  if (source.type === "url" && url !== undefined)
    return { part: { fileData: { ...about, fileUri: url } }, source: undefined }
  return undefined
}

const isAnswer = (block: Block): boolean => block._tag === "Answer"
/** Returns the text of a message, without its other blocks. */
const wordsIn = (blocks: ReadonlyArray<Block>): string =>
  blocks
    .flatMap((block) => (block._tag === "Piece" ? (block.piece.part.text ?? []) : []))
    .join("\n")
    .trim()
const pieceBlock = (piece: Piece): Block => ({ _tag: "Piece", piece, call: undefined, name: undefined })

/** Reads one block of a message; undefined for an unknown kind. */
const readBlock = (block: unknown, index: number, locator: Locator): Block | RecordProblem | undefined => {
  if (!isJson(block) || typeof block.type !== "string")
    return recordProblem(`content[${index}]`, "expected a block, an object with a type")
  const wrong = (key: string, what = "a text") =>
    recordProblem(`content[${index}].${key}`, `expected ${what} in a ${String(block.type)} block`)
  switch (block.type) {
    case "text":
      return typeof block.text === "string"
        ? pieceBlock(textPiece(block.text, locator.under(index, "text")))
        : wrong("text")
    case "thinking":
      return typeof block.thinking === "string"
        ? pieceBlock(thoughtPiece(block.thinking, textAt(block, "signature"), locator.under(index, "thinking")))
        : wrong("thinking")
    case "redacted_thinking":
      return pieceBlock(thoughtPiece("", textAt(block, "data"), () => undefined))
    case "tool_use": {
      if (typeof block.name !== "string") return wrong("name")
      const id = textAt(block, "id")
      const piece = callPiece({ id, name: block.name, args: block.input }, locator.under(index, "input"))
      return { _tag: "Piece", piece, call: id, name: block.name }
    }
    case "tool_result": {
      const { content } = block
      if (content !== undefined && content !== null && typeof content !== "string" && !Array.isArray(content)) {
        return wrong("content", "a text or a list of blocks")
      }
      const answer = { id: textAt(block, "tool_use_id"), name: undefined, failed: block.is_error === true, content }
      const exact = locator.under(index, "content")
      // Taken now, so that the line's text can be released before the name of the call is known.
      const slice = needsExact(content) ? exact() : undefined
      return { _tag: "Answer", answer, exact: () => slice }
    }
    case "image":
    case "document": {
      const piece = media(block)
      return piece === undefined ? undefined : pieceBlock(piece)
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
): ReadonlyArray<Block> | RecordProblem => {
  const blocks = readBlocks<Block>(
    content,
    (text) => pieceBlock(textPiece(text, locator.at(path))),
    (block, index) => readBlock(block, index, locator),
    skipped
  )
  return isRecordProblem(blocks) ? problemUnder("message", blocks) : blocks
}

const kindOf = (record: Json): LineMessage["kind"] =>
  record.isApiErrorMessage === true
    ? "api error"
    : record.isCompactSummary === true
      ? "summary"
      : record.isMeta === true
        ? "program"
        : "message"

/** Returns the author of blocks that hold no words of the user. */
const writtenBy = (blocks: ReadonlyArray<Block>): Author | undefined =>
  blocks.every((block) => block._tag === "Piece")
    ? authorOf(blocks.flatMap((block) => (block._tag === "Piece" ? [block.piece.part] : [])))
    : undefined

/** Returns the author of the blocks of a line, and the blocks without the note that names the author. */
const authored = (
  kind: LineMessage["kind"],
  role: LineMessage["role"],
  blocks: ReadonlyArray<Block>
): { readonly author: Author | undefined; readonly blocks: ReadonlyArray<Block> } => {
  const author = kind === "program" || kind === "summary" ? kind : role === "user" ? writtenBy(blocks) : undefined
  const [first] = blocks
  const note =
    role === "user" && first?._tag === "Piece" && first.call === undefined
      ? splitAuthorNote([first.piece]).author
      : undefined
  return note === undefined
    ? { author, blocks }
    : { author: author === "summary" ? author : note, blocks: blocks.slice(1) }
}

const contentPath = ["message", "content"]

const readMessage = (record: Json, text: string, uuid: string, skipped: Skipped): LineMessage | RecordProblem => {
  const message = record.message
  if (!isJson(message)) return recordProblem("message", "expected an object with role and content")
  const read = readContent(message.content, locate(record, text, contentPath), contentPath, skipped)
  if (isRecordProblem(read)) return read
  const exact = exactPieces(record, text, "parts")
  if (isRecordProblem(exact)) return exact
  const role = record.type === "assistant" ? "model" : "user"
  const kind = kindOf(record)
  const { author, blocks } = authored(kind, role, read)
  const marks = readMarks(record)
  return {
    role,
    messageId: (role === "model" ? textAt(message, "id") : undefined) ?? uuid,
    model: textAt(message, "model"),
    blocks,
    exact,
    kind,
    author: markedAuthor(marks, author),
    usage: marks.usage ?? (isJson(message.usage) ? claudeUsage(message.usage) : undefined),
    marks
  }
}

/** Reads a message that was sent while the agent worked. Newer versions store it as an attachment of the next request. */
const readQueued = (record: Json, text: string, uuid: string, skipped: Skipped): LineMessage | undefined => {
  const { attachment } = record
  if (record.type !== "attachment" || !isJson(attachment) || attachment.type !== "queued_command") return undefined
  const path = ["attachment", "prompt"]
  const blocks = readContent(attachment.prompt, locate(record, text, path), path, skipped)
  if (isRecordProblem(blocks) || blocks.length === 0) return undefined
  const { commandMode } = attachment
  const author =
    commandMode === undefined ? writtenBy(blocks) : commandMode === "task-notification" ? "program" : undefined
  return queuedMessage(blocks, uuid, author)
}

const queuedMessage = (blocks: ReadonlyArray<Block>, uuid: string, author: Author | undefined): LineMessage => ({
  role: "user",
  messageId: uuid,
  model: undefined,
  blocks,
  exact: undefined,
  kind: author === "program" ? "program" : "message",
  author,
  usage: undefined,
  marks: {}
})

const isMessage = (record: Json): boolean => record.type === "user" || record.type === "assistant"
const isBoundary = (record: Json): boolean => record.type === "system" && record.subtype === "compact_boundary"

const kindName = (record: Json): string => {
  const type = textAt(record, "type") ?? "unknown"
  const subtype = textAt(record, "subtype")
  return type === "system" && subtype !== undefined ? `system: ${subtype}` : type
}

const boundaryOf = (record: Json): Line["boundary"] => {
  if (!isBoundary(record)) return undefined
  const { preTokens: tokens, trigger } = isJson(record.compactMetadata) ? record.compactMetadata : {}
  return {
    trigger: trigger === "manual" ? "manual" : "auto",
    tokens: typeof tokens === "number" ? tokens : undefined
  }
}

/** The model of lines that no model wrote. */
export const synthetic = "<synthetic>"

interface Turn {
  readonly _tag: "Model" | "Answers" | "Other"
  readonly lines: Array<Line>
}
type Stretch =
  | Turn
  | { readonly _tag: "Queued"; readonly by: number; readonly lines: ReadonlyArray<Line> }
  | {
      readonly _tag: "Compaction"
      readonly summary: Line
      readonly boundary: Line["boundary"]
      readonly message: LineMessage
    }

const messageOf = (line: Line): LineMessage | undefined =>
  line.message?.kind === "api error" ? undefined : line.message
const answersIn = (line: Line): ReadonlyArray<string> =>
  (messageOf(line)?.blocks ?? []).flatMap((block) => (block._tag === "Answer" ? (block.answer.id ?? []) : []))
const callsIn = (line: Line): ReadonlyArray<string> =>
  (messageOf(line)?.blocks ?? []).flatMap((block) => (block._tag === "Piece" ? (block.call ?? []) : []))

/** Whether a line of the agent may join this turn. */
const isOpenTurn = (turn: Stretch | undefined): turn is Turn => {
  const marks = turn?._tag === "Answers" ? turn.lines[0]?.message?.marks : undefined
  return marks !== undefined && !isClosed(marks)
}

interface Queued {
  readonly number: number
  readonly blocks: ReadonlyArray<Block>
  readonly words: string
}
/** A queued message that was delivered, and its place. */
interface Delivered extends Queued {
  readonly at: number | undefined
  /** The number of the record that delivered it. */
  readonly by: number
  /** The message line before that record. On a dead branch, the message is dead too. */
  readonly after: Line | undefined
}

/** Whether words are a text, or whole lines of it: several messages that wait together become one. */
const holdsLine = (text: string, words: string): boolean => `\n${text}\n`.includes(`\n${words}\n`)

/**
 * Messages that the user typed while the agent worked. A message leaves the queue to be sent with the next request
 * ("remove"), to become a message at the end of the turn ("dequeue"), or because the user takes it back ("popAll").
 */
class Queue {
  readonly delivered: Array<Delivered> = []
  /** Messages that no record took from the queue. */
  waiting: Array<Queued> = []

  /** Adds a record. */
  add(record: Json, text: string, number: number, after: Line | undefined, skipped: Skipped): void {
    skipped.add("queue-operation")
    const { content, operation } = record
    if (operation === "enqueue") {
      const blocks = readContent(content ?? "", locate(record, text, ["content"]), ["content"], skipped)
      if (isRecordProblem(blocks)) return
      this.waiting.push({ number, blocks, words: wordsIn(blocks) })
    } else if (operation === "popAll") this.takeBack(content)
    else {
      const named = typeof content === "string" ? this.waiting.findIndex(({ words }) => words === content.trim()) : 0
      const [first] = named < 0 ? [] : this.waiting.splice(named, 1)
      if (first !== undefined && first.words !== "") {
        this.delivered.push({ ...first, at: timeAt(record), by: number, after })
      }
    }
  }

  /** Removes the messages with these words; all where that names none. Notifications of programs stay in the queue. */
  private takeBack(content: unknown): void {
    const isNamed = ({ words }: Queued) => typeof content === "string" && holdsLine(content.trim(), words)
    const isDelivered = this.waiting.some(isNamed) ? isNamed : () => true
    this.waiting = this.waiting.filter((queued) => !isDelivered(queued))
  }
}

/** The tree of records read so far. */
class Tree {
  readonly lines = new Map<string, Line>()
  readonly messages: Array<Line> = []
  private readonly last: Record<"main" | "side", Line | undefined> = { main: undefined, side: undefined }

  /** Returns the message line before the next record. */
  previous(sidechain: boolean): Line | undefined {
    return this.last[sidechain ? "side" : "main"]
  }

  add(line: Line): void {
    this.lines.set(line.uuid, line)
    if (line.message === undefined) return
    this.messages.push(line)
    this.last[line.sidechain ? "side" : "main"] = line
  }

  /** The last message. A file with only a sidechain is a subagent's own transcript. */
  get leaf(): Line | undefined {
    return this.last.main ?? this.last.side
  }

  /**
   * Returns the line before this one in the conversation. An unknown parent means that lines are missing from the file; the
   * nearest earlier message continues the chain, so that the messages before the gap are kept. A root ends the chain, unless
   * a compaction began a new one.
   */
  before(line: Line): { readonly line: Line | undefined; readonly guessed: boolean } {
    const compaction = line.boundary !== undefined || line.message?.kind === "summary"
    if (line.parent === null && !compaction) return { line: undefined, guessed: false }
    const known = this.lines.get(line.parent ?? line.logicalParent ?? "")
    return known === undefined ? { line: line.previous, guessed: true } : { line: known, guessed: false }
  }

  /** Returns the conversation from its first line to the leaf. A lenient chain goes over a circle to the line before it. */
  chain(isLenient: boolean): ReadonlyArray<Line> | Problem {
    const seen = new Set<Line>()
    let isMended = false
    for (let line = this.leaf; line !== undefined;) {
      seen.add(line)
      const next = this.before(line)
      if (next.line !== undefined && seen.has(next.line)) {
        if (isLenient) {
          isMended = true
          do line = line.previous
          while (line !== undefined && seen.has(line))
          continue
        }
        if (next.guessed) break
        return problemAt(
          line.number,
          recordProblem("", "its parentUuid leads back to itself; expected a chain that ends at a root")
        )
      }
      line = next.line
    }
    const chain = [...seen].reverse()
    return isMended ? chain.sort((one, other) => one.number - other.number) : chain
  }
}

/** Splits the chain into turns. Lines of one API message form one turn, and so do consecutive tool results. */
const stretchesOf = (chain: ReadonlyArray<Line>, skipped: Skipped): Array<Stretch> => {
  const stretches: Array<Stretch> = []
  let open = new Map<string, Turn>()
  let boundary: Line | undefined
  const dropBoundary = () => {
    if (boundary !== undefined) skipped.add("system: compact_boundary")
    boundary = undefined
  }
  for (const line of chain) {
    if (line.boundary !== undefined) {
      dropBoundary()
      boundary = line
      continue
    }
    const message = messageOf(line)
    if (message === undefined) continue
    if (message.kind === "summary") {
      stretches.push({ _tag: "Compaction", summary: line, boundary: boundary?.boundary, message })
      boundary = undefined
      open = new Map()
      continue
    }
    dropBoundary()
    const answers = message.role === "user" && message.blocks.some(isAnswer)
    const last = stretches.at(-1)
    const apart = message.marks.message === "new"
    const same = message.role === "model" ? open.get(message.messageId) : answers && isOpenTurn(last) ? last : undefined
    if (same !== undefined && !apart) {
      same.lines.push(line)
      continue
    }
    const turn: Turn = { _tag: message.role === "model" ? "Model" : answers ? "Answers" : "Other", lines: [line] }
    if (message.role === "model" && !isClosed(message.marks)) open.set(message.messageId, turn)
    stretches.push(turn)
  }
  dropBoundary()
  return stretches
}

/**
 * Adds the lines beside the chain to their turns. Parallel calls and their results hang on different lines of one message,
 * of which only one is on the chain. The others are lines with the turn's message id, and results of its calls that no line
 * on the chain holds.
 */
const gather = (stretches: Array<Stretch>, aside: ReadonlyArray<Line>): ReadonlySet<Line> => {
  const used = new Set<Line>()
  const byMessage = new Map<string, Turn>()
  for (const turn of stretches) {
    const message = turn._tag === "Model" ? turn.lines[0]?.message?.messageId : undefined
    if (turn._tag === "Model" && message !== undefined && !byMessage.has(message)) byMessage.set(message, turn)
  }
  for (const line of aside) {
    const turn = messageOf(line)?.role === "model" ? byMessage.get(line.message?.messageId ?? "") : undefined
    if (turn === undefined) continue
    turn.lines.push(line)
    used.add(line)
  }
  const callers = new Map<string, Stretch>()
  const answered = new Set<string>()
  for (const turn of stretches) {
    if (turn._tag === "Compaction") continue
    for (const line of turn.lines) {
      for (const call of callsIn(line)) callers.set(call, turn)
      for (const answer of answersIn(line)) answered.add(answer)
    }
  }
  const late = new Map<Stretch, Array<Line>>()
  for (const line of aside) {
    const ids = answersIn(line)
    const caller = ids.flatMap((id) => callers.get(id) ?? [])[0]
    if (caller === undefined || ids.some((id) => answered.has(id))) continue
    for (const id of ids) answered.add(id)
    late.set(caller, [...(late.get(caller) ?? []), line])
    used.add(line)
  }
  for (const [caller, lines] of late) {
    const at = stretches.indexOf(caller) + 1
    const next = stretches[at]
    if (isOpenTurn(next)) next.lines.push(...lines)
    else stretches.splice(at, 0, { _tag: "Answers", lines })
  }
  return used
}

/** Returns the text of a slash command, which has its own form. */
const commandOf = (words: string): string | undefined => {
  const [name] = words.startsWith("/") ? words.split(/\s/, 1) : []
  return name === undefined ? undefined : `<command-name>${name}</command-name>`
}

/**
 * Inserts queued messages where they were delivered: after the results sent with them, before the agent's next text.
 * Messages that are in the file a second time are left out. Returns the number of records that told of messages of the
 * conversation.
 */
function* deliver(
  stretches: Array<Stretch>,
  { delivered, waiting }: Queue,
  messages: ReadonlyArray<Line>,
  taken: ReadonlySet<Line>
): SlicedWork<number> {
  const standing = messages.flatMap((line) => {
    const message = messageOf(line)
    const isUser = message?.role === "user" && message.kind !== "summary"
    return isUser ? [{ line, words: wordsIn(message.blocks) }] : []
  })
  const used = new Set<Line>()
  let records = 0
  for (const { after, at, blocks, by, number, words } of delivered) {
    if (after !== undefined && !taken.has(after)) continue
    // The record that put it into the queue, and the one that took it out.
    records += 2
    yield (standing.length + stretches.length) * 4
    const answer = numberOf(stretches.find((stretch) => stretch._tag === "Model" && numberOf(stretch) > by))
    const command = commandOf(words)
    const same = standing.find(
      (one) =>
        one.line.number > number &&
        !used.has(one.line) &&
        // Text that the user types after the agent's answer is a new message, even with the same words. A command stands where
        // it ran, which may be at the end of the turn.
        ((one.words === words && one.line.number <= answer) || (command !== undefined && one.words.includes(command)))
    )
    const next = stretches.findIndex((stretch) => stretch._tag !== "Answers" && numberOf(stretch) > by)
    const end = next < 0 ? Infinity : numberOf(stretches[next])
    const within = standing.some(
      (one) => one.line.number > by && one.line.number <= end && !used.has(one.line) && holdsLine(one.words, words)
    )
    if (same !== undefined) used.add(same.line)
    if (same !== undefined || within) continue
    const uuid = `line ${number}`
    const message = queuedMessage(blocks, uuid, writtenBy(blocks))
    const line: Line = {
      number,
      uuid,
      named: false,
      parent: undefined,
      logicalParent: undefined,
      sidechain: after?.sidechain ?? false,
      at,
      session: undefined,
      message,
      boundary: undefined,
      previous: after
    }
    stretches.splice(next < 0 ? stretches.length : next, 0, { _tag: "Queued", by, lines: [line] })
  }
  // Older versions wrote no second record for a message that began the next turn.
  const isStanding = ({ number, words }: Queued) =>
    words !== "" &&
    standing.some(({ line, words: known }) => line.number > number && taken.has(line) && known === words)
  for (const queued of waiting) {
    yield standing.length
    if (isStanding(queued)) records += 1
  }
  return records
}

/** Returns the number of the first record of a stretch. */
const numberOf = (stretch: Stretch | undefined): number => {
  if (stretch === undefined) return Infinity
  if (stretch._tag === "Queued") return stretch.by
  const lines = stretch._tag === "Compaction" ? [stretch.summary] : stretch.lines
  return Math.min(...lines.map(({ number }) => number))
}

/** Returns the pieces of a line. `names`: of calls, by id. */
const piecesOf = (message: LineMessage | undefined, names: ReadonlyMap<string, string>): ReadonlyArray<Piece> =>
  message?.exact ??
  (message?.blocks ?? []).map((block) =>
    block._tag === "Piece"
      ? block.piece
      : answerPiece({ ...block.answer, name: names.get(block.answer.id ?? "") }, block.exact)
  )

const isSynthetic = (model: string | undefined): boolean => model === undefined || model === synthetic

const draft = (lines: ReadonlyArray<Line>, names: ReadonlyMap<string, string>): Draft => {
  const inFileOrder = [...lines].sort((a, b) => a.number - b.number)
  const first = inFileOrder[0]
  const author = first?.message?.author
  return draftOf(
    first?.message?.role ?? "user",
    inFileOrder.flatMap((line) => piecesOf(line.message, names)),
    {
      at: first?.at,
      author: lines.every((line) => line.message?.author === author) ? author : undefined,
      line: first?.number ?? 0,
      ids: inFileOrder.flatMap((line) => (line.named ? line.uuid : [])),
      model: inFileOrder.findLast((line) => !isSynthetic(line.message?.model))?.message?.model,
      usage: inFileOrder.findLast((line) => line.message?.usage !== undefined)?.message?.usage
    }
  )
}

const callsOf = (lines: ReadonlyArray<Line>, names: Map<string, string>): void => {
  for (const line of lines) {
    for (const block of line.message?.blocks ?? []) {
      if (block._tag === "Piece" && block.call !== undefined && block.name !== undefined)
        names.set(block.call, block.name)
    }
  }
}

const compact = (
  steps: Steps,
  { boundary, message, summary }: Extract<Stretch, { readonly _tag: "Compaction" }>,
  names: ReadonlyMap<string, string>
): void =>
  steps.compact(
    {
      // A summary of ours without parts only says that nothing replaced the dropped messages.
      insert: message.exact?.length === 0 ? [] : [draft([summary], names)],
      trigger: boundary?.trigger ?? "auto",
      tokensBefore: boundary?.tokens
    },
    message.marks
  )

/** Counts the messages outside the conversation as skipped. */
const countRest = (tree: Tree, taken: ReadonlySet<Line>, skipped: Skipped): void => {
  const ours = tree.leaf?.sidechain ?? false
  for (const line of tree.messages) {
    if (line.message?.kind === "api error") skipped.add("api error")
    else if (!taken.has(line)) skipped.add(line.sidechain === ours ? "dead branch" : "sidechain")
  }
}

function* transcript(
  tree: Tree,
  queue: Queue,
  cwd: string | undefined,
  skipped: Skipped,
  isLenient: boolean
): SlicedWork<Transcript | Problem> {
  const lines = tree.chain(isLenient)
  if (isProblem(lines)) return lines
  const onChain = new Set(lines)
  const side = tree.leaf?.sidechain ?? false
  const aside = tree.messages.filter((line) => !onChain.has(line) && line.sidechain === side)
  const stretches = stretchesOf(lines, skipped)
  const used = gather(stretches, aside)
  const taken = new Set([...lines, ...used])
  const delivered = yield* deliver(stretches, queue, tree.messages, taken)
  for (let n = delivered; n > 0; n -= 1) skipped.take("queue-operation")
  countRest(tree, taken, skipped)
  for (const line of tree.lines.values()) {
    if (line.boundary !== undefined && !onChain.has(line)) skipped.add("system: compact_boundary")
  }
  // A result is named after the nearest earlier call with its id, else after any other call with it.
  const names = new Map<string, string>()
  callsOf(tree.messages, names)
  yield tree.lines.size * 200
  const steps = new Steps()
  for (const stretch of stretches) {
    if (stretch._tag === "Compaction") compact(steps, stretch, names)
    else {
      callsOf(stretch.lines, names)
      const uuids = stretch.lines.map((line) => line.uuid)
      steps.message(draft(stretch.lines, names), uuids, stretch.lines[0]?.message?.marks ?? {})
    }
    yield 1_000
  }
  return {
    format: "claude",
    session: tree.leaf?.session,
    cwd,
    model: lines.findLast((line) => !isSynthetic(line.message?.model))?.message?.model,
    steps: steps.end(),
    skipped: skipped.counts
  }
}

/**
 * Reads a Claude Code transcript. The conversation is the chain from the last message back by `parentUuid`, over a compact
 * boundary by `logicalParentUuid`; one API message is one Content, and answers to its calls follow it as one Content. `isLenient`
 * reads a chain that leads back to itself.
 */
export const claudeReader = (isLenient = false): LineReader => {
  const tree = new Tree()
  const skipped = new Skipped()
  const queue = new Queue()
  let cwd: string | undefined
  return {
    line: (record, text, number) => {
      if (!isJson(record)) return problemAt(number, recordProblem("", "expected a record: an object with a type"))
      const named = textAt(record, "uuid")
      const uuid = named ?? `line ${number}`
      if (tree.lines.has(uuid)) {
        skipped.add("repeated line")
        return undefined
      }
      if (record.type === "queue-operation") {
        queue.add(record, text, number, tree.previous(false) ?? tree.previous(true), skipped)
        return undefined
      }
      const isOwed = readMarks(record).owed === true
      const message = isOwed
        ? undefined
        : isMessage(record)
          ? readMessage(record, text, uuid, skipped)
          : readQueued(record, text, uuid, skipped)
      if (isRecordProblem(message)) return problemAt(number, message)
      const boundary = boundaryOf(record)
      if (message === undefined && !isOwed && boundary === undefined) skipped.add(kindName(record))
      cwd ??= textAt(record, "cwd")
      if (message === undefined && named === undefined) return undefined
      const sidechain = record.isSidechain === true
      tree.add({
        number,
        uuid,
        named: named !== undefined,
        parent: record.parentUuid === null ? null : textAt(record, "parentUuid"),
        logicalParent: textAt(record, "logicalParentUuid"),
        sidechain,
        at: timeAt(record),
        session: textAt(record, "sessionId"),
        message,
        boundary,
        previous: tree.previous(sidechain)
      })
      return undefined
    },
    end: () => transcript(tree, queue, cwd, skipped, isLenient)
  }
}

/** Reads a line by its own form, without exact parts and marks, for the writer to compare. */
export const nativeMessage = (record: Json, text: string, names: ReadonlyMap<string, string>): Native => {
  const message = readMessage(record, text, "", new Skipped())
  return isRecordProblem(message)
    ? { pieces: [], author: undefined, usage: undefined }
    : { pieces: piecesOf({ ...message, exact: undefined }, names), author: message.author, usage: message.usage }
}
