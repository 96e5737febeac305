/** Lists of blocks, as Claude Code, Codex, Pi and MCP write them. */

import type { Part } from "../content/Content.ts"
import { messageMedia } from "../content/MediaBlocks.ts"
import { isJson, type Json } from "../text/JsonObject.ts"
import { callPiece, type Locate, type Piece, textPiece, thoughtPiece } from "./ExactParts.ts"
import { textAt } from "./JsonRecord.ts"
import { isProblem, type Problem, recordProblem } from "./Problem.ts"
import type { Skipped } from "./Skipped.ts"

/** Returns the blocks of a result that consists of a list of them alone, as MCP and other agents write it. */
export const listedBlocks = (part: Part): ReadonlyArray<unknown> | undefined => {
  const response = part.functionResponse?.response
  if (!isJson(response) || Object.keys(response).length !== 1) return undefined
  const blocks = response.content ?? response.error
  return Array.isArray(blocks) ? blocks : undefined
}

/** What an agent calls the blocks of a message, and their keys. */
export interface BlockForm {
  /** The type of a block with a call, and the keys of its arguments and of its signature, if it can have one. */
  readonly call: string
  readonly arguments: string
  readonly callSignature?: string
  /** The key of a thought's signature. */
  readonly thoughtSignature: string
}

const readBlock = (
  block: Json,
  index: number,
  at: Locate,
  form: BlockForm | undefined
): Piece | Problem | undefined => {
  const text = (key: string) =>
    textAt(block, key) ??
    recordProblem(`content[${index}].${key}`, `expected a text in a block of type ${String(block.type)}`)
  const exact = (key: string) => at([index, key])
  const { type } = block
  if (type === "text" || type === "input_text" || type === "output_text" || type === "refusal") {
    const key = type === "refusal" ? type : "text"
    const words = text(key)
    return typeof words === "string" ? textPiece(words, exact(key)) : words
  }
  if (form !== undefined && type === "thinking") {
    const thought = text("thinking")
    return typeof thought === "string"
      ? thoughtPiece(thought, textAt(block, form.thoughtSignature), exact("thinking"))
      : thought
  }
  if (form !== undefined && type === form.call) {
    const name = text("name")
    if (typeof name !== "string") return name
    const signature = form.callSignature === undefined ? undefined : textAt(block, form.callSignature)
    const call = { id: textAt(block, "id"), name, args: block[form.arguments], signature }
    return callPiece(call, exact(form.arguments))
  }
  const media = messageMedia(block)
  return media === undefined ? undefined : { part: media, source: undefined }
}

/**
 * Reads the content of a message, in which `at` locates texts: a text, or a list of blocks. Without a `form`, no
 * block is a thought or a call. `readOther` reads the blocks that only one agent has. Unknown ones are counted.
 */
export const readBlocks = <Other = never>(
  content: unknown,
  at: Locate,
  form: BlockForm | undefined,
  skipped: Skipped,
  readOther: (block: Json, index: number) => Piece | Other | Problem | undefined = () => undefined
): ReadonlyArray<Piece | Other> | Problem => {
  if (typeof content === "string") return [textPiece(content, at([]))]
  if (!Array.isArray(content)) return recordProblem("content", "expected a text or a list of blocks")
  const blocks: Array<Piece | Other> = []
  for (const [index, item] of content.entries()) {
    if (!isJson(item) || typeof item.type !== "string")
      return recordProblem(`content[${index}]`, "expected a block, an object with a type")
    const block = readOther(item, index) ?? readBlock(item, index, at, form)
    if (isProblem(block)) return block
    if (block === undefined) skipped.add(`block: ${item.type}`)
    else blocks.push(block)
  }
  return blocks
}
