/** Answers of Anthropic's Messages API: content blocks, whatever their kind, finish reasons and counts. */

import type { Part } from "../../content/Content.ts"
import { isJson, type Json, jsonAt, jsonsAt, textOrEmpty } from "../../text/JsonObject.ts"
import { addUsage, type Usage } from "../../tokens/Tokens.ts"
import { callArguments, type GrowingAnswer, type Growth, type ReadableForm } from "../AnswerForm.ts"
import { finishReasonOf } from "../AnswerReader.ts"
import { latestCounts, numberAt } from "../AnswerUsage.ts"
import { blockReader } from "../BlockReader.ts"
import { isCompaction } from "../ModelState.ts"

const errorTypes: Readonly<Record<number, string>> = { 401: "authentication_error", 429: "rate_limit_error" }

const usageOfCall = (counts: Json): Usage => {
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

/**
 * The counts of an answer. Those of a cache are tokens that were sent. What the server compacted before it answered is charged, and stands in its
 * own counts alone.
 */
export const usage = (counts: Json): Usage =>
  jsonsAt(counts, "iterations").filter(isCompaction).map(usageOfCall).reduce(addUsage, usageOfCall(counts))

/** The text and the thinking that a block begins with, or that a delta adds. */
const shownIn = (piece: Json): ReadonlyArray<Part> => {
  const [text, thinking] = [textOrEmpty(piece, "text"), textOrEmpty(piece, "thinking")]
  return [...(thinking === "" ? [] : [{ text: thinking, thought: true }]), ...(text === "" ? [] : [{ text }])]
}

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

/** A block as far as it is read. Its arguments arrive as pieces of JSON, or at its beginning; undefined if they are not JSON. */
const readBlock = ({ partial_json: pieces, ...block }: Json): Json => {
  const given = typeof pieces === "string" && pieces.trim() !== "" ? pieces : block["input"]
  return typeof given === "string" ? { ...block, input: callArguments(given) } : block
}

class AnthropicAnswer implements GrowingAnswer {
  /** By place, which is the index but for the blocks of servers that give all of them one index. */
  private readonly blocks = new Map<number, Json>()
  private readonly places = new Map<number, number>()
  private readonly ended = new Set<number>()
  private usage: unknown

  readonly push = (event: Json): Growth | undefined => {
    const { content_block: started, delta, index, type } = event
    const begun = isJson(started) ? started : undefined
    const at = this.placeOf(typeof index === "number" ? index : 0, begun !== undefined)
    const pieces = typeof index === "number" ? [{ at, begun }] : []
    switch (type) {
      case "message": {
        // Some servers do not stream.
        const blocks = jsonsAt(event, "content")
        for (const [place, block] of blocks.entries()) this.blocks.set(place, block)
        this.usage = event["usage"]
        const shown = blocks.filter((block) => !isCompaction(block)).flatMap(shownIn)
        const end = textOrEmpty(event, "stop_reason")
        return { border: "end", shown, blocks: this.close(this.indexes), end, counts: this.usage }
      }
      case "message_start":
        this.usage = jsonAt(event, "message")["usage"]
        return { border: "beginning" }
      case "content_block_start":
      case "content_block_delta": {
        const block = begun ?? grown(this.blocks.get(at) ?? {}, jsonAt(event, "delta"))
        this.blocks.set(at, block)
        return { pieces, shown: isCompaction(block) ? [] : shownIn(begun ?? jsonAt(event, "delta")) }
      }
      case "content_block_stop":
        return { pieces, blocks: this.close([at]) }
      case "message_delta": {
        this.usage = latestCounts(this.usage, event["usage"])
        const end = isJson(delta) ? textOrEmpty(delta, "stop_reason") : ""
        // Some servers do not end the block in which the answer was cut off.
        const ended = end === "" ? {} : { blocks: this.close(this.indexes), end, counts: this.usage }
        return { border: "end", ...ended }
      }
      case "message_stop":
        return { border: "end" }
      case "error":
        return { fault: event }
      default:
        return typeof type === "string" ? {} : undefined
    }
  }

  readonly end = (): Growth => ({})

  private get indexes(): ReadonlyArray<number> {
    return [...this.blocks.keys()].sort((one, other) => one - other)
  }

  private placeOf(index: number, isBegun: boolean): number {
    const place = this.places.get(index) ?? index
    if (!isBegun || !this.blocks.has(place)) return place
    const next = 1 + (this.indexes.at(-1) ?? 0)
    this.places.set(index, next)
    return next
  }

  private blockAt(index: number): Json {
    return readBlock(this.blocks.get(index) ?? {})
  }

  /** Closes blocks. Returns those that were open. */
  private close(indexes: ReadonlyArray<number>): ReadonlyArray<Json> {
    const open = indexes.filter((index) => !this.ended.has(index))
    for (const index of open) this.ended.add(index)
    return open.map((index) => this.blockAt(index))
  }

  get whole(): Json {
    const blocks = this.indexes.map((index) => this.blockAt(index))
    // The API refuses a call without arguments.
    const content = blocks.map((block) => ("input" in block ? { ...block, input: block["input"] ?? {} } : block))
    return { content, usage: this.usage }
  }
}

/** The facts of this dialect about its answers. */
export const answerForm: ReadableForm = {
  begin: () => new AnthropicAnswer(),
  blocksOf: ({ content }) => (Array.isArray(content) ? content.filter(isJson) : undefined),
  usageKey: "usage",
  usage,
  callOf: (block) =>
    block["type"] === "tool_use"
      ? { id: textOrEmpty(block, "id"), name: textOrEmpty(block, "name"), args: "input" in block ? block["input"] : {} }
      : undefined,
  // Thinking, which servers but Anthropic's may leave unsigned and want back all the same, and what the server compacted.
  stateOf: (block) =>
    isCompaction(block) ||
    block["type"] === "redacted_thinking" ||
    (block["type"] === "thinking" && textOrEmpty(block, "signature") + textOrEmpty(block, "thinking") !== "")
      ? block
      : undefined,
  finishReason: finishReasonOf,
  visible: (block) => {
    if (block["type"] === "text") return { kind: "text", text: textOrEmpty(block, "text") }
    if (block["type"] === "thinking") return { kind: "thought", text: textOrEmpty(block, "thinking") }
    return { kind: block["type"] === "redacted_thinking" ? "thought" : "other", text: "" }
  },
  failure: (status, message) => ({ type: "error", error: { type: errorTypes[status] ?? "api_error", message } }),
  // The API rejects empty texts.
  sent: (blocks) => [
    {
      role: "assistant",
      content: blocks.filter((block) => block["type"] !== "text" || textOrEmpty(block, "text") !== "")
    }
  ]
}

/** Reads one answer of the Messages API. */
export const anthropicAnswerReader = blockReader(answerForm)
