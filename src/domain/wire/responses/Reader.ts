import { Option, Result, Schema } from "effect"
import type { Part } from "../../content/Content.ts"
import { AnswerCalls } from "../AnswerCalls.ts"
import {
  type AnswerReader,
  noPiece,
  outputLimit,
  pieceOf,
  type ReadEvent,
  type Reading,
  unknownEvent
} from "../AnswerReader.ts"
import { counted } from "../AnswerUsage.ts"
import { type Json, textAt } from "../MessageCodec.ts"
import { isCompaction, statePart } from "../ModelState.ts"
import { faultIn, faulty } from "../ProviderFault.ts"
import { usage } from "./Responses.ts"

/** Reads the events of the Responses API. */

const record = Schema.Record(Schema.String, Schema.Unknown)
const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const ResponseEvent = Schema.Struct({
  type: Schema.String,
  delta: Schema.optionalKey(Schema.Unknown),
  item: optional(record),
  response: optional(
    Schema.Struct({
      error: optional(Schema.Unknown),
      incomplete_details: optional(record),
      usage: optional(record)
    })
  )
})
type ResponseEvent = typeof ResponseEvent.Type
const readResponseEvent = Schema.decodeUnknownOption(ResponseEvent)

/** The parts of an item that is whole. Reasoning without its encrypted content cannot go back, because the API stores none. */
const itemParts = (item: Json, { target }: Reading, calls: AnswerCalls): ReadonlyArray<Part> => {
  if (isCompaction(item)) return [statePart(target, item)]
  switch (item["type"]) {
    case "function_call":
      return calls.read({ id: textAt(item, "call_id"), name: textAt(item, "name"), args: textAt(item, "arguments") })
    case "reasoning": {
      const { encrypted_content, id, summary } = item
      if (typeof encrypted_content !== "string" || encrypted_content === "") return []
      return [statePart(target, { type: "reasoning", id: id ?? undefined, summary: summary ?? [], encrypted_content })]
    }
    default:
      return []
  }
}

const lastChunk = ({ response, type }: ResponseEvent, calls: AnswerCalls): ReadEvent => {
  const reason =
    type === "response.completed" ? "completed" : textAt(response?.incomplete_details ?? {}, "reason") || "incomplete"
  if (reason === "content_filter") return Result.fail({ _tag: "Refusal", reason })
  const finishReason = reason === "completed" ? "STOP" : reason === "max_output_tokens" ? outputLimit : "OTHER"
  return Result.succeed({ ...calls.end(finishReason), ...counted(usage, response?.usage) })
}

/** Reads one answer of the Responses API. */
export const responsesReader = (reading: Reading): AnswerReader => {
  const calls = new AnswerCalls(reading.tools)
  return {
    read: (value) => {
      const event = Option.getOrUndefined(readResponseEvent(value))
      if (event === undefined) return faultIn(value)?.message ? faulty(value) : unknownEvent
      const delta = typeof event.delta === "string" ? event.delta : ""
      switch (event.type) {
        case "response.output_text.delta":
        case "response.refusal.delta":
          return pieceOf(delta === "" ? [] : [{ text: delta }])
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta":
          return pieceOf(delta === "" ? [] : [{ text: delta, thought: true }])
        case "response.output_item.done":
          return pieceOf(itemParts(event.item ?? {}, reading, calls))
        case "response.completed":
        case "response.incomplete":
          return lastChunk(event, calls)
        case "response.failed":
          return faulty({ error: event.response?.error })
        case "error":
          return faulty(value)
        default:
          return noPiece
      }
    },
    end: () => undefined
  }
}
