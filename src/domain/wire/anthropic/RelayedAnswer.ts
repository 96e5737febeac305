import type { Part } from "../../content/Content.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import { addedCounts, latestCounts } from "../AddedCounts.ts"
import { isJson, type Json, textAt } from "../MessageCodec.ts"
import type { AnswerDialect, AnswerStream, ReadAnswer, RecallCall, VisibleBlock } from "../RelayedAnswer.ts"
import { type SseEvent, sseText } from "../SseEvents.ts"
import { type BlockForm, wholeBlocks } from "../WholeBlocks.ts"
import { AnthropicBlocks } from "./Answer.ts"
import { userBlock } from "./Request.ts"

/** Answers of Anthropic's Messages API. */

const visibleOf = (block: Json): VisibleBlock => {
  if (block["type"] === "text") return { kind: "text", text: textAt(block, "text") }
  if (block["type"] === "thinking") return { kind: "thought", text: textAt(block, "thinking") }
  return { kind: block["type"] === "redacted_thinking" ? "thought" : "other", text: "" }
}

const isRecall = (tool: string, block: Json): boolean => block["type"] === "tool_use" && block["name"] === tool

const callOf = (block: Json): RecallCall => ({
  id: textAt(block, "id"),
  name: textAt(block, "name"),
  args: block["input"],
  json: JSON.stringify(block)
})

/** Returns the answer that these blocks make. */
const answerOf = (tool: string, blocks: ReadonlyArray<Json>, usage: unknown): ReadAnswer => {
  // The API rejects empty texts.
  const content = blocks.filter((block) => block["type"] !== "text" || textAt(block, "text") !== "")
  const own = content.filter((block) => isRecall(tool, block))
  return {
    calls: own.map(callOf),
    hasOthers: content.some((block) => block["type"] === "tool_use" && !isRecall(tool, block)),
    sent: [JSON.stringify({ role: "assistant", content })],
    visible: content.filter((block) => !isRecall(tool, block)).map(visibleOf),
    usage
  }
}

/** Media as the client sent them: a file that is no address has an id of this provider. */
const mediaBlock = (part: Part): Json => {
  const { fileUri = "", mimeType = "" } = part.fileData ?? {}
  if (part.fileData === undefined || /^https?:/.test(fileUri)) return userBlock(part)
  return { type: mimeType.startsWith("image/") ? "image" : "document", source: { type: "file", file_id: fileUri } }
}

class Stream implements AnswerStream {
  private readonly tool: string
  /** Blocks of the current answer. */
  private blocks = new AnthropicBlocks()
  /** The client's index of each block, by its index in the current answer. Blocks of the gateway's tool have none. */
  private indexes = new Map<number, number>()
  private shown = 0
  private rounds = 1
  private usage: unknown
  private earlier: unknown
  private held: Array<SseEvent> = []

  constructor(tool: string) {
    this.tool = tool
  }

  readonly push = (event: SseEvent): string => {
    const data = parsedOrUndefined(event.data)
    if (!isJson(data)) return event.raw
    switch (data["type"]) {
      case "message_start": {
        const { message } = data
        if (isJson(message)) this.usage = message["usage"]
        return this.rounds === 1 ? event.raw : ""
      }
      case "content_block_start":
      case "content_block_delta":
      case "content_block_stop":
        return this.block(event, data)
      case "message_delta":
        this.usage = latestCounts(this.usage, data["usage"])
        this.held.push(event)
        return ""
      case "message_stop":
        this.held.push(event)
        return ""
      default:
        return event.raw
    }
  }

  private block(event: SseEvent, data: Json): string {
    const { content_block: started, index } = data
    if (typeof index !== "number") return event.raw
    this.blocks.push(data)
    if (isJson(started) && !isRecall(this.tool, started)) {
      this.indexes.set(index, this.shown)
      this.shown += 1
    }
    const shown = this.indexes.get(index)
    if (shown === undefined) return ""
    return shown === index ? event.raw : sseText(event, { ...data, index: shown })
  }

  readonly read = (): ReadAnswer => answerOf(this.tool, this.blocks.indexes.map(this.blocks.at), this.usage)

  readonly next = (note: string) => {
    this.earlier = addedCounts(this.earlier, this.usage)
    this.usage = undefined
    this.blocks = new AnthropicBlocks()
    this.indexes = new Map()
    this.held = []
    this.rounds += 1
    if (note === "") return ""
    const index = this.shown
    this.shown += 1
    const events = [
      { type: "content_block_start", index, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index, delta: { type: "text_delta", text: note } },
      { type: "content_block_stop", index }
    ]
    return events.map((data) => sseText({ name: data.type }, data)).join("")
  }

  readonly finish: AnswerStream["finish"] = (ending) =>
    this.held
      .map((event) => {
        const data = parsedOrUndefined(event.data)
        if (!isJson(data) || data["type"] !== "message_delta" || (this.rounds === 1 && ending === "as sent"))
          return event.raw
        const delta = isJson(data["delta"]) ? data["delta"] : {}
        return sseText(event, {
          ...data,
          delta: ending === "as sent" ? delta : { ...delta, stop_reason: "end_turn" },
          usage: addedCounts(this.earlier, this.usage)
        })
      })
      .join("")

  readonly failure: AnswerStream["failure"] = (status, body) => {
    const parsed = parsedOrUndefined(body)
    const error = isJson(parsed) && isJson(parsed["error"]) ? parsed["error"] : undefined
    return sseText(
      { name: "error" },
      { type: "error", error: error ?? { type: "api_error", message: `the provider answered ${status}` } }
    )
  }
}

const form: BlockForm = {
  blocksOf: ({ content }) => (Array.isArray(content) ? content.filter(isJson) : undefined),
  usageKey: "usage",
  isRecall,
  answerOf,
  note: (text) => ({ type: "text", text }),
  withBlocks: (message, content, ending) => ({
    ...message,
    content,
    ...(ending === "stopped" ? { stop_reason: "end_turn" } : {})
  })
}

/** Answers of Anthropic's Messages API. */
export const anthropicAnswers: AnswerDialect = {
  stream: (tool) => new Stream(tool),
  whole: (tool) => wholeBlocks(form, tool),
  visible: visibleOf,
  results: (calls, recalled) => [
    JSON.stringify({
      role: "user",
      content: calls.map(({ id }, at) => {
        const { media = [], text = "" } = recalled[at] ?? {}
        const content =
          media.length === 0 ? text : [...media.map(mediaBlock), ...(text === "" ? [] : [{ type: "text", text }])]
        return { type: "tool_result", tool_use_id: id, content }
      })
    })
  ]
}
