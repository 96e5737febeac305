import type { Part } from "../../content/Content.ts"
import { isJson, type Json, textOrEmpty } from "../../text/JsonObject.ts"
import { callArguments } from "../AnswerForm.ts"
import {
  contentParts,
  groupOf,
  type MessageCodec,
  type MessageGroup,
  opaque,
  plainMessage,
  type ReadPart,
  shortText
} from "../MessageCodec.ts"
import { openAiPart } from "../OpenAiMessages.ts"

/** Messages of OpenAI's Chat Completions, which many other servers speak. */

const readContent = (content: unknown, message: number): ReadonlyArray<ReadPart> =>
  contentParts(content, message, (block, path) => [openAiPart(block), { message, path, write: textPart }])

const textPart = (part: Part) => ({ type: "text", text: shortText(part) })

const readCalls = (message: Json, names: Map<string, string>): ReadonlyArray<ReadPart> => {
  const calls: ReadonlyArray<unknown> = Array.isArray(message["tool_calls"]) ? message["tool_calls"] : []
  return calls.flatMap((call): ReadonlyArray<ReadPart> => {
    const called = isJson(call) ? (call["function"] ?? call["custom"]) : undefined
    if (!isJson(call) || !isJson(called)) return [[opaque(call), undefined]]
    const [id, name] = [textOrEmpty(call, "id"), textOrEmpty(called, "name")]
    names.set(id, name)
    const args = "input" in called ? called["input"] : (callArguments(called["arguments"]) ?? called["arguments"])
    return [[{ functionCall: { id, name, args } }, undefined]]
  })
}

/** What an answer has beside its content: reasoning, which some servers want back, and a refusal. */
const readAside = (message: Json): ReadonlyArray<ReadPart> => {
  const thought = textOrEmpty(message, "reasoning_content") || textOrEmpty(message, "reasoning")
  const refusal = textOrEmpty(message, "refusal")
  return [
    ...(thought === "" ? [] : [[{ text: thought, thought: true }, undefined] as const]),
    ...(refusal === "" ? [] : [[{ text: refusal }, undefined] as const])
  ]
}

const readResult = (message: Json, at: number, names: Map<string, string>): ReadPart => {
  const id = textOrEmpty(message, "tool_call_id")
  const [[shown] = [{ text: "" }], ...others] = readContent(message["content"], at)
  const response = others.length === 0 ? (shown.text ?? message["content"]) : message["content"]
  return [
    { functionResponse: { id, name: names.get(id) ?? "", response } },
    { message: at, path: ["content"], write: shortText }
  ]
}

/** Messages in the dialect of Chat Completions. The results of one turn are a group: they answer one message. */
export const chatCompletionsCodec: MessageCodec = {
  read: (messages) => {
    const names = new Map<string, string>()
    const groups: Array<MessageGroup> = []
    for (let at = 0; at < messages.length; at += 1) {
      const message = messages[at]
      if (!isJson(message)) continue
      const from = at
      if (message["role"] === "tool") {
        const parts: Array<ReadPart> = []
        for (let next: unknown = message; isJson(next) && next["role"] === "tool"; next = messages[at]) {
          parts.push(readResult(next, at, names))
          at += 1
        }
        groups.push(groupOf(from, at, "user", parts))
        at -= 1
      } else if (message["role"] === "user" || message["role"] === "assistant") {
        const parts = [...readAside(message), ...readContent(message["content"], at), ...readCalls(message, names)]
        const role = message["role"] === "user" ? "user" : "model"
        if (parts.length > 0) groups.push(groupOf(from, at + 1, role, parts))
      }
    }
    return groups
  },
  write: plainMessage
}
