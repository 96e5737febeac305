import type { Author } from "../../conversation/Conversation.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { splitAuthorNote } from "../AuthorNote.ts"
import {
  type Answer,
  answerPiece,
  callPiece,
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
import { isRecordProblem, problemUnder, recordProblem, type RecordProblem } from "../Problem.ts"
import { exactPieces } from "../RecordLine.ts"
import { markedAuthor, type Marks, type Native, readMarks } from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import { authorOf } from "../voice/Voice.ts"
import { attachmentPieces } from "./Attachments.ts"
import { type ClaudeRecord, decodeClaude, type MessageKind } from "./Record.ts"

/** Reads the message of a record: its blocks as parts, and its author. */

/** A block of a message. A tool result waits for the name of its call. */
export type Block =
  | {
      readonly _tag: "Piece"
      readonly piece: Piece
      readonly call: string | undefined
      readonly name: string | undefined
    }
  | { readonly _tag: "Answer"; readonly answer: Answer; readonly exact: Exact }

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

/** Whether a block is the result of a call. */
export const isAnswer = (block: Block): boolean => block._tag === "Answer"
/** Returns the text of a message, without its other blocks. */
export const wordsIn = (blocks: ReadonlyArray<Block>): string =>
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

/** Reads the content of a message: a text, or a list of blocks. `path` is its place in the record. */
export const readContent = (
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
export const writtenBy = (blocks: ReadonlyArray<Block>): Author | undefined =>
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
export const messageIn = (
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

/** Makes the message of the user that these blocks are. */
export const queuedMessage = (blocks: ReadonlyArray<Block>, uuid: string, author: Author | undefined): LineMessage => ({
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
  message?.exact ??
  (message?.blocks ?? []).map((block) =>
    block._tag === "Piece"
      ? block.piece
      : answerPiece({ ...block.answer, name: names.get(block.answer.id ?? "") }, block.exact)
  )

/** Reads a line by its own form, without exact parts and marks, for the writer to compare. */
export const nativeMessage = (record: Json, text: string, names: ReadonlyMap<string, string>): Native => {
  const message = messageIn(decodeClaude(record), record, text, "", new Skipped())
  return message === undefined || isRecordProblem(message)
    ? { pieces: [], author: undefined, usage: undefined }
    : { pieces: piecesOf({ ...message, exact: undefined }, names), author: message.author, usage: message.usage }
}
