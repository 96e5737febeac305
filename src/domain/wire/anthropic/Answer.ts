import { parsedOrUndefined } from "../../text/JsonText.ts"
import { isJson, type Json, textAt } from "../MessageCodec.ts"

/** An answer of Anthropic's Messages API in the making: its content blocks, whatever their kind. */

/** A block with a delta applied: texts are joined, citations added, other values replaced. */
const grown = (block: Json, { citation, type: _, ...delta }: Json): Json => {
  const joined = Object.entries(delta).map(([key, value]) => {
    const before = block[key]
    return [key, typeof before === "string" && typeof value === "string" ? before + value : value]
  })
  const citations = Array.isArray(block["citations"]) ? block["citations"] : []
  return {
    ...block,
    ...Object.fromEntries(joined),
    ...(citation === undefined ? {} : { citations: [...citations, citation] })
  }
}

/** The blocks of one answer by index, as far as they are read. Mutable. */
export class AnthropicBlocks {
  private readonly blocks = new Map<number, Json>()

  /** Reads an event about a block. */
  readonly push = ({ content_block: started, delta, index = 0 }: Json): void => {
    if (typeof index !== "number") return
    if (isJson(started)) this.blocks.set(index, started)
    else if (isJson(delta)) this.blocks.set(index, grown(this.blocks.get(index) ?? {}, delta))
  }

  /** The indexes of the blocks, in their order. */
  get indexes(): ReadonlyArray<number> {
    return [...this.blocks.keys()].sort((one, other) => one - other)
  }

  /** A block as it is sent back. Its arguments arrive as pieces of JSON. */
  readonly at = (index: number): Json => {
    const { partial_json: _, ...block } = this.blocks.get(index) ?? {}
    const pieces = this.argumentsAt(index)
    return pieces === "" ? block : { ...block, input: parsedOrUndefined(pieces) ?? {} }
  }

  /** The pieces of JSON of a call's arguments. */
  readonly argumentsAt = (index: number): string => textAt(this.blocks.get(index) ?? {}, "partial_json")
}
