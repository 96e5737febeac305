import type { Part } from "../content/Content.ts"
import { isJson } from "./JsonRecord.ts"

/** Returns the blocks of a result that consists of a list of them alone, as MCP and other agents write it. */
export const listedBlocks = (part: Part): ReadonlyArray<unknown> | undefined => {
  const response = part.functionResponse?.response
  if (!isJson(response) || Object.keys(response).length !== 1) return undefined
  const blocks = response.content ?? response.error
  return Array.isArray(blocks) ? blocks : undefined
}
