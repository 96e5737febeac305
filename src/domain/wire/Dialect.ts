import type { AnswerForm } from "./AnswerForm.ts"
import type { Json, MessageCodec } from "./MessageCodec.ts"
import type { AnswerRelay } from "./RelayedAnswer.ts"
import type { ToolDeclaration } from "./ToolDeclarations.ts"

/** The dialects of the APIs of models: Anthropic's Messages, Gemini, OpenAI's Chat Completions and Responses. */
export const dialects = ["anthropic", "gemini", "chat", "responses"] as const
export type Dialect = (typeof dialects)[number]

/** What everybody needs to know of a dialect. Each folder of this room fills in one. */
export interface WireDialect {
  readonly messages: MessageCodec
  readonly answers: AnswerForm
  readonly relay: AnswerRelay
  /** A tool, as a request declares it under its name there. */
  readonly declaredTool: (tool: ToolDeclaration) => Json
  readonly request: RequestForm
  readonly turn: TurnForm
}

/** How a request is laid out. */
export interface RequestForm {
  /** The key of the array of messages. */
  readonly messagesKey: string
  /** Whether instructions stand at the beginning of the messages. */
  readonly hasInstructions: boolean
  /** Keys of the list of functions, where the elements of `tools` hold lists. */
  readonly functionsKeys: ReadonlyArray<string>
  /** Whether the provider stores the answer to a request unless its body says `store: false`. */
  readonly isStored: boolean
  /** Whether the answer may call a function that the client did not declare. `tools` is the JSON of the client's; empty without any. */
  readonly allowsTools: (valueAt: (key: string) => unknown, tools: string) => boolean
}

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
  | { readonly _tag: "Items" }
