/** Answers of OpenAI's Responses API: items, finish reasons and counts. */

import { isJson, type Json, jsonAt, jsonsAt, textOrEmpty } from "../../text/JsonObject.ts"
import { callArguments, type GrowingAnswer, type Growth, type ReadableForm } from "../AnswerForm.ts"
import { finishReasonOf } from "../AnswerReader.ts"
import { blockReader } from "../BlockReader.ts"
import { isCompaction } from "../ModelState.ts"
import { openAiFailure, openAiUsage } from "../OpenAi.ts"

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
  "shell_call",
  "apply_patch_call",
  "mcp_approval_request"
])

/** Why a response ended, in the words of the API. The status of one that completed can be older. */
const endOf = (type: string, response: Json): string => {
  const [status, isCompleted] = [textOrEmpty(response, "status"), type === "response.completed"]
  const reason = textOrEmpty(jsonAt(response, "incomplete_details"), "reason")
  return reason || (isCompleted && status !== "incomplete" ? "completed" : status || "incomplete")
}

class ResponsesAnswer implements GrowingAnswer {
  private readonly items = new Map<number, Json>()
  /** The indexes of the messages whose text arrived in pieces; -1 where a server gives none. */
  private readonly spoken = new Set<unknown>()
  /** The items that are complete, by their ids and places: Copilot's servers give an item another id at the end. */
  private readonly done = new Set<string>()
  /** The arguments of calls, by the ids of their items. */
  private readonly args = new Map<string, string>()
  private usage: unknown

  readonly push = (event: Json): Growth | undefined => {
    const { item, output_index: index } = event
    const [type, delta] = [textOrEmpty(event, "type"), textOrEmpty(event, "delta")]
    const begun = isJson(item) ? item : undefined
    const at = typeof index === "number" ? index : this.items.size
    const pieces = typeof index === "number" ? [{ at, begun }] : []
    if (begun !== undefined) this.items.set(at, { ...begun, ...this.knownArguments(begun) })
    if (beginnings.has(type)) return { border: "beginning" }
    if (endings.has(type)) return { border: "end", ...this.ended(type, jsonAt(event, "response")) }
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        this.spoken.add(index ?? -1)
        return { pieces, shown: delta === "" ? [] : [{ text: delta }] }
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return { pieces, shown: delta === "" ? [] : [{ text: delta, thought: true }] }
      case "response.function_call_arguments.delta": {
        const id = textOrEmpty(event, "item_id")
        this.args.set(id, `${this.args.get(id) ?? ""}${delta}`)
        return { pieces }
      }
      case "response.function_call_arguments.done":
        this.args.set(textOrEmpty(event, "item_id"), textOrEmpty(event, "arguments"))
        return { pieces }
      case "response.output_item.done":
        return { pieces, ...this.completed(begun === undefined ? [] : [[at, this.items.get(at) ?? begun]], false) }
      case "error":
        return { fault: event }
      default:
        // Some servers do not stream.
        if (type === "" && Array.isArray(event["output"])) return { border: "end", ...this.ended(type, event) }
        return type === "" ? undefined : { pieces }
    }
  }

  readonly end = (): Growth => ({})

  /** The arguments of a call that an event had, where its item has none. */
  private knownArguments(item: Json): Json {
    const args = this.args.get(textOrEmpty(item, "id"))
    return args === undefined || item["arguments"] !== "" ? {} : { arguments: args }
  }

  /** What items add that are complete now. Some servers send no pieces, and others no item before the end. */
  private completed(
    items: ReadonlyArray<readonly [at: number, item: Json]>,
    isEnd: boolean
  ): Pick<Growth, "blocks" | "shown"> {
    const added = items.filter(([at, item]) => {
      const place = `${at} ${textOrEmpty(item, "type")}`
      const callId = textOrEmpty(item, "call_id")
      const id = callId || textOrEmpty(item, "id") || place
      const isKnown = this.done.has(id) || (isEnd && callId === "" && this.done.has(place))
      this.done.add(id).add(place)
      return !isKnown
    })
    const words = added.flatMap(([at, item]) => {
      const isSilent = (item["type"] ?? "message") === "message" && !this.spoken.has(at) && !this.spoken.has(-1)
      return isSilent ? itemText(item) || [] : []
    })
    return { blocks: added.map(([, item]) => item), shown: words.map((text) => ({ text })) }
  }

  /** The last event has the whole response. */
  private ended(type: string, response: Json): Growth {
    const whole = [...jsonsAt(response, "output").entries()]
    const known = [...this.items].map(([at, item]) => [at, { ...item, ...this.knownArguments(item) }] as const)
    // Some servers end with no item, and the indexes before can be others.
    const output = whole.length > 0 ? whole : known
    this.items.clear()
    for (const [at, item] of output) this.items.set(at, item)
    this.usage = response["usage"]
    const isFailed = type === "response.failed" || response["status"] === "failed"
    return isFailed
      ? { fault: { error: response["error"] } }
      : { ...this.completed(output, true), end: endOf(type, response), counts: this.usage }
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
    .map((block) => textOrEmpty(block, "text") || textOrEmpty(block, "refusal"))
    .join("")

/** The facts of this dialect about its answers. */
export const answerForm: ReadableForm = {
  begin: () => new ResponsesAnswer(),
  blocksOf: (response) => (Array.isArray(response["output"]) ? jsonsAt(response, "output") : undefined),
  usageKey: "usage",
  usage: openAiUsage("input", "output"),
  callOf: (item) =>
    clientCalls.has(item["type"])
      ? { id: textOrEmpty(item, "call_id"), name: textOrEmpty(item, "name"), args: callArguments(item["arguments"]) }
      : undefined,
  // Reasoning without any content cannot go back, because the API stores none. That of OpenAI is encrypted; other servers want theirs as it is.
  stateOf: (item) => {
    if (isCompaction(item)) return item
    const { content, encrypted_content: encrypted, id, summary, type } = item
    const kept = {
      ...(jsonsAt(item, "content").length === 0 ? {} : { content }),
      ...(textOrEmpty(item, "encrypted_content") === "" ? {} : { encrypted_content: encrypted })
    }
    return type === "reasoning" && Object.keys(kept).length > 0
      ? { type, id: id ?? undefined, summary: summary ?? [], ...kept }
      : undefined
  },
  finishReason: (end) => finishReasonOf(end, "OTHER"),
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
