import { Effect, Option, Schema } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import { latestCounts } from "../../domain/wire/AddedCounts.ts"
import { usageOf } from "../../domain/wire/AnswerUsage.ts"
import {
  AnthropicBlocks,
  finishReasons,
  isState,
  isToolCall,
  usage as readUsage
} from "../../domain/wire/anthropic/Answer.ts"
import { type Json, textAt } from "../../domain/wire/MessageCodec.ts"
import { carriedState, isCompaction } from "../../domain/wire/ModelState.ts"
import { faultIn } from "../../domain/wire/ProviderFault.ts"
import { ContentPolicyError, type ModelChunk, type ModelError } from "../../services/model/Model.ts"
import { AnswerCalls } from "./AnswerCalls.ts"
import { clip, failed, unusable } from "./ModelFailures.ts"
import { reasonOfEvent } from "./ProviderErrors.ts"
import type { EventReader, Reading } from "./ProviderExchange.ts"

/** Reads the events of the Messages API. */

const record = Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown)))
const Event = Schema.Struct({
  type: Schema.String,
  message: record,
  index: Schema.optionalKey(Schema.Natural),
  content_block: record,
  delta: record,
  usage: record
})
type Event = typeof Event.Type
const readEvent = Schema.decodeUnknownOption(Event)

/** The text and the thinking that a block begins with, or that a delta adds. */
const shownIn = (piece: Json): ReadonlyArray<Part> => {
  const [text, thinking] = [textAt(piece, "text"), textAt(piece, "thinking")]
  return [...(thinking === "" ? [] : [{ text: thinking, thought: true }]), ...(text === "" ? [] : [{ text }])]
}

/** Arguments as JSON. Some servers send them whole, at the beginning of the block. */
const argumentsOf = (pieces: string, { input }: Json): string =>
  pieces !== "" || input === undefined ? pieces : JSON.stringify(input)

/** Reads one answer of the Messages API. */
export const makeReader = ({ hide, names, target, tools }: Reading): EventReader => {
  const calls = new AnswerCalls(tools)
  const blocks = new AnthropicBlocks()
  const ended = new Set<number>()
  let counts: unknown

  const endBlock = (index: number): ReadonlyArray<Part> => {
    if (ended.has(index)) return []
    ended.add(index)
    const block = blocks.at(index)
    if (isToolCall(block)) {
      const args = argumentsOf(blocks.argumentsAt(index), block)
      return calls.read({ id: textAt(block, "id"), name: textAt(block, "name"), args })
    }
    return isState(block) ? [{ text: "", thoughtSignature: carriedState(target, block) }] : []
  }

  const finish = ({ delta, usage }: Event): Effect.Effect<ModelChunk | undefined, ModelError> => {
    counts = latestCounts(counts, usage)
    const reason = textAt(delta ?? {}, "stop_reason")
    if (reason === "") return Effect.undefined
    if (reason === "refusal") return Effect.fail(failed(new ContentPolicyError({ finishReason: reason })))
    // Some servers do not end the block in which the answer was cut off.
    const open = blocks.indexes.flatMap(endBlock)
    const end = calls.end(finishReasons[reason] ?? clip(hide(reason)))
    const counted = usageOf(readUsage, counts)
    return Effect.succeed({
      parts: [...open, ...end.parts],
      finishReason: end.finishReason,
      ...(counted === undefined ? {} : { usage: counted })
    })
  }

  const readAnswer = (event: Event): Effect.Effect<ModelChunk | undefined, ModelError> => {
    switch (event.type) {
      case "message_start":
        counts = event.message?.["usage"]
        return Effect.undefined
      case "content_block_start":
      case "content_block_delta": {
        blocks.push(event)
        const isHidden = isCompaction(blocks.at(event.index ?? 0))
        return chunkOf(isHidden ? [] : shownIn(event.content_block ?? event.delta ?? {}))
      }
      case "content_block_stop":
        return chunkOf(endBlock(event.index ?? 0))
      case "message_delta":
        return finish(event)
      default:
        return Effect.undefined
    }
  }

  return {
    read: (value) => {
      const event = Option.getOrUndefined(readEvent(value))
      if (event === undefined) return Effect.fail(unusable("it contains an event of an unknown form"))
      if (event.type !== "error") return readAnswer(event)
      const { kind, message } = faultIn(value) ?? { kind: "", message: "" }
      return Effect.fail(failed(reasonOfEvent({ kind, message: hide(message) }, names)))
    },
    end: () => Effect.undefined
  }
}

const chunkOf = (parts: ReadonlyArray<Part>) => Effect.succeed(parts.length === 0 ? undefined : { parts })
