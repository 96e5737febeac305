import { Option, Result, Schema } from "effect"
import type { Part } from "../../content/Content.ts"
import { AnswerCalls } from "../AnswerCalls.ts"
import { type AnswerPiece, type AnswerReader, outputLimit, type Reading, unknownEvent } from "../AnswerReader.ts"
import { counted } from "../AnswerUsage.ts"
import { type Json, textAt } from "../MessageCodec.ts"
import { carriedState, statePart } from "../ModelState.ts"
import { faultIn, faulty } from "../ProviderFault.ts"
import { addedToCall, ChatMessage, functionOf } from "./Answer.ts"
import { usage } from "./Chat.ts"

/** Reads the events of a server of Chat Completions. */

const record = Schema.Record(Schema.String, Schema.Unknown)
const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

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
  length: outputLimit
}

const isEmpty = (added: Json): boolean => Object.keys(added).length === 0

/** The last piece: the calls are complete only at the end of the answer. What the server added stands before them. */
const callsPiece = (message: ChatMessage, { target, tools }: Reading, finishReason: string): AnswerPiece => {
  const calls = new AnswerCalls(tools)
  const parts = message.calls.flatMap((call) => {
    const called = functionOf(call)
    const read = calls.read({ id: textAt(call, "id"), name: textAt(called, "name"), args: textAt(called, "arguments") })
    const added = addedToCall(call)
    return isEmpty(added) ? read : read.map((part) => ({ ...part, thoughtSignature: carriedState(target, added) }))
  })
  const end = calls.end(finishReason)
  const states = message.calls.length === 0 || isEmpty(message.added) ? [] : [statePart(target, message.added)]
  return { parts: [...states, ...parts, ...end.parts], finishReason: end.finishReason }
}

/** What a delta shows. */
const shownIn = (delta: Json): ReadonlyArray<Part> => {
  const thought = textAt(delta, "reasoning_content") || textAt(delta, "reasoning")
  const words = textAt(delta, "content") || textAt(delta, "refusal")
  return [...(thought === "" ? [] : [{ text: thought, thought: true }]), ...(words === "" ? [] : [{ text: words }])]
}

/** Reads one answer of a server of Chat Completions. */
export const chatReader = (reading: Reading): AnswerReader => {
  const message = new ChatMessage()
  let finishReason: string | undefined
  return {
    read: (value) => {
      const event = Option.getOrUndefined(readChatEvent(value))
      if (event?.error !== undefined && event.error !== null) return faulty(value)
      if (event === undefined) return faultIn(value)?.message ? faulty(value) : unknownEvent
      const { delta, finish_reason: reason } = event.choices?.[0] ?? {}
      message.push(delta ?? {})
      if (reason === "content_filter") return Result.fail({ _tag: "Refusal", reason })
      if (reason) finishReason = chatFinishReasons[reason] ?? reason
      const piece = { parts: shownIn(delta ?? {}), ...counted(usage, event.usage) }
      return Result.succeed(piece.parts.length === 0 && !("usage" in piece) ? undefined : piece)
    },
    end: () => (finishReason === undefined ? undefined : callsPiece(message, reading, finishReason))
  }
}
