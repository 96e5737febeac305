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
import { isJson, type Json, textAt } from "../JsonRecord.ts"
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
import { Skipped } from "../Skipped.ts"
import type { LineReader, Transcript } from "../Transcript.ts"
import { authorOf } from "../voice/Voice.ts"
import { attachmentPieces } from "./Attachments.ts"
import {
  type Boundary,
  type ClaudeRecord,
  decodeClaude,
  isNewKind,
  kindName,
  type MessageKind,
  synthetic
} from "./Record.ts"

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
  readonly kind: MessageKind | "attachment"
  readonly author: Author | undefined
  readonly usage: Usage | undefined
  readonly marks: Marks
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

/** When something happened, and where it stands in the file. */
interface Moment {
  readonly at: number | undefined
  readonly number: number
}

/** Orders by time, and by place in the file what has no time, or the same: Claude Code appends records late, and copies others. */
const byTime = (one: Moment, other: Moment): number =>
  one.at === undefined || other.at === undefined || one.at === other.at ? one.number - other.number : one.at - other.at
const isBefore = (one: Moment, other: Moment): boolean => byTime(one, other) < 0
/** Returns the first of these in an order. */
const firstBy = <A>(all: ReadonlyArray<A>, order: (one: A, other: A) => number): A | undefined =>
  all.reduce<A | undefined>((found, one) => (found === undefined || order(one, found) < 0 ? one : found), undefined)

const isAttached = ({ message }: Line): boolean => message?.kind === "attachment"
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

/** Returns the author of blocks that hold no words of the user. */
const writtenBy = (blocks: ReadonlyArray<Block>): Author | undefined =>
  blocks.every((block) => block._tag === "Piece")
    ? authorOf(blocks.flatMap((block) => (block._tag === "Piece" ? [block.piece.part] : [])))
    : undefined

/** Returns the author of the blocks of a line, and the blocks without the note that names the author. */
const authored = (
  kind: MessageKind,
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

const readMessage = (
  message: ClaudeRecord & { readonly _tag: "Message" },
  record: Json,
  text: string,
  uuid: string,
  skipped: Skipped
): LineMessage | RecordProblem => {
  const { kind, messageId = uuid, model, role, usage } = message
  const read = readContent(message.content, locate(record, text, contentPath), contentPath, skipped)
  if (isRecordProblem(read)) return read
  const exact = exactPieces(record, text, "parts")
  if (isRecordProblem(exact)) return exact
  const { author, blocks } = authored(kind, role, read)
  const marks = readMarks(record)
  return {
    role,
    messageId,
    model,
    blocks,
    exact,
    kind,
    author: markedAuthor(marks, author),
    usage: marks.usage ?? usage,
    marks
  }
}

/** Reads the message of a record; undefined for one that holds none. */
const messageIn = (
  decoded: ClaudeRecord,
  record: Json,
  text: string,
  uuid: string,
  skipped: Skipped
): LineMessage | RecordProblem | undefined => {
  switch (decoded._tag) {
    case "Message":
      return readMessage(decoded, record, text, uuid, skipped)
    case "Broken":
      return recordProblem("message", "expected an object with role and content")
    case "Attached": {
      const blocks = attachmentPieces(decoded.attachment).map(pieceBlock)
      return blocks.length === 0 ? undefined : { ...queuedMessage(blocks, uuid, "program"), kind: "attachment" }
    }
    case "Sent": {
      const path = ["attachment", "prompt"]
      const blocks = readContent(decoded.prompt, locate(record, text, path), path, skipped)
      if (isRecordProblem(blocks) || blocks.length === 0) return undefined
      const { isProgram } = decoded
      return queuedMessage(
        blocks,
        uuid,
        isProgram === undefined ? writtenBy(blocks) : isProgram ? "program" : undefined
      )
    }
    default:
      return undefined
  }
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

interface Turn {
  readonly _tag: "Model" | "Answers" | "Other"
  readonly lines: Array<Line>
}
type Stretch =
  | Turn
  | { readonly _tag: "Queued"; readonly by: Moment; readonly lines: ReadonlyArray<Line> }
  | {
      readonly _tag: "Compaction"
      readonly summary: Line
      readonly boundary: Line | undefined
      readonly message: LineMessage
    }

const messageOf = (line: Line): LineMessage | undefined =>
  line.message?.kind === "api error" ? undefined : line.message
const answersIn = (line: Line): ReadonlyArray<string> =>
  (messageOf(line)?.blocks ?? []).flatMap((block) => (block._tag === "Answer" ? (block.answer.id ?? []) : []))
const callsIn = (line: Line): ReadonlyArray<string> =>
  (messageOf(line)?.blocks ?? []).flatMap((block) => (block._tag === "Piece" ? (block.call ?? []) : []))

const sameBlock = (one: Block | undefined, other: Block): boolean => JSON.stringify(one) === JSON.stringify(other)

/** Whether two lines of the same message, the user's or the model's, hold the same. Lines that repeat others on purpose do not count. */
const sameContent = (one: Line, other: Line): boolean => {
  const [left, right] = [messageOf(one), messageOf(other)]
  return (
    left !== undefined &&
    right !== undefined &&
    left.role === right.role &&
    !isClosed(left.marks) &&
    !isClosed(right.marks) &&
    left.blocks.length === right.blocks.length &&
    right.blocks.every((block, index) => sameBlock(left.blocks[index], block))
  )
}

/** Returns what two copies of a line have in common besides their content; undefined for a line that cannot be told from others. */
const copyKey = (line: Line): string | undefined => {
  const message = messageOf(line)
  if (message === undefined) return undefined
  if (message.role === "model") return message.messageId === line.uuid ? undefined : `model ${message.messageId}`
  const answers = answersIn(line)
  return answers.length > 0 ? `result ${answers.join(" ")}` : line.at === undefined ? undefined : `user ${line.at}`
}

/**
 * Returns, by line, the first other line of `known` with the same content, of which it is a copy. An agent that resumes a session can append its history again, under
 * other ids.
 */
const copiesOf = (lines: ReadonlyArray<Line>, known: Iterable<Line>): ReadonlyMap<Line, Line> => {
  const byKey = new Map<string, Array<Line>>()
  for (const line of known) {
    const key = copyKey(line)
    if (key !== undefined) byKey.set(key, [...(byKey.get(key) ?? []), line])
  }
  return new Map(
    lines.flatMap((line) => {
      const original = byKey.get(copyKey(line) ?? "")?.find((one) => sameContent(one, line))
      return original === undefined || original === line ? [] : [[line, original] as const]
    })
  )
}

/** Whether a line of the agent may join this turn. */
const isOpenTurn = (turn: Stretch | undefined): turn is Turn => {
  const marks = turn?._tag === "Answers" ? turn.lines[0]?.message?.marks : undefined
  return marks !== undefined && !isClosed(marks)
}

interface Queued extends Moment {
  readonly blocks: ReadonlyArray<Block>
  readonly words: string
}
/** A queued message that was delivered, and its place. */
interface Delivered extends Queued {
  /** The record that delivered it. */
  readonly by: Moment
  /** Whether it began the next turn, as a message of its own. */
  readonly isTurn: boolean
  /** The message line before that record. On a dead branch, the message is dead too. */
  readonly after: Line | undefined
}
interface QueueOperation extends Moment {
  readonly operation: unknown
  readonly content: unknown
  readonly blocks: ReadonlyArray<Block>
}

/** Whether words are a text, or whole lines of it: several messages that wait together become one. */
const holdsLine = (text: string, words: string): boolean => `\n${text}\n`.includes(`\n${words}\n`)

/** Returns the queued messages without those with these words; without all where that names none. Notifications of programs stay in the queue. */
const takenBack = (waiting: ReadonlyArray<Queued>, content: unknown): Array<Queued> => {
  const isNamed = ({ words }: Queued) => typeof content === "string" && holdsLine(content.trim(), words)
  const isOut = waiting.some(isNamed) ? isNamed : () => true
  return waiting.filter((queued) => !isOut(queued))
}

/**
 * Messages that the user typed while the agent worked. A message leaves the queue to be sent with the next request
 * ("remove"), to become a message at the end of the turn ("dequeue"), or because the user takes it back ("popAll").
 */
class Queue {
  private readonly operations: Array<QueueOperation> = []

  /** Adds a record. */
  add(
    { at, content, operation }: ClaudeRecord & { readonly _tag: "Queued" },
    locator: Locator,
    number: number,
    skipped: Skipped
  ): void {
    skipped.add("queue-operation")
    const blocks = operation === "enqueue" ? readContent(content ?? "", locator, ["content"], skipped) : []
    if (!isRecordProblem(blocks)) this.operations.push({ number, at, operation, content, blocks })
  }

  /** Returns the messages that were delivered, and those that no record took from the queue. */
  settle(lines: ReadonlyArray<Line>): {
    readonly delivered: ReadonlyArray<Delivered>
    readonly waiting: ReadonlyArray<Queued>
  } {
    const delivered: Array<Delivered> = []
    let waiting: Array<Queued> = []
    if (this.operations.length === 0) return { delivered, waiting }
    const inOrder = [...lines].sort(byTime)
    let next = 0
    for (const { blocks, content, operation, ...by } of [...this.operations].sort(byTime)) {
      for (let line = inOrder[next]; line !== undefined && !isBefore(by, line); line = inOrder[next]) next += 1
      if (operation === "enqueue") waiting.push({ ...by, blocks, words: wordsIn(blocks) })
      else if (operation === "popAll") waiting = takenBack(waiting, content)
      else {
        const named = typeof content === "string" ? waiting.findIndex(({ words }) => words === content.trim()) : 0
        const [first] = named < 0 ? [] : waiting.splice(named, 1)
        const isTurn = operation === "dequeue"
        if (first !== undefined && first.words !== "")
          delivered.push({ ...first, by, isTurn, after: inOrder[next - 1] })
      }
    }
    return { delivered, waiting }
  }
}

/** The tree of records read so far. */
class Tree {
  readonly lines = new Map<string, Line>()
  readonly messages: Array<Line> = []
  /** The boundaries of compactions that kept messages in their places. */
  private readonly keeping: Array<Line> = []
  private readonly keptBy = new Map<Line, ReadonlySet<string>>()
  /** The messages of the conversation and of subagents by time, once all are read. */
  private inOrder: ReadonlyArray<ReadonlyArray<Line>> | undefined
  private readonly last: Record<"main" | "side", Line | undefined> = { main: undefined, side: undefined }

  /** Returns the message line before the next record. */
  previous(sidechain: boolean): Line | undefined {
    return this.last[sidechain ? "side" : "main"]
  }

  add(line: Line): void {
    this.lines.set(line.uuid, line)
    if (line.boundary?.kept !== undefined) this.keeping.push(line)
    if (line.message === undefined) return
    this.messages.push(line)
    this.last[line.sidechain ? "side" : "main"] = line
  }

  /**
   * The latest message that no other follows, which need not be the last in the file. A file with only a sidechain is a subagent's
   * own transcript.
   */
  leaf(): Line | undefined {
    const sidechain = this.last.main === undefined
    const own = this.messages.filter((line) => line.sidechain === sidechain)
    const followed = new Set(own.map((line) => this.messageBefore(line)))
    const leaves = own.filter((line) => !followed.has(line))
    return firstBy(leaves.length === 0 ? own : leaves, (one, other) => byTime(other, one))
  }

  /** Returns the nearest message on the way from a line to its root. */
  private messageBefore(line: Line): Line | undefined {
    const seen = new Set([line])
    let before = this.before(line).line
    while (before !== undefined && before.message === undefined && !seen.has(before)) {
      seen.add(before)
      before = this.before(before).line
    }
    return before
  }

  /**
   * Returns the line before this one in the conversation. An unknown parent means that lines are missing from the file; the
   * nearest earlier message continues the chain, so that the messages before the gap are kept. A root ends the chain, unless
   * a compaction began a new one.
   */
  before(line: Line): { readonly line: Line | undefined; readonly guessed: boolean } {
    const compaction = line.boundary !== undefined || line.message?.kind === "summary"
    const summary = compaction ? undefined : this.summaryBefore(line)
    if (summary !== undefined) return { line: summary, guessed: false }
    if (line.parent === null && !compaction) return { line: undefined, guessed: false }
    const isFirst = line.boundary?.kept !== undefined && this.kept(line).size === 0
    if (isFirst) return { line: this.earlier(line), guessed: true }
    const known = this.lines.get(line.parent ?? line.logicalParent ?? line.boundary?.kept?.tail ?? "")
    return known === undefined ? { line: this.earlier(line), guessed: true } : { line: known, guessed: false }
  }

  /**
   * Returns the message before a line whose parent is not in the file: the one that stands before it, unless that is later or follows
   * from it; else the last one before it in time.
   */
  private earlier(line: Line): Line | undefined {
    const { at, previous } = line
    if (previous === undefined || (isBefore(previous, line) && !this.follows(previous, line))) return previous
    this.inOrder ??= [false, true].map((side) => this.messages.filter((one) => one.sidechain === side).sort(byTime))
    const own = this.inOrder[line.sidechain ? 1 : 0] ?? []
    const last = at === undefined ? -1 : own.findLastIndex((one) => isBefore(one, line) && !this.follows(one, line))
    return own[last]
  }

  /** Whether a line stands on the way from another one to its root. */
  private follows(line: Line, root: Line): boolean {
    const seen = new Set<Line>()
    let above: Line | undefined = line
    while (above !== undefined && above !== root && !seen.has(above)) {
      seen.add(above)
      above = this.lines.get(above.parent ?? "")
    }
    return above === root
  }

  /** Returns the summary of a compaction that this line follows although its parent is a message that the compaction kept. */
  private summaryBefore(line: Line): Line | undefined {
    const parent = this.lines.get(line.parent ?? "")
    const boundary =
      parent === undefined
        ? undefined
        : this.keeping.findLast(
            (one) => isBefore(one, line) && isBefore(parent, one) && this.kept(one).has(parent.uuid)
          )
    return boundary === undefined
      ? undefined
      : this.messages.find(
          ({ message, parent: above, uuid }) =>
            message?.kind === "summary" && (uuid === boundary.boundary?.kept?.anchor || above === boundary.uuid)
        )
  }

  /** Returns the uuids of the lines that a compaction kept in their places; none when it begins the file, and they stand after it. */
  kept(boundary: Line): ReadonlySet<string> {
    const known = this.keptBy.get(boundary)
    if (known !== undefined) return known
    const segment = boundary.boundary?.kept
    const way = new Set<string>()
    let line = this.lines.get(segment?.tail ?? "")
    while (line !== undefined && line.uuid !== segment?.head && !way.has(line.uuid)) {
      way.add(line.uuid)
      line = this.lines.get(line.parent ?? "")
    }
    const isInPlace = line !== undefined && (line.parent === null || this.lines.has(line.parent ?? ""))
    const kept = new Set(isInPlace && segment !== undefined ? [segment.head, ...way, ...segment.uuids] : [])
    this.keptBy.set(boundary, kept)
    return kept
  }

  /** Returns the conversation from its first line to the leaf. A lenient chain goes over a circle to the line before it. */
  chain(leaf: Line | undefined, isLenient: boolean): ReadonlyArray<Line> | Problem {
    const seen = new Set<Line>()
    let isMended = false
    let isGuessed = false
    for (let line = leaf; line !== undefined;) {
      seen.add(line)
      const next = this.before(line)
      isGuessed ||= next.guessed
      if (next.line !== undefined && seen.has(next.line)) {
        if (isLenient) {
          isMended = true
          do line = line.previous
          while (line !== undefined && seen.has(line))
          continue
        }
        if (isGuessed) break
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
  /** What was shown beside the last message. Results follow their calls at once, so it stands after them. */
  let attached: Array<Line> = []
  const dropBoundary = () => {
    if (boundary !== undefined) skipped.add("system: compact_boundary")
    boundary = undefined
  }
  const attach = () => {
    if (attached.length > 0) stretches.push({ _tag: "Other", lines: attached })
    attached = []
  }
  for (const line of chain) {
    if (line.boundary !== undefined) {
      dropBoundary()
      boundary = line
      continue
    }
    const message = messageOf(line)
    if (message === undefined) continue
    if (message.kind === "attachment") {
      attached.push(line)
      continue
    }
    if (message.kind === "summary") {
      attach()
      stretches.push({ _tag: "Compaction", summary: line, boundary, message })
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
    if (!answers) attach()
    const turn: Turn = { _tag: message.role === "model" ? "Model" : answers ? "Answers" : "Other", lines: [line] }
    if (message.role === "model" && !isClosed(message.marks)) open.set(message.messageId, turn)
    stretches.push(turn)
  }
  dropBoundary()
  attach()
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
  // What was shown with a result that is not on the chain, or whose next result is.
  const holders = new Map<string, Stretch>()
  for (const turn of stretches) if (turn._tag === "Answers") for (const { uuid } of turn.lines) holders.set(uuid, turn)
  for (const line of aside.filter(isAttached).sort(byTime)) {
    const holder = holders.get(line.parent ?? "")
    if (holder === undefined || holder._tag === "Compaction") continue
    const next = holder._tag === "Answers" ? stretches[stretches.indexOf(holder) + 1] : holder
    const [first] = next === undefined || next._tag !== "Other" ? [] : next.lines
    const shown: Turn =
      next?._tag === "Other" && first !== undefined && isAttached(first) ? next : { _tag: "Other", lines: [] }
    if (shown !== next) stretches.splice(stretches.indexOf(holder) + 1, 0, shown)
    shown.lines.push(line)
    holders.set(line.uuid, shown)
    used.add(line)
  }
  return used
}

/** Returns the text of a slash command, which has its own form. */
const commandOf = (words: string): string | undefined => {
  const [name] = words.startsWith("/") ? words.split(/\s/, 1) : []
  return name === undefined ? undefined : `<command-name>${name}</command-name>`
}

/** A message line of the user, and its text. */
interface Standing {
  readonly line: Line
  readonly words: string
}

/** Returns the line that holds a queued message, so that it needs no place of its own. */
const lineOf = (
  { by, isTurn, words, ...queued }: Delivered,
  standing: ReadonlyArray<Standing>,
  stretches: ReadonlyArray<Stretch>,
  next: number
): Standing | undefined => {
  const since = standing.filter(({ line }) => !isBefore(line, queued))
  // One that began the next turn is the next message with its words, or with its words among others.
  const arrival = isTurn ? since.find(({ line }) => !isBefore(line, by))?.line : undefined
  // Text that the user types after the agent's answer is a new message, even with the same words. A command stands where it
  // ran, which may be at the end of the turn.
  const answer = isTurn
    ? undefined
    : momentOf(stretches.find((one) => one._tag === "Model" && !isBefore(momentOf(one), by)))
  const command = commandOf(words)
  const end = isTurn ? (arrival ?? never) : momentOf(stretches[next])
  return (
    since.find(
      (one) =>
        (one.words === words && (answer === undefined || !isBefore(answer, one.line))) ||
        (command !== undefined && one.words.includes(command))
    ) ??
    since.find(
      ({ line, words: text }) => (isTurn || !isBefore(line, by)) && !isBefore(end, line) && holdsLine(text, words)
    )
  )
}

/**
 * Inserts queued messages where they were delivered: after the results sent with them, before the agent's next text.
 * Messages that are in the file a second time are left out. Returns the number of records that told of messages of the
 * conversation.
 */
function* deliver(
  stretches: Array<Stretch>,
  queue: Queue,
  messages: ReadonlyArray<Line>,
  taken: ReadonlySet<Line>,
  copies: ReadonlyMap<Line, Line>
): SlicedWork<number> {
  const { delivered, waiting } = queue.settle(messages)
  if (delivered.length + waiting.length === 0) return 0
  const standing = messages
    .flatMap((line): ReadonlyArray<Standing> => {
      const message = messageOf(line)
      const isUser =
        message?.role === "user" && message.kind !== "summary" && message.kind !== "attachment" && !copies.has(line)
      const words = isUser ? wordsIn(message.blocks) : ""
      return words === "" ? [] : [{ line, words }]
    })
    .sort((one, other) => byTime(one.line, other.line))
  const used = new Set<Standing>()
  let records = 0
  for (const one of delivered) {
    const after = one.after === undefined ? undefined : (copies.get(one.after) ?? one.after)
    if (after !== undefined && !taken.has(after)) continue
    // The record that put it into the queue, and the one that took it out.
    records += 2
    yield (standing.length + stretches.length) * 4
    const from = stretches.findIndex(
      (stretch) => stretch._tag !== "Compaction" && after !== undefined && stretch.lines.includes(after)
    )
    const next = stretches.findIndex(
      (stretch, index) => index > from && stretch._tag !== "Answers" && !isBefore(momentOf(stretch), one.by)
    )
    const held = lineOf(
      one,
      standing.filter((known) => !used.has(known)),
      stretches,
      next
    )
    if (held !== undefined) {
      if (held.words === one.words) used.add(held)
      continue
    }
    const uuid = `line ${one.number}`
    const line: Line = {
      number: one.number,
      uuid,
      named: false,
      parent: undefined,
      logicalParent: undefined,
      sidechain: after?.sidechain ?? false,
      at: one.by.at,
      session: undefined,
      message: queuedMessage(one.blocks, uuid, writtenBy(one.blocks)),
      boundary: undefined,
      previous: after
    }
    stretches.splice(next < 0 ? stretches.length : next, 0, { _tag: "Queued", by: one.by, lines: [line] })
  }
  // Older versions wrote no second record for a message that began the next turn.
  const isStanding = (queued: Queued) =>
    queued.words !== "" &&
    standing.some(({ line, words }) => !isBefore(line, queued) && taken.has(line) && words === queued.words)
  for (const queued of waiting) {
    yield standing.length
    if (isStanding(queued)) records += 1
  }
  return records
}

const never: Moment = { at: undefined, number: Infinity }

/** Returns when a stretch began. */
const momentOf = (stretch: Stretch | undefined): Moment => {
  if (stretch === undefined) return never
  if (stretch._tag === "Queued") return stretch.by
  return firstBy(stretch._tag === "Compaction" ? [stretch.summary] : stretch.lines, byTime) ?? never
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
  const inOrder = [...lines].sort(byTime)
  const first = inOrder[0]
  const own = inOrder.filter(
    (line, index) =>
      line.message?.role !== "model" || !inOrder.slice(0, index).some((earlier) => sameContent(earlier, line))
  )
  const author = first?.message?.author
  return draftOf(
    first?.message?.role ?? "user",
    own.flatMap((line) => piecesOf(line.message, names)),
    {
      at: first?.at,
      author: lines.every((line) => line.message?.author === author) ? author : undefined,
      line: first?.number ?? 0,
      ids: inOrder.flatMap((line) => (line.named ? line.uuid : [])),
      model: inOrder.findLast((line) => !isSynthetic(line.message?.model))?.message?.model,
      usage: inOrder.findLast((line) => line.message?.usage !== undefined)?.message?.usage
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

type Compaction = Extract<Stretch, { readonly _tag: "Compaction" }>

/**
 * Adds a compaction. The messages that it kept stay where they are when they were the last ones, and else are inserted with the
 * summary.
 */
const compact = (
  steps: Steps,
  { boundary, message, summary }: Compaction,
  before: ReadonlyArray<Stretch>,
  kept: ReadonlySet<string>,
  names: ReadonlyMap<string, string>
): void => {
  const turns = before.flatMap((stretch) => (stretch._tag === "Compaction" ? [] : [stretch]))
  const isKept = ({ lines }: { readonly lines: ReadonlyArray<Line> }) => lines.some(({ uuid }) => kept.has(uuid))
  const from = kept.size === 0 ? -1 : turns.findIndex(isKept)
  const stands = boundary?.boundary?.kept?.anchor
  const isBehind = stands !== undefined && stands === boundary?.uuid
  const stays = from >= 0 && !isBehind && turns.slice(from).every((turn) => turn._tag === "Queued" || isKept(turn))
  const again = stays ? [] : turns.filter(isKept).map(({ lines }) => draft(lines, names))
  // A summary of ours without parts only says that nothing replaced the dropped messages.
  const inserted = message.exact?.length === 0 ? [] : [draft([summary], names)]
  steps.compact(
    {
      insert: isBehind ? [...again, ...inserted] : [...inserted, ...again],
      trigger: boundary?.boundary?.trigger ?? "auto",
      tokensBefore: boundary?.boundary?.tokens
    },
    message.marks,
    stays ? turns[from]?.lines[0]?.uuid : undefined
  )
}

const nothing: ReadonlySet<string> = new Set()

/** Counts the messages outside the conversation as skipped. */
const countRest = (
  tree: Tree,
  side: boolean,
  taken: ReadonlySet<Line>,
  copies: ReadonlyMap<Line, Line>,
  skipped: Skipped
): void => {
  for (const line of tree.messages) {
    if (line.message?.kind === "api error") skipped.add("api error")
    else if (copies.has(line)) skipped.add("repeated line")
    else if (!taken.has(line)) skipped.add(line.sidechain === side ? "dead branch" : "sidechain")
  }
}

function* transcript(
  tree: Tree,
  queue: Queue,
  cwd: string | undefined,
  skipped: Skipped,
  isLenient: boolean
): SlicedWork<Transcript | Problem> {
  const leaf = tree.leaf()
  const chain = tree.chain(leaf, isLenient)
  if (isProblem(chain)) return chain
  // Where the chain runs through a copy of its own beginning, what the user said or a tool answered stands once, too.
  const [ofModel, ofUser] = (["model", "user"] as const).map((role) =>
    chain.filter((line) => messageOf(line)?.role === role)
  )
  const repeated = copiesOf(copiesOf(ofModel ?? [], chain).size === 0 ? [] : (ofUser ?? []), chain)
  const lines = chain.filter((line) => !repeated.has(line))
  const onChain = new Set(chain)
  const side = leaf?.sidechain ?? false
  const aside = tree.messages.filter((line) => !onChain.has(line) && line.sidechain === side)
  const stretches = stretchesOf(lines, skipped)
  const used = gather(stretches, aside)
  const taken = new Set([...lines, ...used])
  const left = aside.filter((line) => !used.has(line))
  const copies = left.length === 0 ? repeated : new Map([...repeated, ...copiesOf(left, taken)])
  const delivered = yield* deliver(stretches, queue, tree.messages, taken, copies)
  for (let n = delivered; n > 0; n -= 1) skipped.take("queue-operation")
  countRest(tree, side, taken, copies, skipped)
  for (const line of tree.lines.values()) {
    if (line.boundary !== undefined && !onChain.has(line)) skipped.add("system: compact_boundary")
  }
  // A result is named after the nearest earlier call with its id, else after any other call with it.
  const names = new Map<string, string>()
  callsOf(tree.messages, names)
  yield tree.lines.size * 200
  const steps = new Steps()
  for (const [index, stretch] of stretches.entries()) {
    if (stretch._tag === "Compaction") {
      const kept = stretch.boundary === undefined ? nothing : tree.kept(stretch.boundary)
      compact(steps, stretch, stretches.slice(0, index), kept, names)
    } else {
      callsOf(stretch.lines, names)
      const uuids = stretch.lines.map((line) => line.uuid)
      steps.message(draft(stretch.lines, names), uuids, stretch.lines[0]?.message?.marks ?? {})
    }
    yield 1_000
  }
  return {
    format: "claude",
    session: leaf?.session,
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
  const unknown = new Map<string, string>()
  let cwd: string | undefined
  let version: string | undefined
  return {
    line: (record, text, number) => {
      if (!isJson(record)) return problemAt(number, recordProblem("", "expected a record: an object with a type"))
      const decoded = decodeClaude(record)
      const uuid = decoded.uuid ?? `line ${number}`
      if (tree.lines.has(uuid)) {
        skipped.add("repeated line")
        return undefined
      }
      if (decoded._tag === "Queued") {
        queue.add(decoded, locate(record, text, ["content"]), number, skipped)
        return undefined
      }
      const isOwed = readMarks(record).owed === true
      const message = isOwed ? undefined : messageIn(decoded, record, text, uuid, skipped)
      if (isRecordProblem(message)) return problemAt(number, message)
      const boundary = decoded._tag === "Compacted" ? decoded.boundary : undefined
      version = decoded.version ?? version
      if (message === undefined && !isOwed && boundary === undefined) {
        const kind = kindName(record)
        skipped.add(kind)
        if (isNewKind(kind)) unknown.set(kind, version ?? "")
      }
      const { at, folder, isSidechain: sidechain, logicalParent, parent, session } = decoded
      cwd ??= folder
      if (message === undefined && decoded.uuid === undefined) return undefined
      tree.add({
        number,
        uuid,
        named: decoded.uuid !== undefined,
        parent,
        logicalParent,
        sidechain,
        at,
        session,
        message,
        boundary,
        previous: tree.previous(sidechain)
      })
      return undefined
    },
    end: function* () {
      const read = yield* transcript(tree, queue, cwd, skipped, isLenient)
      if (isProblem(read) || unknown.size === 0) return read
      const program = `Claude Code ${[...unknown.values()].at(-1) ?? ""}`.trimEnd()
      return { ...read, unknown: { program, kinds: [...unknown.keys()] } }
    }
  }
}

/** Reads a line by its own form, without exact parts and marks, for the writer to compare. */
export const nativeMessage = (record: Json, text: string, names: ReadonlyMap<string, string>): Native => {
  const message = messageIn(decodeClaude(record), record, text, "", new Skipped())
  return message === undefined || isRecordProblem(message)
    ? { pieces: [], author: undefined, usage: undefined }
    : { pieces: piecesOf({ ...message, exact: undefined }, names), author: message.author, usage: message.usage }
}
