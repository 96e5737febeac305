import { isJson, type Json, jsonAt, jsonsAt, textOrEmpty } from "../../text/JsonObject.ts"
import { callArguments, type GrowingAnswer, type Growth, type ReadableForm } from "../AnswerForm.ts"
import { outputLimit } from "../AnswerReader.ts"
import { blockReader } from "../BlockReader.ts"
import { isCompaction } from "../ModelState.ts"
import { openAiFailure, openAiUsage } from "../OpenAiMessages.ts"

/** Answers of OpenAI's Responses API: items, finish reasons and counts. */

/** Events that begin an answer. */
const beginnings: ReadonlySet<unknown> = new Set(["response.created", "response.in_progress", "response.queued"])
/** Events that end an answer, with the whole response. */
const endings: ReadonlySet<unknown> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.done"
])

/** Items that the client answers itself. */
const clientCalls: ReadonlySet<unknown> = new Set([
  "function_call",
  "custom_tool_call",
  "local_shell_call",
  "computer_call",
  "shell_call"
])

const finishReasons: Readonly<Record<string, string>> = { completed: "STOP", max_output_tokens: outputLimit }

/** Why a response ended, in the words of the API. */
const endOf = (type: string, response: Json): string =>
  type === "response.completed"
    ? "completed"
    : textOrEmpty(jsonAt(response, "incomplete_details"), "reason") || textOrEmpty(response, "status") || "incomplete"

class ResponsesAnswer implements GrowingAnswer {
  private readonly items = new Map<number, Json>()
  private usage: unknown

  readonly push = (event: Json): Growth | undefined => {
    const { item, output_index: index } = event
    const [type, delta] = [textOrEmpty(event, "type"), textOrEmpty(event, "delta")]
    const begun = isJson(item) ? item : undefined
    const pieces = typeof index === "number" ? [{ at: index, begun }] : []
    if (isJson(item)) this.items.set(typeof index === "number" ? index : this.items.size, item)
    if (beginnings.has(type)) return { border: "beginning" }
    if (endings.has(type)) return { border: "end", ...this.ended(type, jsonAt(event, "response")) }
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        return { pieces, shown: delta === "" ? [] : [{ text: delta }] }
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return { pieces, shown: delta === "" ? [] : [{ text: delta, thought: true }] }
      case "response.output_item.done":
        return { pieces, blocks: begun === undefined ? [] : [begun] }
      case "error":
        return { fault: event }
      default:
        return type === "" ? undefined : { pieces }
    }
  }

  readonly end = (): Growth => ({})

  /** The last event has the whole response. */
  private ended(type: string, response: Json): Growth {
    for (const [at, item] of jsonsAt(response, "output").entries()) this.items.set(at, item)
    this.usage = response["usage"]
    const isFailed = type === "response.failed" || response["status"] === "failed"
    return isFailed ? { fault: { error: response["error"] } } : { end: endOf(type, response), counts: this.usage }
  }

  get whole(): Json {
    const items = [...this.items].sort(([one], [other]) => one - other)
    return { output: items.map(([, item]) => item), usage: this.usage }
  }
}

/** The text of a message item. */
const itemText = (item: Json): string =>
  textOrEmpty(item, "content") ||
  jsonsAt(item, "content")
    .map((block) => textOrEmpty(block, "text"))
    .join("")

/** The facts of this dialect about its answers. */
export const answerForm: ReadableForm = {
  begin: () => new ResponsesAnswer(),
  blocksOf: (response) => (Array.isArray(response["output"]) ? jsonsAt(response, "output") : undefined),
  usageKey: "usage",
  usage: openAiUsage("input", "output"),
  callOf: (item) =>
    clientCalls.has(item["type"])
      ? {
          id: textOrEmpty(item, "call_id"),
          name: textOrEmpty(item, "name"),
          args: callArguments(textOrEmpty(item, "arguments"))
        }
      : undefined,
  // Reasoning without its encrypted content cannot go back, because the API stores none.
  stateOf: (item) => {
    if (isCompaction(item)) return item
    const { encrypted_content, id, summary, type } = item
    return type === "reasoning" && typeof encrypted_content === "string" && encrypted_content !== ""
      ? { type, id: id ?? undefined, summary: summary ?? [], encrypted_content }
      : undefined
  },
  finishReason: (end) => (end === "content_filter" ? undefined : (finishReasons[end] ?? "OTHER")),
  visible: (item) => {
    if (item["type"] === "reasoning") return { kind: "thought", text: "" }
    return (item["type"] ?? "message") === "message"
      ? { kind: "text", text: itemText(item) }
      : { kind: "other", text: "" }
  },
  failure: openAiFailure,
  sent: (items) => items
}

/** Reads one answer of the Responses API. */
export const responsesAnswerReader = blockReader(answerForm)
