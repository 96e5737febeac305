import type { Part } from "../../content/Content.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import { addedCounts } from "../AddedCounts.ts"
import { isJson, type Json, textAt } from "../MessageCodec.ts"
import type { AnswerDialect, AnswerStream, ReadAnswer, RecallCall, VisibleBlock } from "../RelayedAnswer.ts"
import { type SseEvent, sseText } from "../SseEvents.ts"
import { type BlockForm, wholeBlocks } from "../WholeBlocks.ts"
import { inputPart } from "./Request.ts"

/** Answers of OpenAI's Responses API. */

const isRecall = (tool: string, item: Json): boolean => item["type"] === "function_call" && item["name"] === tool

/** Items that the client answers itself. */
const clientCalls = new Set(["function_call", "custom_tool_call", "local_shell_call", "computer_call", "shell_call"])

/** Returns the text of a message item. */
const itemText = ({ content }: Json): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? content.map((block: unknown) => (isJson(block) ? textAt(block, "text") : "")).join("")
      : ""

const visibleItem = (item: Json): VisibleBlock => {
  if (item["type"] === "reasoning") return { kind: "thought", text: "" }
  return (item["type"] ?? "message") === "message"
    ? { kind: "text", text: itemText(item) }
    : { kind: "other", text: "" }
}

const callOf = (item: Json): RecallCall => ({
  id: textAt(item, "call_id"),
  name: textAt(item, "name"),
  args: parsedOrUndefined(textAt(item, "arguments")),
  json: JSON.stringify(item)
})

const answerOf = (tool: string, items: ReadonlyArray<Json>, usage: unknown): ReadAnswer => {
  const own = items.filter((item) => isRecall(tool, item))
  const others = items.filter((item) => !isRecall(tool, item))
  return {
    calls: own.map(callOf),
    hasOthers: others.some(({ type }) => typeof type === "string" && clientCalls.has(type)),
    sent: items.map((item) => JSON.stringify(item)),
    visible: others.map(visibleItem),
    usage
  }
}

const outputOf = (response: unknown): ReadonlyArray<Json> =>
  isJson(response) && Array.isArray(response["output"]) ? response["output"].filter(isJson) : []

/** Returns an item with a message of the gateway. */
const noteItem = (text: string, at: number) => ({
  id: `msg_palimpsest_${at}`,
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }]
})

const endings = new Set(["response.completed", "response.incomplete", "response.failed", "response.done"])
const beginnings = new Set(["response.created", "response.in_progress", "response.queued"])

/** Media as the client sent them: a file that is no address has an id of this provider. */
const mediaPart = (part: Part): Json => {
  const { fileUri = "", mimeType = "" } = part.fileData ?? {}
  if (part.fileData === undefined || /^https?:/.test(fileUri)) return inputPart(part)
  return { type: mimeType.startsWith("image/") ? "input_image" : "input_file", file_id: fileUri }
}

class Stream implements AnswerStream {
  private readonly tool: string
  private items = new Map<number, Json>()
  /** The client's index of each item, by its index in the current answer. Items of the gateway's tool have none. */
  private indexes = new Map<number, number>()
  private shown = 0
  private rounds = 1
  /** Items that the client received in earlier answers of this exchange. */
  private readonly before: Array<Json> = []
  private usage: unknown
  private earlier: unknown
  private held: Array<SseEvent> = []
  /** The response as the client received it at the beginning. Clients reject an ending with another identity. */
  private identity: Json = {}
  /** The offset added to the provider's event numbers, and the last number sent to the client. */
  private shift = 0
  private last = -1

  constructor(tool: string) {
    this.tool = tool
  }

  readonly push = (event: SseEvent): string => {
    const data = parsedOrUndefined(event.data)
    if (!isJson(data)) return event.raw
    const type = textAt(data, "type")
    if (endings.has(type)) {
      const { response } = data
      for (const [at, item] of outputOf(response).entries()) this.items.set(at, item)
      if (isJson(response)) this.usage = response["usage"]
      this.held.push(event)
      return ""
    }
    if (this.rounds > 1 && beginnings.has(type)) return this.drop()
    if (beginnings.has(type) && isJson(data["response"])) {
      const { created_at, id } = data["response"]
      this.identity = { ...(id === undefined ? {} : { id }), ...(created_at === undefined ? {} : { created_at }) }
    }
    const { item, output_index: index } = data
    if (typeof index !== "number") return this.numberedText(event, data)
    if (isJson(item)) {
      this.items.set(index, item)
      if (!this.indexes.has(index) && !isRecall(this.tool, item)) {
        this.indexes.set(index, this.shown)
        this.shown += 1
      }
    }
    const shown = this.indexes.get(index)
    if (shown === undefined) return this.drop()
    return this.numberedText(event, shown === index ? data : { ...data, output_index: shown })
  }

  private drop(): string {
    this.shift -= 1
    return ""
  }

  /** Numbers an event. Rewrites it only where it differs from what the provider sent. */
  private numberedText(event: SseEvent, data: Json): string {
    const number = data["sequence_number"]
    const isSame = JSON.stringify(data) === JSON.stringify(parsedOrUndefined(event.data))
    if (typeof number !== "number") return isSame ? event.raw : sseText(event, data)
    this.last = number + this.shift
    return isSame && this.shift === 0 ? event.raw : sseText(event, { ...data, sequence_number: this.last })
  }

  private get present(): ReadonlyArray<Json> {
    return [...this.items].sort(([a], [b]) => a - b).map(([, item]) => item)
  }

  readonly read = (): ReadAnswer => answerOf(this.tool, this.present, this.usage)

  readonly next = (note: string) => {
    this.before.push(...this.present.filter((item) => !isRecall(this.tool, item)))
    this.earlier = addedCounts(this.earlier, this.usage)
    this.usage = undefined
    this.items = new Map()
    this.indexes = new Map()
    this.held = []
    this.rounds += 1
    const noteEvents = note === "" ? "" : this.noted(note)
    this.shift = this.last + 1
    return noteEvents
  }

  /** Returns the events of a message of the gateway. */
  private noted(text: string): string {
    const output_index = this.shown
    const item = noteItem(text, output_index)
    const [part] = item.content
    const open = { ...item, status: "in_progress", content: [] }
    const at = { output_index, item_id: item.id, content_index: 0 }
    this.shown += 1
    this.before.push(item)
    const events = [
      { type: "response.output_item.added", output_index, item: open },
      { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
      { type: "response.output_text.delta", ...at, delta: text },
      { type: "response.output_text.done", ...at, text },
      { type: "response.content_part.done", ...at, part },
      { type: "response.output_item.done", output_index, item }
    ]
    return events
      .map((data) => {
        this.last += 1
        return sseText({ name: data.type }, { ...data, sequence_number: this.last })
      })
      .join("")
  }

  readonly finish: AnswerStream["finish"] = () =>
    this.held
      .map((event) => {
        const data = parsedOrUndefined(event.data)
        const response = isJson(data) ? data["response"] : undefined
        if (!isJson(data) || !isJson(response)) return event.raw
        const own = outputOf(response)
        const others = own.filter((item) => !isRecall(this.tool, item))
        if (this.rounds === 1 && own.length === others.length) return event.raw
        return this.numberedText(event, {
          ...data,
          response: {
            ...response,
            ...this.identity,
            output: [...this.before, ...others],
            usage: addedCounts(this.earlier, this.usage)
          }
        })
      })
      .join("")

  readonly failure: AnswerStream["failure"] = (status, body) => {
    const parsed = parsedOrUndefined(body)
    const error = isJson(parsed) && isJson(parsed["error"]) ? parsed["error"] : undefined
    const { code = "server_error", message = `the provider answered ${status}` } = error ?? {}
    const response = {
      ...this.identity,
      object: "response",
      status: "failed",
      output: this.before,
      error: { code, message }
    }
    return sseText({ name: "response.failed" }, { type: "response.failed", sequence_number: this.last + 1, response })
  }
}

const form: BlockForm = {
  blocksOf: (response) => (Array.isArray(response["output"]) ? outputOf(response) : undefined),
  usageKey: "usage",
  isRecall,
  answerOf,
  note: noteItem,
  withBlocks: (response, output) => ({ ...response, output })
}

/** Answers of OpenAI's Responses API. */
export const responsesAnswers: AnswerDialect = {
  stream: (tool) => new Stream(tool),
  whole: (tool) => wholeBlocks(form, tool),
  visible: visibleItem,
  results: (calls, recalled) =>
    calls.map(({ id }, at) => {
      const { media = [], text = "" } = recalled[at] ?? {}
      const output =
        media.length === 0 ? text : [...media.map(mediaPart), ...(text === "" ? [] : [{ type: "input_text", text }])]
      return JSON.stringify({ type: "function_call_output", call_id: id, output })
    })
}
