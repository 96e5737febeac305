import { Effect, Option, Schema } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import { usageOf } from "../../domain/wire/AnswerUsage.ts"
import { addedToCall, ChatMessage, functionOf } from "../../domain/wire/chat/Answer.ts"
import { chat } from "../../domain/wire/chat/Chat.ts"
import type { WireDialect } from "../../domain/wire/Dialect.ts"
import { type Json, textAt } from "../../domain/wire/MessageCodec.ts"
import { carriedState, isCompaction, type Target } from "../../domain/wire/ModelState.ts"
import { faultIn } from "../../domain/wire/ProviderFault.ts"
import { responses } from "../../domain/wire/responses/Responses.ts"
import { ContentPolicyError, type ModelChunk, type ModelError } from "../../services/model/Model.ts"
import { AnswerCalls } from "./AnswerCalls.ts"
import { clip, failed, unusable } from "./ModelFailures.ts"
import { reasonOfEvent } from "./ProviderErrors.ts"
import type { EventReader, Reading } from "./ProviderExchange.ts"

/** Reads the events of the Responses API and of Chat Completions. */

const record = Schema.Record(Schema.String, Schema.Unknown)
const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const unknownEvent = unusable("it contains an event of an unknown form")

const refused = (reason: string) => Effect.fail(failed(new ContentPolicyError({ finishReason: reason })))

const chunkOf = (parts: ReadonlyArray<Part>) => Effect.succeed(parts.length === 0 ? undefined : { parts })

const counted = ({ usage: read }: WireDialect, counts: unknown): Pick<ModelChunk, "usage"> => {
  const usage = usageOf(read, counts)
  return usage === undefined ? {} : { usage }
}

const faulty = (value: unknown, { hide, names }: Reading) => {
  const { kind, message } = faultIn(value) ?? { kind: "", message: "" }
  // The type of an event says nothing.
  return Effect.fail(failed(reasonOfEvent({ kind: kind.replace(/^error /, ""), message: hide(message) }, names)))
}

/** A part that carries a state alone. */
const stateOf = (target: Target, state: Json): Part => ({ text: "", thoughtSignature: carriedState(target, state) })

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
  if (isCompaction(item)) return [stateOf(target, item)]
  switch (item["type"]) {
    case "function_call":
      return calls.read({ id: textAt(item, "call_id"), name: textAt(item, "name"), args: textAt(item, "arguments") })
    case "reasoning": {
      const { encrypted_content, id, summary } = item
      if (typeof encrypted_content !== "string" || encrypted_content === "") return []
      return [stateOf(target, { type: "reasoning", id: id ?? undefined, summary: summary ?? [], encrypted_content })]
    }
    default:
      return []
  }
}

const lastChunk = ({ response, type }: ResponseEvent, calls: AnswerCalls): Effect.Effect<ModelChunk, ModelError> => {
  const reason =
    type === "response.completed" ? "completed" : textAt(response?.incomplete_details ?? {}, "reason") || "incomplete"
  if (reason === "content_filter") return refused(reason)
  const finishReason = reason === "completed" ? "STOP" : reason === "max_output_tokens" ? "MAX_TOKENS" : "OTHER"
  return Effect.succeed({ ...calls.end(finishReason), ...counted(responses, response?.usage) })
}

/** Reads one answer of the Responses API. */
export const makeResponsesReader = (reading: Reading): EventReader => {
  const calls = new AnswerCalls(reading.tools)
  return {
    read: (value) => {
      const event = Option.getOrUndefined(readResponseEvent(value))
      if (event === undefined) return faultIn(value)?.message ? faulty(value, reading) : Effect.fail(unknownEvent)
      const delta = typeof event.delta === "string" ? event.delta : ""
      switch (event.type) {
        case "response.output_text.delta":
        case "response.refusal.delta":
          return chunkOf(delta === "" ? [] : [{ text: delta }])
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta":
          return chunkOf(delta === "" ? [] : [{ text: delta, thought: true }])
        case "response.output_item.done":
          return chunkOf(itemParts(event.item ?? {}, reading, calls))
        case "response.completed":
        case "response.incomplete":
          return lastChunk(event, calls)
        case "response.failed":
          return faulty({ error: event.response?.error }, reading)
        case "error":
          return faulty(value, reading)
        default:
          return Effect.undefined
      }
    },
    end: () => Effect.undefined
  }
}

const ChatEvent = Schema.Struct({
  choices: optional(Schema.Array(Schema.Struct({ delta: optional(record), finish_reason: optional(Schema.String) }))),
  error: optional(Schema.Unknown),
  usage: optional(record)
})
const readChatEvent = Schema.decodeUnknownOption(ChatEvent)

const chatFinishReasons: Readonly<Record<string, string>> = {
  stop: "STOP",
  eos: "STOP",
  tool_calls: "STOP",
  function_call: "STOP",
  length: "MAX_TOKENS"
}

const isEmpty = (added: Json): boolean => Object.keys(added).length === 0

/** The last chunk: the calls are complete only at the end of the answer. What the server added stands before them. */
const callsChunk = (message: ChatMessage, { target, tools }: Reading, finishReason: string): ModelChunk => {
  const calls = new AnswerCalls(tools)
  const parts = message.calls.flatMap((call) => {
    const called = functionOf(call)
    const read = calls.read({ id: textAt(call, "id"), name: textAt(called, "name"), args: textAt(called, "arguments") })
    const added = addedToCall(call)
    return isEmpty(added) ? read : read.map((part) => ({ ...part, thoughtSignature: carriedState(target, added) }))
  })
  const end = calls.end(finishReason)
  const states = message.calls.length === 0 || isEmpty(message.added) ? [] : [stateOf(target, message.added)]
  return { parts: [...states, ...parts, ...end.parts], finishReason: end.finishReason }
}

/** What a delta shows. */
const shownIn = (delta: Json): ReadonlyArray<Part> => {
  const thought = textAt(delta, "reasoning_content") || textAt(delta, "reasoning")
  const words = textAt(delta, "content") || textAt(delta, "refusal")
  return [...(thought === "" ? [] : [{ text: thought, thought: true }]), ...(words === "" ? [] : [{ text: words }])]
}

/** Reads one answer of a server of Chat Completions. */
export const makeChatReader = (reading: Reading): EventReader => {
  const message = new ChatMessage()
  let finishReason: string | undefined
  return {
    read: (value) => {
      const event = Option.getOrUndefined(readChatEvent(value))
      if (event?.error !== undefined && event.error !== null) return faulty(value, reading)
      if (event === undefined) return faultIn(value)?.message ? faulty(value, reading) : Effect.fail(unknownEvent)
      const { delta, finish_reason: reason } = event.choices?.[0] ?? {}
      message.push(delta ?? {})
      if (reason === "content_filter") return refused(reason)
      if (reason) finishReason = chatFinishReasons[reason] ?? clip(reading.hide(reason))
      const chunk = { parts: shownIn(delta ?? {}), ...counted(chat, event.usage) }
      return Effect.succeed(chunk.parts.length === 0 && !("usage" in chunk) ? undefined : chunk)
    },
    end: () => Effect.sync(() => (finishReason === undefined ? undefined : callsChunk(message, reading, finishReason)))
  }
}
