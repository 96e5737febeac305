import { Option, Result, Schema } from "effect"
import type { Part } from "../../content/Content.ts"
import { latestCounts } from "../AddedCounts.ts"
import { AnswerCalls } from "../AnswerCalls.ts"
import { type AnswerReader, noPiece, pieceOf, type ReadEvent, type Reading, unknownEvent } from "../AnswerReader.ts"
import { counted } from "../AnswerUsage.ts"
import { type Json, textAt } from "../MessageCodec.ts"
import { carriedState, isCompaction } from "../ModelState.ts"
import { faulty } from "../ProviderFault.ts"
import { AnthropicBlocks, finishReasons, isState, isToolCall, usage } from "./Answer.ts"

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
export const anthropicReader = ({ target, tools }: Reading): AnswerReader => {
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

  const finish = ({ delta, usage: added }: Event): ReadEvent => {
    counts = latestCounts(counts, added)
    const reason = textAt(delta ?? {}, "stop_reason")
    if (reason === "") return noPiece
    if (reason === "refusal") return Result.fail({ _tag: "Refusal", reason })
    // Some servers do not end the block in which the answer was cut off.
    const open = blocks.indexes.flatMap(endBlock)
    const end = calls.end(finishReasons[reason] ?? reason)
    return Result.succeed({
      parts: [...open, ...end.parts],
      finishReason: end.finishReason,
      ...counted(usage, counts)
    })
  }

  const readAnswer = (event: Event): ReadEvent => {
    switch (event.type) {
      case "message_start":
        counts = event.message?.["usage"]
        return noPiece
      case "content_block_start":
      case "content_block_delta": {
        blocks.push(event)
        const isHidden = isCompaction(blocks.at(event.index ?? 0))
        return pieceOf(isHidden ? [] : shownIn(event.content_block ?? event.delta ?? {}))
      }
      case "content_block_stop":
        return pieceOf(endBlock(event.index ?? 0))
      case "message_delta":
        return finish(event)
      default:
        return noPiece
    }
  }

  return {
    read: (value) => {
      const event = Option.getOrUndefined(readEvent(value))
      if (event === undefined) return unknownEvent
      return event.type === "error" ? faulty(value) : readAnswer(event)
    },
    end: () => undefined
  }
}
