/** Messages of OpenAI's Chat Completions, which many other servers speak. */

import { isText, isThought, type Part } from "../../content/Content.ts"
import { isJson, type Json, jsonsAt, textOrEmpty } from "../../text/JsonObject.ts"
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
import { openAiPart } from "../OpenAi.ts"
import { callsIn } from "./Answer.ts"
import { inlineParts } from "./InlineThought.ts"

const readContent = (content: unknown, message: number): ReadonlyArray<ReadPart> =>
  contentParts(content, message, (block, path) => [[openAiPart(block), { message, path, write: textPart }]])

const textPart = (part: Part) => ({ type: "text", text: shortText(part) })

/** An answer may begin with its thought. */
const readAnswer = (content: unknown, message: number): ReadonlyArray<ReadPart> => {
  const [[part, slot] = [], ...others] = readContent(content, message)
  if (part === undefined) return []
  const parts = isText(part) ? inlineParts(part.text) : []
  const read = parts.some(isThought) ? parts : [part]
  return [...read.map((each) => [each, isThought(each) ? undefined : slot] as const), ...others]
}

const readCalls = (message: Json, names: Map<string, string>): ReadonlyArray<ReadPart> => {
  const { tool_calls: listed = [] } = message
  const calls = Array.isArray(listed) && listed.length > 0 ? listed : callsIn(message)
  return calls.flatMap((call: unknown): ReadonlyArray<ReadPart> => {
    const called = isJson(call) ? (call["function"] ?? call["custom"]) : undefined
    if (!isJson(call) || !isJson(called)) return [[opaque(call), undefined]]
    const [id, name] = [textOrEmpty(call, "id"), textOrEmpty(called, "name")]
    if (id !== "") names.set(id, name)
    const args = "input" in called ? called["input"] : (callArguments(called["arguments"]) ?? called["arguments"])
    return [[{ functionCall: { ...(id === "" ? {} : { id }), name, args } }, undefined]]
  })
}

/** What an answer has beside its content: reasoning, which some servers want back, a refusal, and images that the model made. */
const readAside = (message: Json): ReadonlyArray<ReadPart> => {
  const thought = textOrEmpty(message, "reasoning_content") || textOrEmpty(message, "reasoning")
  const refusal = textOrEmpty(message, "refusal")
  return [
    ...(thought === "" ? [] : [[{ text: thought, thought: true }, undefined] as const]),
    ...(refusal === "" ? [] : [[{ text: refusal }, undefined] as const]),
    ...jsonsAt(message, "images").map((image) => [openAiPart(image), undefined] as const)
  ]
}

const readResult = (message: Json, at: number, names: Map<string, string>): ReadPart => {
  // Without an id, as in the first form of the dialect, the tool is named.
  const id = textOrEmpty(message, "tool_call_id")
  const name = names.get(id) ?? textOrEmpty(message, "name")
  const [[shown] = [{ text: "" }], ...others] = readContent(message["content"], at)
  const response = others.length === 0 ? (shown.text ?? message["content"]) : message["content"]
  return [
    { functionResponse: { ...(id === "" ? {} : { id }), name, response } },
    { message: at, path: ["content"], write: shortText }
  ]
}

const isResult = (message: unknown): message is Json =>
  isJson(message) && (message["role"] === "tool" || message["role"] === "function")

/** Messages in the dialect of Chat Completions. The results of one turn are a group: they answer one message. */
export const chatCompletionsCodec: MessageCodec = {
  read: (messages) => {
    const names = new Map<string, string>()
    const groups: Array<MessageGroup> = []
    for (let at = 0; at < messages.length; at += 1) {
      const message = messages[at]
      if (!isJson(message)) continue
      const from = at
      if (isResult(message)) {
        const parts: Array<ReadPart> = []
        for (let next: unknown = message; isResult(next); next = messages[at]) {
          parts.push(readResult(next, at, names))
          at += 1
        }
        groups.push(groupOf(from, at, "user", parts))
        at -= 1
      } else if (message["role"] === "user" || message["role"] === "assistant") {
        const role = message["role"] === "user" ? "user" : "model"
        const read = role === "user" ? readContent : readAnswer
        const parts = [...readAside(message), ...read(message["content"], at), ...readCalls(message, names)]
        if (parts.length > 0) groups.push(groupOf(from, at + 1, role, parts))
      }
    }
    return groups
  },
  write: plainMessage
}
