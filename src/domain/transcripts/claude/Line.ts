/** The lines of a transcript: the message of each, its place in the tree, in time and in the file, and which of them are copies. */

import type { Author } from "../../conversation/Conversation.ts"
import { isJson, type Json, jsonAt } from "../../text/JsonObject.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import {
  isOpenAnswer,
  callPiece,
  locate,
  type Locate,
  namedPieces,
  needsExact,
  type OpenAnswer,
  type Piece,
  textPiece,
  thoughtPiece,
  under
} from "../ExactParts.ts"
import { passOver, textAt } from "../JsonRecord.ts"
import { readBlocks } from "../ListedBlocks.ts"
import { isProblem, type Problem, problemUnder, recordProblem } from "../Problem.ts"
import {
  isClosed,
  exactPieces,
  markedAuthor,
  type Marks,
  type Native,
  readMarks,
  splitAuthorNote
} from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import { authorOf } from "../voice/Voice.ts"
import { attachmentPieces } from "./Attachments.ts"
import { type Boundary, type ClaudeRecord, decodeClaude, type MessageKind } from "./Record.ts"

/** A block of a message. */
export type Block = Piece | OpenAnswer

/** A message line. */
export interface LineMessage {
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

const isPiece = (block: Block): block is Piece => !isOpenAnswer(block)

/** Returns the calls in blocks, with their names. */
export const callsOf = (blocks: ReadonlyArray<Block>): ReadonlyArray<readonly [id: string, name: string]> =>
  blocks.flatMap((block) => {
    const { id, name } = (isPiece(block) ? block.part.functionCall : undefined) ?? {}
    return id === undefined || name === undefined ? [] : [[id, name] as const]
  })
/** Returns the text of a message, without its other blocks. */
export const wordsIn = (blocks: ReadonlyArray<Block>): string =>
  blocks
    .filter(isPiece)
    .flatMap(({ part }) => part.text ?? [])
    .join("\n")
    .trim()

/** Returns the result of a tool that the provider ran as text: an answer, or the pages that a search found. */
const providerResult = (content: unknown): string => {
  if (Array.isArray(content)) return content.map(providerResult).join("\n")
  if (!isJson(content)) return String(content ?? "")
  const texts = ["text", "title", "url", "error_code"].flatMap((key) => textAt(content, key) ?? [])
  return texts.length > 0 ? texts.join(" ") : (textAt(content, "type") ?? "")
}

/** Returns the text of a file that the user attached (extension of VS Code), or of a search result, marked as not their words. */
const attachedText = (block: Json): string | undefined => {
  const source = jsonAt(block, "source")
  const text =
    block.type === "search_result"
      ? providerResult(block.content)
      : block.type === "document" && source.type === "text"
        ? textAt(source, "data")
        : block.type === "document" && source.type === "content"
          ? providerResult(source.content)
          : undefined
  const title = (textAt(block, "title") ?? "").replace(/["<>\n]/g, " ")
  // The text may not end its own mark: what follows would be the user's.
  const whole = text?.replace(/<(?=\/?attached-document)/gi, "&lt;")
  return whole === undefined ? undefined : `<attached-document title="${title}">\n${whole}\n</attached-document>`
}

const blockForm = { call: "tool_use", arguments: "input", thoughtSignature: "signature" }

/** Reads the content of a message: a text, or a list of blocks. */
export const readContent = (content: unknown, at: Locate, skipped: Skipped): ReadonlyArray<Block> | Problem => {
  const readOther = (block: Json, index: number): Block | Problem | undefined => {
    if (block.type === "redacted_thinking") return thoughtPiece("", textAt(block, "data"), () => undefined)
    // A call of a tool that the provider runs.
    if (block.type === "server_tool_use" || block.type === "mcp_tool_use") {
      const call = { id: textAt(block, "id"), name: textAt(block, "name") ?? "unknown", args: block.input }
      return callPiece(call, at([index, "input"]))
    }
    const attached = attachedText(block)
    if (attached !== undefined) return textPiece(attached, () => undefined)
    const isOwn = block.type === "tool_result"
    if (!isOwn && !String(block.type).endsWith("_tool_result")) return undefined
    const result = isOwn ? block.content : providerResult(block.content)
    if (result !== undefined && result !== null && typeof result !== "string" && !Array.isArray(result)) {
      return recordProblem(`content[${index}].content`, "expected a text or a list of blocks in a tool_result block")
    }
    const answer = {
      id: textAt(block, "tool_use_id"),
      name: undefined,
      failed: block.is_error === true,
      content: result
    }
    // Taken now, so that the line's text can be released before the name of the call is known.
    const slice = needsExact(result) ? at([index, "content"])() : undefined
    return { answer, exact: () => slice }
  }
  const blocks = readBlocks<OpenAnswer>(content, at, blockForm, skipped, readOther)
  return isProblem(blocks) ? problemUnder("message", blocks) : blocks
}

/** Returns the author of blocks that hold no words of the user. */
export const writtenBy = (blocks: ReadonlyArray<Block>): Author | undefined =>
  blocks.every(isPiece) ? authorOf(blocks.map(({ part }) => part)) : undefined

/** Returns the author of the blocks of a line, and the blocks without the note that names the author. */
const authored = (
  kind: MessageKind,
  role: LineMessage["role"],
  blocks: ReadonlyArray<Block>
): { readonly author: Author | undefined; readonly blocks: ReadonlyArray<Block> } => {
  const author = kind === "program" || kind === "summary" ? kind : role === "user" ? writtenBy(blocks) : undefined
  const [first] = blocks
  const note = role === "user" && first !== undefined && isPiece(first) ? splitAuthorNote([first]).author : undefined
  return note === undefined
    ? { author, blocks }
    : { author: author === "summary" ? author : note, blocks: blocks.slice(1) }
}

const readMessage = (
  message: Extract<ClaudeRecord, { readonly _tag: "Message" }>,
  record: Json,
  text: string,
  uuid: string,
  skipped: Skipped
): LineMessage | Problem => {
  const { kind, messageId = uuid, model, role, usage } = message
  const read = readContent(message.content, under(locate(record, text), "message", "content"), skipped)
  if (isProblem(read)) return read
  const exact = exactPieces(record, text, "parts")
  if (isProblem(exact)) return exact
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
export const messageIn = (
  decoded: ClaudeRecord,
  record: Json,
  text: string,
  uuid: string,
  skipped: Skipped
): LineMessage | Problem | undefined => {
  switch (decoded._tag) {
    case "Message":
      return readMessage(decoded, record, text, uuid, skipped)
    case "Broken":
      return recordProblem("message", "expected an object with role and content")
    case "Attached": {
      const blocks = attachmentPieces(decoded.attachment)
      return blocks.length === 0 ? undefined : { ...userMessage(blocks, uuid, "program"), kind: "attachment" }
    }
    case "Sent": {
      const blocks = readContent(decoded.prompt, under(locate(record, text), "attachment", "prompt"), skipped)
      if (isProblem(blocks) || blocks.length === 0) return undefined
      const { isProgram } = decoded
      return userMessage(blocks, uuid, isProgram === undefined ? writtenBy(blocks) : isProgram ? "program" : undefined)
    }
    default:
      return passOver<"Queued" | "Compacted" | "Titled" | "Relayed" | "Pinned" | "Replaced" | "Other">(decoded)
  }
}

/** Makes the message of the user that these blocks are. */
export const userMessage = (blocks: ReadonlyArray<Block>, uuid: string, author: Author | undefined): LineMessage => ({
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

/** Returns the pieces of a line. `names`: of calls, by id. */
export const piecesOf = (message: LineMessage | undefined, names: ReadonlyMap<string, string>): ReadonlyArray<Piece> =>
  message?.exact ?? namedPieces(message?.blocks ?? [], (call) => names.get(call))

/** Reads a line by its own form, without exact parts and marks, for the writer to compare. */
export const nativeMessage = (record: Json, text: string, names: ReadonlyMap<string, string>): Native => {
  const message = messageIn(decodeClaude(record), record, text, "", new Skipped())
  return message === undefined || isProblem(message)
    ? { pieces: [], author: undefined, usage: undefined }
    : { pieces: piecesOf({ ...message, exact: undefined }, names), author: message.author, usage: message.usage }
}

/** A line, with what the conversation needs of its record. */
export interface Line {
  readonly number: number
  readonly uuid: string
  /** Whether the record has a uuid of its own. */
  readonly hasId: boolean
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

/** When something happened, and where it stands in the file. */
export interface Moment {
  readonly at: number | undefined
  readonly number: number
}

/** Orders by time, and by place in the file what has no time, or the same: Claude Code appends records late, and copies others. */
export const byTime = (one: Moment, other: Moment): number =>
  one.at === undefined || other.at === undefined || one.at === other.at ? one.number - other.number : one.at - other.at
/** Whether one happened before the other. */
export const isBefore = (one: Moment, other: Moment): boolean => byTime(one, other) < 0
/** Returns the first of these in an order. */
export const firstBy = <A>(all: ReadonlyArray<A>, order: (one: A, other: A) => number): A | undefined =>
  all.reduce<A | undefined>((found, one) => (found === undefined || order(one, found) < 0 ? one : found), undefined)

/** Whether a line holds what was shown beside a message. */
export const isAttached = ({ message }: Line): boolean => message?.kind === "attachment"
/** Returns the message of a line, unless it is an error that is shown as one. */
export const messageOf = (line: Line): LineMessage | undefined =>
  line.message?.kind === "api error" ? undefined : line.message
/** Returns the ids of the calls that a line answers. */
export const answersIn = (line: Line): ReadonlyArray<string> =>
  (messageOf(line)?.blocks ?? []).filter(isOpenAnswer).flatMap(({ answer }) => answer.id ?? [])
/** Returns the ids of the calls in a line. */
export const callsIn = (line: Line): ReadonlyArray<string> => callsOf(messageOf(line)?.blocks ?? []).map(([id]) => id)

const sameBlock = (one: Block | undefined, other: Block): boolean => JSON.stringify(one) === JSON.stringify(other)

/** Whether two lines of the same message, the user's or the model's, hold the same. Lines that repeat others on purpose do not count. */
export const sameContent = (one: Line, other: Line): boolean => {
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
export const copiesOf = (lines: ReadonlyArray<Line>, known: Iterable<Line>): ReadonlyMap<Line, Line> => {
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
