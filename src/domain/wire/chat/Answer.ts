import type { Part } from "../../content/Content.ts"
import { type AnswerForm, callArguments, type GrowingAnswer, type Growth, type ReadableForm } from "../AnswerForm.ts"
import { outputLimit } from "../AnswerReader.ts"
import { blockReader } from "../BlockReader.ts"
import { isJson, type Json, jsonAt, jsonsAt, textAt } from "../MessageCodec.ts"
import { openAiFailure, openAiUsage } from "../OpenAiMessages.ts"

/** Answers of Chat Completions: one message, with every field that its server adds; finish reasons and counts. */

const finishReasons: Readonly<Record<string, string>> = {
  stop: "STOP",
  eos: "STOP",
  tool_calls: "STOP",
  function_call: "STOP",
  length: outputLimit
}

/** The reason of an answer that the model refused to give. */
const refused = "content_filter"

/** The one answer that is asked for. */
export const firstChoice = (value: Json): Json | undefined => jsonsAt(value, "choices")[0]

/** The function of a call. */
export const functionOf = (call: Json): Json => jsonAt(call, "function")

/** Texts of a list's element that arrive in pieces. Its other values are repeated. */
const growing = new Set(["text", "summary"])

const grownElement = (before: Json, piece: Json): Json => ({
  ...before,
  ...Object.fromEntries(
    Object.entries(piece).flatMap(([key, value]) =>
      value === null ? [] : [[key, growing.has(key) && typeof value === "string" ? textAt(before, key) + value : value]]
    )
  )
})

const grownList = (before: ReadonlyArray<unknown>, pieces: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const list = [...before]
  for (const piece of pieces) {
    const at = list.findIndex(
      (each) =>
        isJson(each) &&
        isJson(piece) &&
        typeof piece["index"] === "number" &&
        each["index"] === piece["index"] &&
        each["type"] === piece["type"]
    )
    const known = list[at]
    if (isJson(known) && isJson(piece)) list[at] = grownElement(known, piece)
    else list.push(piece)
  }
  return list
}

const grown = (before: unknown, piece: unknown): unknown => {
  if (typeof before === "string" && typeof piece === "string") return before + piece
  if (Array.isArray(piece)) return grownList(Array.isArray(before) ? before : [], piece)
  return isJson(before) && isJson(piece) ? { ...before, ...piece } : piece
}

/** What a delta shows. */
const shownIn = (delta: Json): ReadonlyArray<Part> => {
  const thought = textAt(delta, "reasoning_content") || textAt(delta, "reasoning")
  const words = textAt(delta, "content") || textAt(delta, "refusal")
  return [...(thought === "" ? [] : [{ text: thought, thought: true }]), ...(words === "" ? [] : [{ text: words }])]
}

/** An answer of Chat Completions in the making: one message, with every field that its server adds. Mutable. */
export class ChatAnswer implements GrowingAnswer {
  private readonly fields: Record<string, unknown> = {}
  private readonly callsByIndex = new Map<number, Json>()
  private usage: unknown
  private reason: string | undefined
  /** The indexes of the calls in the last event. */
  indexes: ReadonlyArray<number> = []

  /** Adds an event. */
  readonly push = (event: Json): Growth | undefined => {
    const { choices, error } = event
    if (error !== undefined && error !== null) return { fault: event }
    if (choices !== undefined && choices !== null && !Array.isArray(choices)) return undefined
    const choice = firstChoice(event) ?? {}
    const delta = jsonAt(choice, "delta")
    this.add(delta)
    this.indexes = jsonsAt(delta, "tool_calls").map((call) => this.addCall(call))
    const counts = isJson(event["usage"]) ? event["usage"] : undefined
    this.usage = counts ?? this.usage
    const reason = textAt(choice, "finish_reason")
    this.reason = reason || this.reason
    return { shown: shownIn(delta), counts, ...(reason === refused ? { end: reason } : {}) }
  }

  /** The calls are complete only at the end of the answer. What the server added stands before them. */
  readonly end = (): Growth => {
    if (this.reason === undefined) return {}
    const { calls } = this
    const { content: _content, refusal: _refusal, ...added } = this.fields
    return { blocks: calls.length === 0 ? [] : [added, ...calls], end: this.reason }
  }

  private add({ role: _, tool_calls: _calls, ...fields }: Json): void {
    for (const [key, value] of Object.entries(fields)) {
      if (value !== null && value !== undefined) this.fields[key] = grown(this.fields[key], value)
    }
  }

  private addCall({ index, ...piece }: Json): number {
    // Servers that send calls in one piece may leave out the index.
    const at = typeof index === "number" ? index : this.callsByIndex.size
    const before = this.callsByIndex.get(at) ?? {}
    const stated = Object.entries(piece).filter(([, value]) => value !== null && value !== "")
    const [known, called] = [functionOf(before), functionOf(piece)]
    const args = textAt(known, "arguments") + textAt(called, "arguments")
    this.callsByIndex.set(at, {
      ...before,
      ...Object.fromEntries(stated),
      function: { ...known, ...called, name: textAt(called, "name") || textAt(known, "name"), arguments: args }
    })
    return at
  }

  /** The calls, in their order. */
  private get calls(): ReadonlyArray<Json> {
    return [...this.callsByIndex].sort(([one], [other]) => one - other).map(([, call]) => call)
  }

  /** The answer so far, as a server sends a whole one. */
  get whole(): Json {
    const { calls } = this
    const message = { ...this.fields, ...(calls.length === 0 ? {} : { tool_calls: calls }) }
    return { choices: [{ message }], usage: this.usage }
  }
}

/** The message of a whole answer. */
export const messageOf = (answer: Json): Json => jsonAt(firstChoice(answer) ?? {}, "message")

/** A text as a block. In this dialect a message has one, beside its calls. */
export const textBlock = (text: string): Json => ({ type: "text", text })

/** The facts of this dialect about its answers. A block is a call, the text of the message, or what the server added to the message. */
export const answerForm: ReadableForm & AnswerForm<ChatAnswer> = {
  begin: () => new ChatAnswer(),
  blocksOf: (answer) => {
    const message = firstChoice(answer)?.["message"]
    if (!isJson(message)) return undefined
    const text = textAt(message, "content")
    return [...(text === "" ? [] : [textBlock(text)]), ...jsonsAt(message, "tool_calls")]
  },
  usageKey: "usage",
  usage: openAiUsage("prompt", "completion"),
  callOf: (block) => {
    if (!isJson(block["function"])) return undefined
    const called = functionOf(block)
    return {
      id: textAt(block, "id"),
      name: textAt(called, "name"),
      args: callArguments(textAt(called, "arguments"))
    }
  },
  // Such as `extra_content` of a call, in which Gemini's servers put their signature.
  stateOf: (block) => {
    const { function: called, id: _id, type: _type, ...added } = block
    const state = called === undefined ? block : added
    return Object.keys(state).length === 0 ? undefined : state
  },
  finishReason: (end) => (end === refused ? undefined : (finishReasons[end] ?? end)),
  visible: (block) =>
    block["type"] === "text" ? { kind: "text", text: textAt(block, "text") } : { kind: "other", text: "" },
  failure: openAiFailure,
  sent: (_, answer) => {
    const message = messageOf(answer)
    return [{ ...message, role: "assistant", content: textAt(message, "content") || null }]
  }
}

/** Reads one answer of a server of Chat Completions. */
export const chatAnswerReader = blockReader(answerForm)
