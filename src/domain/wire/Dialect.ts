/** The dialects of model APIs: what each has to say of itself, and what is read from requests of all of them. */

import { isJson, type Json, jsonsAt, textOrEmpty } from "../text/JsonObject.ts"
import type { MessageCodec } from "./MessageCodec.ts"
import type { AnswerRelay } from "./RelayedAnswer.ts"
import type { ToolDeclaration } from "./ToolDeclarations.ts"

/** The dialects of the APIs of models: Anthropic's Messages, Gemini, OpenAI's Chat Completions and Responses. */
export const dialects = ["anthropic", "gemini", "chat", "responses"] as const
export type Dialect = (typeof dialects)[number]

/** What everybody needs to know of a dialect. Each folder of this room fills in one. */
export interface WireDialect {
  readonly messages: MessageCodec
  readonly answers: AnswerRelay
  /** A tool, as a request declares it under its name there. */
  readonly declaredTool: (tool: ToolDeclaration) => Json
  readonly request: RequestForm
  readonly turn: TurnForm
}

/** The JSON of a request at a key; undefined if it has none. */
export type ValueAt = (key: string) => unknown

/** How a request is laid out. */
export interface RequestForm {
  /** The key of the array of messages. */
  readonly messagesKey: string
  /** Whether instructions stand at the beginning of the messages. */
  readonly hasInstructions: boolean
  /** Keys of the list of functions, where the elements of `tools` hold lists. */
  readonly functionsKeys: ReadonlyArray<string>
  /** Whether the provider stores the answer, so that later requests may refer to its items. Absent where no provider does. */
  readonly isStored?: (valueAt: ValueAt) => boolean
  /** Whether there is one answer, which may call a function that the client did not declare. `tools` is the JSON of the client's; empty without any. */
  readonly allowsTools: (valueAt: ValueAt, tools: string) => boolean
}

/** Whether a request asks the provider to compact the conversation itself, as Anthropic and OpenAI do: then it counts what is left. */
export const isCompactedThere = (valueAt: ValueAt): boolean => {
  const asked = valueAt("context_management")
  const edits: ReadonlyArray<unknown> = Array.isArray(asked) ? asked : isJson(asked) ? jsonsAt(asked, "edits") : []
  return edits.some((edit) => isJson(edit) && textOrEmpty(edit, "type").startsWith("compact"))
}

/** Whether a message is an instruction, which OpenAI's dialects have among the messages. */
export const isInstruction = (message: unknown): boolean =>
  isJson(message) && (message["role"] === "system" || message["role"] === "developer")

/** Whether an instruction declares tools, as Codex's requests have it since 0.144. */
export const declaresTools = (message: unknown): boolean =>
  isInstruction(message) && isJson(message) && message["type"] === "additional_tools" && Array.isArray(message["tools"])

/** How the turn of a model stands in the messages of a request. */
export type TurnForm =
  /** One message of blocks. */
  | {
      readonly _tag: "Message"
      readonly role: string
      /** The key of its blocks. */
      readonly blocksKey: string
      /** The key of its calls, where they are no blocks and their results are messages. */
      readonly callsKey?: string
      /** What the JSON of a message with results contains. */
      readonly resultMark: string
    }
  /** Items in a row. */
  | {
      readonly _tag: "Items"
      readonly isResult: (item: Json) => boolean
      readonly isQuestion: (item: Json) => boolean
    }
