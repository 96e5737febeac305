import { parsedOrUndefined } from "../../text/JsonText.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { outputLimit } from "../AnswerReader.ts"
import { numberAt } from "../AnswerUsage.ts"
import { isJson, type Json, textAt } from "../MessageCodec.ts"
import { isCompaction } from "../ModelState.ts"

/** An answer of Anthropic's Messages API in the making: its content blocks, whatever their kind, finish reasons and counts. */

/** The reasons for which an answer ends, as the Gemini API names them. */
export const finishReasons: Readonly<Record<string, string>> = {
  end_turn: "STOP",
  tool_use: "STOP",
  stop_sequence: "STOP",
  max_tokens: outputLimit,
  model_context_window_exceeded: outputLimit
}

/** Whether a block calls a tool of ours. */
export const isToolCall = (block: Json): boolean => block["type"] === "tool_use"

/** Whether a block is a state that goes back as it came: signed thinking, or what the server compacted. */
export const isState = (block: Json): boolean =>
  isCompaction(block) ||
  block["type"] === "redacted_thinking" ||
  (block["type"] === "thinking" && textAt(block, "signature") !== "")

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

/** The counts of an answer. Those of a cache are tokens that were sent. */
export const usage = (counts: Json): Usage => {
  const cached = numberAt(counts, "cache_read_input_tokens")
  const cacheWrite = numberAt(counts, "cache_creation_input_tokens")
  const cacheWriteHour = Math.min(cacheWrite, numberAt(counts, "cache_creation", "ephemeral_1h_input_tokens"))
  return {
    prompt: numberAt(counts, "input_tokens") + cached + cacheWrite,
    answer: numberAt(counts, "output_tokens"),
    thoughts: 0,
    cached,
    ...(cacheWrite === 0 ? {} : { cacheWrite }),
    ...(cacheWriteHour === 0 ? {} : { cacheWriteHour })
  }
}
