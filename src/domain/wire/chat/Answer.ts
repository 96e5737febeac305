/** Answers of Chat Completions: one message, with every field that its server adds; finish reasons and counts. */

import { isThought, type Part } from "../../content/Content.ts"
import { blockMedia } from "../../content/MediaBlocks.ts"
import { isJson, type Json, jsonAt, jsonsAt, textOrEmpty } from "../../text/JsonObject.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import { callArguments, type GrowingAnswer, type Growth, type ReadableForm } from "../AnswerForm.ts"
import { finishReasonOf } from "../AnswerReader.ts"
import { blockReader } from "../BlockReader.ts"
import { openAiFailure, openAiUsage } from "../OpenAi.ts"
import { faultIn } from "../ProviderFault.ts"
import { InlineThought, inlineParts } from "./InlineThought.ts"

/** The reasons of an answer that its server broke off, with the type of the error that this is: DeepSeek, OpenRouter, vLLM, z.ai. */
const brokenOff: Readonly<Record<string, string>> = {
  error: "server_error",
  network_error: "server_error",
  abort: "server_error",
  insufficient_system_resource: "overloaded"
}

/** The function of a call. */
const functionOf = (call: Json): Json => jsonAt(call, "function")

/** The calls of a message or of a piece of one. In the first form of the dialect it has one, without an id. */
export const callsIn = (message: Json): ReadonlyArray<Json> => {
  const calls = jsonsAt(message, "tool_calls")
  const { function_call: called } = message
  return calls.length === 0 && isJson(called) ? [{ type: "function", function: called }] : calls
}

/** A message, or a piece of one, with calls if there are any. */
export const withCalls = (message: Json, calls: ReadonlyArray<Json>): Json =>
  calls.length === 0 ? message : { ...message, tool_calls: calls }

const joinedChoices = (one: Json, other: Json): Json => {
  const key = "delta" in one ? "delta" : "message"
  const [before, after] = [jsonAt(one, key), jsonAt(other, key)]
  const reason = textOrEmpty(other, "finish_reason") || one["finish_reason"]
  const message = withCalls(withFields(before, after), [...callsIn(before), ...callsIn(after)])
  return { ...one, ...other, [key]: message, finish_reason: reason }
}

/** The one answer that is asked for. Copilot's servers split it: its text is a choice, and its calls are another. */
export const choiceOf = (value: Json): Json | undefined => {
  const [first, ...others] = jsonsAt(value, "choices")
  return first === undefined ? undefined : others.reduce(joinedChoices, first)
}

/** Texts of a list's element that arrive in pieces. Its other values are repeated. */
const growing = new Set(["text", "summary"])

const grownElement = (before: Json, piece: Json): Json => ({
  ...before,
  ...Object.fromEntries(
    Object.entries(piece).flatMap(([key, value]) =>
      value === null
        ? []
        : [[key, growing.has(key) && typeof value === "string" ? textOrEmpty(before, key) + value : value]]
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
  if (Array.isArray(before) && typeof piece === "string") return piece === "" ? before : [...before, textBlock(piece)]
  if (Array.isArray(piece)) return grownList(Array.isArray(before) ? before : [], piece)
  return isJson(before) && isJson(piece) ? { ...before, ...piece } : piece
}

/** Returns the texts of a content that is a text, or a list of blocks of one type (Mistral). */
const textIn = (content: unknown, type: string): string =>
  typeof content === "string"
    ? type === "text"
      ? content
      : ""
    : (Array.isArray(content) ? content : [])
        .filter((block) => isJson(block) && block["type"] === type)
        .map((block) => (typeof block[type] === "string" ? block[type] : textIn(block[type], "text")))
        .join("")

const thoughtIn = (message: Json): string =>
  textOrEmpty(message, "reasoning_content") ||
  textOrEmpty(message, "reasoning") ||
  textIn(message["content"], "thinking")

/** What a delta shows. `inline` reads the text of its answer. OpenRouter has images that a model made in a field of their own. */
const shownIn = (delta: Json, inline: InlineThought): ReadonlyArray<Part> => {
  const images = jsonsAt(delta, "images")
    .map(blockMedia)
    .filter((part) => part !== undefined)
  const thought = thoughtIn(delta)
  if (thought !== "") inline.leave()
  const words = textIn(delta["content"], "text") || textOrEmpty(delta, "refusal")
  return [...(thought === "" ? [] : [{ text: thought, thought: true }]), ...inline.push(words), ...images]
}

/** The fields of a message with those of a piece of it, or of the message after it. */
export const withFields = (
  before: Json,
  { function_call: _called, role: _role, tool_calls: _calls, ...piece }: Json
): Json => ({
  ...before,
  ...Object.fromEntries(
    Object.entries(piece).flatMap(([key, value]) =>
      value === null || value === undefined ? [] : [[key, grown(before[key], value)]]
    )
  )
})

/** What a server added to a message: reasoning, and whatever it wants back. */
const addedTo = ({
  content: _content,
  function_call: _called,
  images: _images,
  refusal: _refusal,
  role: _role,
  tool_calls: _calls,
  ...added
}: Json): Json =>
  Object.fromEntries(Object.entries(added).filter(([, value]) => value !== null && String(value) !== ""))

/** Whether the error of an event says anything. */
const isFault = (event: Json): boolean => {
  const { kind, message } = faultIn(event) ?? { kind: "", message: "unknown" }
  return !/^[\s0]*$/.test(kind + message)
}

/** Whether an event without choices tells of an error, as vLLM, FastAPI, z.ai and MiniMax write it. */
const saysMore = (event: Json): boolean =>
  ["message", "detail", "msg"].some((key) => textOrEmpty(event, key) !== "") ||
  Number(jsonAt(event, "base_resp")["status_code"] ?? 0) > 0

/** An answer of Chat Completions in the making: one message, with every field that its server adds. Mutable. */
class ChatAnswer implements GrowingAnswer {
  private fields: Json = {}
  /** The calls in the order in which they began. Their indexes order them otherwise, where they have any. */
  private readonly begun: Array<{ readonly index: number; readonly call: Json }> = []
  private readonly inline = new InlineThought()
  private usage: unknown
  private reason: string | undefined
  /** Whether its server has a field for the reason of its end: one that is empty until the end is an answer that broke off. */
  private hasReason = false

  /** Adds an event. */
  readonly push = (event: Json): Growth | undefined => {
    const { choices, error } = event
    const first = choiceOf(event)
    const choice = first ?? {}
    const reason = textOrEmpty(choice, "finish_reason")
    this.hasReason ||= choice["finish_reason"] !== undefined
    // The counts may come after the end, in an event without a choice.
    const border = reason !== "" || (first === undefined && "usage" in event) ? "end" : undefined
    // Relays have an empty error in each event.
    if (error !== undefined && error !== null && (first === undefined || isFault(event)))
      return { border, fault: event }
    const type = brokenOff[reason]
    if (type !== undefined) {
      const message = `the server broke off the answer (${reason})`
      return { border, fault: { error: choice["error"] ?? { message, type } } }
    }
    if (choices === undefined || choices === null ? saysMore(event) : !Array.isArray(choices)) return undefined
    // Some servers send a whole answer as a stream of one event, and MiniMax's repeats it at the end.
    const isWhole = !("delta" in choice || this.isBegun)
    const delta = jsonAt(choice, isWhole ? "message" : "delta")
    this.fields = withFields(this.fields, delta)
    const pieces = callsIn(delta).map((call) => ({ at: this.addCall(call), begun: call }))
    // Moonshot's stand in the choice, and some of Groq's in a field of its own.
    const counts = [event["usage"], choice["usage"], jsonAt(event, "x_groq")["usage"]].find(isJson)
    this.usage = counts ?? this.usage
    this.reason = reason || (isWhole && "message" in choice ? "stop" : this.reason)
    return {
      border,
      pieces,
      shown: shownIn(delta, this.inline),
      counts,
      ...(finishReasonOf(reason) === undefined ? { end: reason } : {})
    }
  }

  /** The calls are complete only at the end of the answer. What the server added stands before them. */
  readonly end = (isMarked: boolean): Growth => {
    // Some servers give no reason: NVIDIA's, Ollama, and relays before Gemini.
    const end = this.reason ?? (isMarked && this.isBegun && !this.hasReason ? "stop" : undefined)
    const shown = this.inline.end(end !== undefined && finishReasonOf(end) === "STOP" && this.begun.length === 0)
    if (end === undefined) return { shown }
    const { calls } = this
    return { shown, blocks: calls.length === 0 ? [] : [addedTo(this.fields), ...calls], end }
  }

  /** Whether anything of the answer has come. */
  private get isBegun(): boolean {
    return Object.keys(this.fields).length + this.begun.length > 0
  }

  private addCall({ index, ...piece }: Json): number {
    const at = this.placeOf(index, piece)
    const before = this.begun[at]?.call ?? {}
    const stated = Object.entries(piece).filter(([, value]) => value !== null && value !== "")
    const [known, called] = [functionOf(before), functionOf(piece)]
    const { arguments: given } = called
    // Some servers send an object.
    const whole = isJson(given) ? given : known["arguments"]
    const args = isJson(whole) ? whole : textOrEmpty(known, "arguments") + textOrEmpty(called, "arguments")
    const id = textOrEmpty(before, "id") || piece["id"]
    const call = {
      ...before,
      ...Object.fromEntries(stated),
      ...(id === undefined ? {} : { id }),
      function: {
        ...known,
        ...called,
        name: textOrEmpty(called, "name") || textOrEmpty(known, "name"),
        arguments: args
      }
    }
    this.begun[at] = { index: typeof index === "number" ? index : at, call }
    return at
  }

  /**
   * The place of the call that a piece belongs to. Servers leave the index out, give all calls the same one, or each piece another id: a call
   * begins with a piece that has a name, and another id, no index, or arguments after those that are whole.
   */
  private placeOf(index: unknown, piece: Json): number {
    const [id, name] = [textOrEmpty(piece, "id"), textOrEmpty(functionOf(piece), "name")]
    const isIndexed = typeof index === "number"
    const { begun } = this
    const same = begun.findLastIndex((each) => (isIndexed ? each.index === index : id !== "" && each.call["id"] === id))
    const at = same < 0 && !isIndexed ? begun.length - 1 : same
    const before = begun[at]?.call
    if (before === undefined) return begun.length
    const known = functionOf(before)
    // Read only where another call may begin: arguments come in as many pieces as a server likes.
    const isWhole = () =>
      textOrEmpty(functionOf(piece), "arguments").trimStart().startsWith("{") &&
      isJson(parsedOrUndefined(textOrEmpty(known, "arguments")))
    const isOther = () =>
      id === "" ? (isIndexed ? isWhole() : textOrEmpty(known, "name") !== "") : textOrEmpty(before, "id") !== id
    return name !== "" && isOther() ? begun.length : at
  }

  /** The calls, in their order. */
  private get calls(): ReadonlyArray<Json> {
    return this.begun.toSorted((one, other) => one.index - other.index).map(({ call }) => call)
  }

  /** The answer so far, as a server sends a whole one. */
  get whole(): Json {
    const { calls } = this
    return { choices: [{ message: withCalls(this.fields, calls) }], usage: this.usage }
  }
}

/** The message of a whole answer. */
export const messageOf = (answer: Json): Json => jsonAt(choiceOf(answer) ?? {}, "message")

/** A text as a block. In this dialect a message has one, beside its calls. */
export const textBlock = (text: string): Json => ({ type: "text", text })

/** The facts of this dialect about its answers. A block is a call, the text of the message, or what the server added to the message. */
export const answerForm: ReadableForm = {
  begin: () => new ChatAnswer(),
  blocksOf: (answer) => {
    const message = choiceOf(answer)?.["message"]
    if (!isJson(message)) return undefined
    const text = textIn(message["content"], "text")
    const added = addedTo(message)
    return [
      ...(Object.keys(added).length === 0 ? [] : [added]),
      ...(text === "" ? [] : [textBlock(text)]),
      ...callsIn(message)
    ]
  },
  usageKey: "usage",
  usage: openAiUsage("prompt", "completion"),
  callOf: (block) => {
    if (!isJson(block["function"])) return undefined
    const called = functionOf(block)
    return {
      id: textOrEmpty(block, "id"),
      name: textOrEmpty(called, "name"),
      args: callArguments(called["arguments"])
    }
  },
  // Such as `extra_content` of a call, in which Gemini's servers put their signature.
  stateOf: (block) => {
    const { function: called, id: _id, type: _type, ...added } = block
    const state = called === undefined ? block : added
    return Object.keys(state).length === 0 ? undefined : state
  },
  finishReason: finishReasonOf,
  visible: (block) => {
    if (block["type"] === "text") return { kind: "text", text: textOrEmpty(block, "text") }
    return { kind: "function" in block ? "other" : "thought", text: thoughtIn(block) }
  },
  failure: openAiFailure,
  sent: (_, answer) => {
    const message = messageOf(answer)
    const words = inlineParts(textIn(message["content"], "text")).filter((part) => !isThought(part))
    return [{ ...message, role: "assistant", content: words.map(({ text }) => text).join("") || null }]
  }
}

/** Reads one answer of a server of Chat Completions. */
export const chatAnswerReader = blockReader(answerForm)
