import type { Part } from "../content/Content.ts"
import { isJson } from "./JsonRecord.ts"
import { isRecordProblem, recordProblem, type RecordProblem } from "./Problem.ts"
import type { Skipped } from "./Skipped.ts"

/** Lists of blocks, as Claude Code, Pi and MCP write them. */

/** Returns the blocks of a result that consists of a list of them alone, as MCP and other agents write it. */
export const listedBlocks = (part: Part): ReadonlyArray<unknown> | undefined => {
  const response = part.functionResponse?.response
  if (!isJson(response) || Object.keys(response).length !== 1) return undefined
  const blocks = response.content ?? response.error
  return Array.isArray(blocks) ? blocks : undefined
}

/** Reads the content of a message: a text, or a list of blocks. Unknown blocks are counted. */
export const readBlocks = <Block>(
  content: unknown,
  ofText: (text: string) => Block,
  ofBlock: (block: unknown, index: number) => Block | RecordProblem | undefined,
  skipped: Skipped
): ReadonlyArray<Block> | RecordProblem => {
  if (typeof content === "string") return [ofText(content)]
  if (!Array.isArray(content)) return recordProblem("content", "expected a text or a list of blocks")
  const blocks: Array<Block> = []
  for (const [index, item] of content.entries()) {
    const block = ofBlock(item, index)
    if (isRecordProblem(block)) return block
    if (block === undefined) skipped.add(`block: ${isJson(item) ? String(item.type) : "unknown"}`)
    else blocks.push(block)
  }
  return blocks
}
