import { Effect, Option, Schema } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import { provider } from "../../domain/model/AnthropicMessages.ts"
import { isCompaction, signatureOf } from "../../domain/model/ProviderSignature.ts"
import type { ToolNames } from "../../domain/model/ToolDeclarations.ts"
import { faultIn } from "../../domain/wire/ProviderFault.ts"
import { ContentPolicyError, type ModelChunk, type ModelError } from "../../services/model/Model.ts"
import { AnswerCalls } from "./AnswerCalls.ts"
import { clip, failed, unusable } from "./ModelFailures.ts"
import { type ProviderNames, reasonOfEvent } from "./ProviderErrors.ts"
import type { EventReader } from "./ProviderExchange.ts"

/** Reads the events of the Messages API. */

const text = Schema.optionalKey(Schema.NullOr(Schema.String))
const count = Schema.optionalKey(Schema.NullOr(Schema.Natural))

const Counts = Schema.Struct({
  input_tokens: count,
  output_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count
})
type Counts = typeof Counts.Type

const Event = Schema.Struct({
  type: Schema.String,
  message: Schema.optionalKey(Schema.Struct({ usage: Schema.optionalKey(Counts) })),
  index: Schema.optionalKey(Schema.Natural),
  content_block: Schema.optionalKey(
    Schema.Struct({
      type: Schema.String,
      id: text,
      name: text,
      text,
      thinking: text,
      signature: text,
      data: text,
      input: Schema.optionalKey(Schema.Unknown)
    })
  ),
  delta: Schema.optionalKey(
    Schema.Struct({
      type: text,
      text,
      thinking: text,
      signature: text,
      partial_json: text,
      stop_reason: text
    })
  ),
  usage: Schema.optionalKey(Schema.NullOr(Counts))
})
type Event = typeof Event.Type
const readEvent = Schema.decodeUnknownOption(Event)

const usageOf = (counts: Counts) => {
  const cached = counts.cache_read_input_tokens ?? 0
  const cacheWrite = counts.cache_creation_input_tokens ?? 0
  return {
    prompt: (counts.input_tokens ?? 0) + cached + cacheWrite,
    answer: counts.output_tokens ?? 0,
    thoughts: 0,
    cached,
    ...(cacheWrite === 0 ? {} : { cacheWrite })
  }
}

const finishReasons: Readonly<Record<string, string>> = {
  end_turn: "STOP",
  tool_use: "STOP",
  stop_sequence: "STOP",
  max_tokens: "MAX_TOKENS",
  model_context_window_exceeded: "MAX_TOKENS"
}

const record = Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
/** The event with all fields of its block. */
const WholeEvent = Schema.Struct({ content_block: record, delta: record })
type WholeEvent = typeof WholeEvent.Type
const readWhole = Schema.decodeUnknownOption(WholeEvent)

/** Adds a piece to a block: texts are joined, other values replaced. */
const added = (block: OpaqueBlock, { type: _, ...piece }: OpaqueBlock): OpaqueBlock => {
  const joined = Object.entries(piece).map(([name, value]) => {
    const before = block[name]
    return [name, typeof before === "string" && typeof value === "string" ? before + value : value]
  })
  return { ...block, ...Object.fromEntries(joined) }
}

type OpaqueBlock = Readonly<Record<string, unknown>>

/** A block that has started. Mutable. */
interface OpenBlock {
  readonly type: string
  readonly id: string
  readonly name: string
  readonly data: string
  readonly pieces: Array<string>
  signature: string
  /** A compaction by the server, unchanged. */
  compaction: OpaqueBlock | undefined
}

/** An answer that is being read. */
interface Answer {
  readonly calls: AnswerCalls
  readonly hide: (text: string) => string
  readonly blocks: Map<number, OpenBlock>
  counts: Counts
}

const startBlock = (
  { blocks }: Answer,
  { content_block: block, index = 0 }: Event,
  whole: OpaqueBlock
): ReadonlyArray<Part> => {
  if (block === undefined) return []
  const { data, id, input, name, signature, thinking, type } = block
  const first = type === "text" ? block.text : thinking
  // Some servers send the whole input at once.
  const args = input !== undefined && JSON.stringify(input) !== "{}" ? [JSON.stringify(input)] : []
  const pieces = type === "tool_use" ? args : first ? [first] : []
  const compaction = isCompaction(whole) ? whole : undefined
  const named = { type, id: id ?? "", name: name ?? "", data: data ?? "", signature: signature ?? "" }
  blocks.set(index, { ...named, pieces, compaction })
  return type === "text" && first ? [{ text: first }] : []
}

const extendBlock = ({ blocks }: Answer, { delta, index = 0 }: Event, whole: OpaqueBlock): ReadonlyArray<Part> => {
  const block = blocks.get(index)
  if (block?.compaction !== undefined) {
    block.compaction = added(block.compaction, whole)
    return []
  }
  if (delta?.text) return [{ text: delta.text }]
  if (block === undefined || delta === undefined) return []
  if (delta.signature) block.signature += delta.signature
  if (delta.partial_json) block.pieces.push(delta.partial_json)
  if (!delta.thinking) return []
  block.pieces.push(delta.thinking)
  return [{ text: delta.thinking, thought: true }]
}

const signed = (block: OpaqueBlock): Part => ({ text: "", thoughtSignature: signatureOf(provider, block) })

const endBlock = (answer: Answer, index: number): ReadonlyArray<Part> => {
  const block = answer.blocks.get(index)
  answer.blocks.delete(index)
  if (block === undefined) return []
  const { compaction, data, id, name, pieces, signature, type } = block
  if (compaction !== undefined) return [signed(compaction)]
  switch (type) {
    case "thinking":
      return signature === "" ? [] : [signed({ type, thinking: pieces.join(""), signature })]
    case "redacted_thinking":
      return [signed({ type, data })]
    case "tool_use":
      return answer.calls.read({ id, name, args: pieces.join("") })
    default:
      return []
  }
}

const finish = (answer: Answer, { delta, usage }: Event): Effect.Effect<ModelChunk | undefined, ModelError> => {
  // A later count replaces an earlier one; null says nothing.
  if (usage) {
    const stated = Object.entries(usage).filter(([, value]) => value !== null)
    answer.counts = { ...answer.counts, ...Object.fromEntries(stated) }
  }
  const reason = delta?.stop_reason
  if (reason === undefined || reason === null) return Effect.undefined
  if (reason === "refusal") return Effect.fail(failed(new ContentPolicyError({ finishReason: reason })))
  // Some servers do not end the block in which the answer was cut off.
  const open = [...answer.blocks.keys()].flatMap((index) => endBlock(answer, index))
  const end = answer.calls.end(finishReasons[reason] ?? clip(answer.hide(reason)))
  return Effect.succeed({
    parts: [...open, ...end.parts],
    finishReason: end.finishReason,
    usage: usageOf(answer.counts)
  })
}

const chunkOf = (parts: ReadonlyArray<Part>) => Effect.succeed(parts.length === 0 ? undefined : { parts })

const readAnswer = (
  answer: Answer,
  event: Event,
  whole: unknown
): Effect.Effect<ModelChunk | undefined, ModelError> => {
  const { content_block = {}, delta = {} } = Option.getOrElse(readWhole(whole), (): WholeEvent => ({}))
  switch (event.type) {
    case "message_start":
      answer.counts = event.message?.usage ?? {}
      return Effect.undefined
    case "content_block_start":
      return chunkOf(startBlock(answer, event, content_block))
    case "content_block_delta":
      return chunkOf(extendBlock(answer, event, delta))
    case "content_block_stop":
      return chunkOf(endBlock(answer, event.index ?? 0))
    case "message_delta":
      return finish(answer, event)
    default:
      return Effect.undefined
  }
}

/** Reads one answer of the Messages API. */
export const makeReader = (names: ToolNames, provided: ProviderNames, hide: (text: string) => string): EventReader => {
  const answer: Answer = { calls: new AnswerCalls(names), hide, blocks: new Map(), counts: {} }
  return {
    read: (value) => {
      const event = Option.getOrUndefined(readEvent(value))
      if (event === undefined) return Effect.fail(unusable("it contains an event of an unknown form"))
      if (event.type !== "error") return readAnswer(answer, event, value)
      const { kind, message } = faultIn(value) ?? { kind: "", message: "" }
      return Effect.fail(failed(reasonOfEvent({ kind, message: hide(message) }, provided)))
    },
    end: () => Effect.undefined
  }
}
