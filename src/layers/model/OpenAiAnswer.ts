import { Effect, Option, Schema } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import { provider } from "../../domain/model/OpenAiMessages.ts"
import { isCompaction, signatureOf } from "../../domain/model/ProviderSignature.ts"
import type { ToolNames } from "../../domain/model/ToolDeclarations.ts"
import type { Usage } from "../../domain/tokens/Tokens.ts"
import { faultIn } from "../../domain/wire/ProviderFault.ts"
import { ContentPolicyError, type ModelChunk, type ModelError } from "../../services/model/Model.ts"
import { AnswerCalls } from "./AnswerCalls.ts"
import { clip, failed, unusable } from "./ModelFailures.ts"
import { type ProviderNames, reasonOfEvent } from "./ProviderErrors.ts"
import type { EventReader } from "./ProviderExchange.ts"

/** Reads the events of the Responses API and of Chat Completions. */

const text = Schema.optionalKey(Schema.NullOr(Schema.String))
const count = Schema.optionalKey(Schema.NullOr(Schema.Natural))
const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** The counts of both dialects, which differ in their names. */
interface Counts {
  readonly input: number | null | undefined
  readonly output: number | null | undefined
  readonly cached: number | null | undefined
  readonly thoughts: number | null | undefined
}

const usageOf = ({ cached, input, output, thoughts }: Counts): Usage => ({
  prompt: input ?? 0,
  answer: Math.max(0, (output ?? 0) - (thoughts ?? 0)),
  thoughts: thoughts ?? 0,
  cached: cached ?? 0
})

const unknownEvent = unusable("it contains an event of an unknown form")

const refused = (reason: string) => Effect.fail(failed(new ContentPolicyError({ finishReason: reason })))

const ResponseEvent = Schema.Struct({
  type: Schema.String,
  delta: Schema.optionalKey(Schema.Unknown),
  item: optional(
    Schema.Struct({
      type: text,
      id: text,
      call_id: text,
      name: text,
      arguments: text,
      summary: optional(Schema.Unknown),
      encrypted_content: text
    })
  ),
  response: optional(
    Schema.Struct({
      error: optional(Schema.Unknown),
      incomplete_details: optional(Schema.Struct({ reason: text })),
      usage: optional(
        Schema.Struct({
          input_tokens: count,
          output_tokens: count,
          input_tokens_details: optional(Schema.Struct({ cached_tokens: count })),
          output_tokens_details: optional(Schema.Struct({ reasoning_tokens: count }))
        })
      )
    })
  )
})
type ResponseEvent = typeof ResponseEvent.Type
/** An item with all its fields. */
const readWholeItem = Schema.decodeUnknownOption(Schema.Struct({ item: Schema.Record(Schema.String, Schema.Unknown) }))
const readResponseEvent = Schema.decodeUnknownOption(ResponseEvent)

const signed = (block: Readonly<Record<string, unknown>>): Part => ({
  text: "",
  thoughtSignature: signatureOf(provider, block)
})

/** The parts of an item that is whole. */
const itemParts = ({ item }: ResponseEvent, whole: unknown, calls: AnswerCalls): ReadonlyArray<Part> => {
  if (isCompaction(item)) return [signed(Option.getOrElse(readWholeItem(whole), () => ({ item: {} })).item)]
  if (item?.type === "function_call") {
    const { arguments: args, call_id: id, name } = item
    return calls.read({ id: id ?? undefined, name: name ?? "", args: args ?? "" })
  }
  if (item?.type !== "reasoning" || !item.encrypted_content) return []
  const { encrypted_content, id, summary } = item
  return [signed({ type: "reasoning", id: id ?? undefined, summary: summary ?? [], encrypted_content })]
}

const lastChunk = ({ response, type }: ResponseEvent, calls: AnswerCalls): Effect.Effect<ModelChunk, ModelError> => {
  const reason = type === "response.completed" ? "completed" : (response?.incomplete_details?.reason ?? "incomplete")
  if (reason === "content_filter") return refused(reason)
  const finishReason = reason === "completed" ? "STOP" : reason === "max_output_tokens" ? "MAX_TOKENS" : "OTHER"
  const usage = response?.usage
  return Effect.succeed({
    ...calls.end(finishReason),
    ...(usage
      ? {
          usage: usageOf({
            input: usage.input_tokens,
            output: usage.output_tokens,
            cached: usage.input_tokens_details?.cached_tokens,
            thoughts: usage.output_tokens_details?.reasoning_tokens
          })
        }
      : {})
  })
}

const chunkOf = (parts: ReadonlyArray<Part>) => Effect.succeed(parts.length === 0 ? undefined : { parts })

/** Reads one answer of the Responses API. */
export const makeResponsesReader = (
  names: ToolNames,
  provided: ProviderNames,
  hide: (text: string) => string
): EventReader => {
  const calls = new AnswerCalls(names)
  const fault = (value: unknown) => {
    const { kind, message } = faultIn(value) ?? { kind: "", message: "" }
    // The type of the event says nothing.
    const named = { kind: kind.replace(/^error /, ""), message: hide(message) }
    return Effect.fail(failed(reasonOfEvent(named, provided)))
  }
  return {
    read: (value) => {
      const event = Option.getOrUndefined(readResponseEvent(value))
      if (event === undefined) return faultIn(value)?.message ? fault(value) : Effect.fail(unknownEvent)
      const delta = typeof event.delta === "string" ? event.delta : ""
      switch (event.type) {
        case "response.output_text.delta":
        case "response.refusal.delta":
          return chunkOf(delta === "" ? [] : [{ text: delta }])
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta":
          return chunkOf(delta === "" ? [] : [{ text: delta, thought: true }])
        case "response.output_item.done":
          return chunkOf(itemParts(event, value, calls))
        case "response.completed":
        case "response.incomplete":
          return lastChunk(event, calls)
        case "response.failed":
          return fault({ error: event.response?.error })
        case "error":
          return fault(value)
        default:
          return Effect.undefined
      }
    },
    end: () => Effect.undefined
  }
}

const ChatEvent = Schema.Struct({
  choices: optional(
    Schema.Array(
      Schema.Struct({
        delta: optional(
          Schema.Struct({
            content: text,
            refusal: text,
            reasoning_content: text,
            reasoning: text,
            tool_calls: optional(
              Schema.Array(
                Schema.Struct({
                  index: count,
                  id: text,
                  function: optional(Schema.Struct({ name: text, arguments: text }))
                })
              )
            )
          })
        ),
        finish_reason: text
      })
    )
  ),
  usage: optional(
    Schema.Struct({
      prompt_tokens: count,
      completion_tokens: count,
      prompt_tokens_details: optional(Schema.Struct({ cached_tokens: count })),
      completion_tokens_details: optional(Schema.Struct({ reasoning_tokens: count }))
    })
  )
})
type ChatEvent = typeof ChatEvent.Type
const readChatEvent = Schema.decodeUnknownOption(ChatEvent)

const chatFinishReasons: Readonly<Record<string, string>> = {
  stop: "STOP",
  eos: "STOP",
  tool_calls: "STOP",
  function_call: "STOP",
  length: "MAX_TOKENS"
}

const hasError = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "error" in value && value.error !== null && value.error !== undefined

type CallDelta = NonNullable<NonNullable<NonNullable<ChatEvent["choices"]>[number]["delta"]>["tool_calls"]>[number]

/** The tool calls of an answer, as far as they are read, by index. Their arguments come in pieces. */
type OpenCalls = Map<number, { id: string; name: string; readonly args: Array<string> }>

const addCall = (calls: OpenCalls, { function: called, id, index }: CallDelta): void => {
  // Servers that send calls in one piece may leave out the index.
  const at = index ?? calls.size
  const call = calls.get(at) ?? { id: "", name: "", args: [] }
  calls.set(at, call)
  if (id) call.id = id
  if (called?.name) call.name = called.name
  if (called?.arguments) call.args.push(called.arguments)
}

/** The last chunk: the calls are complete only at the end of the answer. */
const callsChunk = (open: OpenCalls, names: ToolNames, finishReason: string): ModelChunk => {
  const calls = new AnswerCalls(names)
  const parts = [...open.values()].flatMap(({ args, id, name }) => calls.read({ id, name, args: args.join("") }))
  const end = calls.end(finishReason)
  return { parts: [...parts, ...end.parts], finishReason: end.finishReason }
}

/** The text and the token counts of an event. Undefined: it has none. */
const textChunk = ({ choices, usage }: ChatEvent): ModelChunk | undefined => {
  const delta = choices?.[0]?.delta
  const thought = delta?.reasoning_content || delta?.reasoning
  const words = delta?.content || delta?.refusal
  const parts = [...(thought ? [{ text: thought, thought: true }] : []), ...(words ? [{ text: words }] : [])]
  if (!usage) return parts.length === 0 ? undefined : { parts }
  return {
    parts,
    usage: usageOf({
      input: usage.prompt_tokens,
      output: usage.completion_tokens,
      cached: usage.prompt_tokens_details?.cached_tokens,
      thoughts: usage.completion_tokens_details?.reasoning_tokens
    })
  }
}

/** Reads one answer of a server of Chat Completions. */
export const makeChatReader = (
  names: ToolNames,
  provided: ProviderNames,
  hide: (text: string) => string
): EventReader => {
  const calls: OpenCalls = new Map()
  let finishReason: string | undefined
  return {
    read: (value) => {
      if (hasError(value)) {
        const { kind, message } = faultIn(value) ?? { kind: "", message: "" }
        return Effect.fail(failed(reasonOfEvent({ kind, message: hide(message) }, provided)))
      }
      const event = Option.getOrUndefined(readChatEvent(value))
      if (event === undefined) return Effect.fail(unknownEvent)
      const choice = event.choices?.[0]
      for (const call of choice?.delta?.tool_calls ?? []) addCall(calls, call)
      const reason = choice?.finish_reason
      if (reason === "content_filter") return refused(reason)
      if (reason) finishReason = chatFinishReasons[reason] ?? clip(hide(reason))
      return Effect.succeed(textChunk(event))
    },
    end: () => Effect.sync(() => (finishReason === undefined ? undefined : callsChunk(calls, names, finishReason)))
  }
}
