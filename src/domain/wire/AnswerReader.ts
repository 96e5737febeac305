/** Reads an answer for a conversation, event by event: the parts that it adds, how it ends, and what is wrong with it. */

import { Result, Schema } from "effect"
import { Part } from "../content/Content.ts"
import { isJson } from "../text/JsonObject.ts"
import { Usage } from "../tokens/Tokens.ts"
import type { Target } from "./ModelState.ts"
import { faultIn, type ProviderFault } from "./ProviderFault.ts"
import type { ToolNames } from "./ToolDeclarations.ts"

/** The finish reason of an answer that ended at the output limit of its model. */
export const outputLimit = "MAX_TOKENS"

/** Why answers end, in the words of the providers and of the many servers that speak their dialects, in lower case. */
const endings: ReadonlyArray<readonly [reason: string, words: string]> = [
  [
    "STOP",
    "stop eos eos_token end_turn end_of_turn stop_sequence complete completed tool_calls tool_call tool_use function_call"
  ],
  [outputLimit, "length max_tokens max_output_tokens max_completion_tokens model_length model_context_window_exceeded"]
]
const finishReasons = new Map(
  endings.flatMap(([reason, words]) => words.split(" ").map((word) => [word, reason] as const))
)

/** The words for an answer that the model refused to give, or that was blocked. */
const refusals = new Set(
  `refusal content_filter content_filtered sensitive safety recitation blocklist prohibited_content spii guardrail_intervened
  image_safety image_prohibited_content image_recitation`.split(/\s+/)
)

/** Why an answer ended, as the Gemini API names it; `otherwise` for a word that this program does not know, undefined for a refusal. */
export const finishReasonOf = (end: string, otherwise = end): string | undefined => {
  const word = end.toLowerCase()
  return refusals.has(word) ? undefined : (finishReasons.get(word) ?? otherwise.replace(/^function_call_filter: /, ""))
}

/** Parts of an answer, thoughts included: one for each token of the longest answers that models give. */
export const maxAnswerParts = 128_000

/** The results of a provider's own search: pages, and the UTF-8 byte of the answer's text after which each is cited. */
export const Grounding = Schema.Struct({
  sources: Schema.Array(Schema.Struct({ uri: Schema.String, title: Schema.String })),
  supports: Schema.Array(Schema.Struct({ end: Schema.Natural, sources: Schema.Array(Schema.Natural) }))
})
export type Grounding = typeof Grounding.Type

/** A piece of an answer as it arrives. */
export const ModelChunk = Schema.Struct({
  parts: Schema.Array(Part),
  finishReason: Schema.optionalKey(Schema.String),
  usage: Schema.optionalKey(Usage),
  /** Addresses that the answer quotes, with their titles. */
  citations: Schema.optionalKey(Schema.Array(Schema.String)),
  grounding: Schema.optionalKey(Grounding)
})
export type ModelChunk = typeof ModelChunk.Type

/** Why an answer cannot be used. Texts are the server's. */
export type AnswerProblem =
  /** The model refused to answer. */
  | { readonly _tag: "Refusal"; readonly reason: string }
  /** The server reports a failure in the middle of the answer. */
  | { readonly _tag: "Fault"; readonly fault: ProviderFault }
  /** The answer violates the protocol. */
  | { readonly _tag: "Invalid"; readonly detail: string }
  | { readonly _tag: "TooLarge"; readonly unit: "levels" | "parts"; readonly limit: number }

/** What came of an event: the piece that it completes, if any. */
export type ReadEvent = Result.Result<ModelChunk | undefined, AnswerProblem>

/** Reads the events of one answer. Mutable. */
export interface AnswerReader {
  /** Reads an event, which need not be of a known form. */
  readonly read: (event: unknown) => ReadEvent
  /** The piece that the end of the answer completes. `isMarked`: the server said that it is the end. */
  readonly end: (isMarked?: boolean) => ModelChunk | undefined
}

/** What an answer is read with: the names of the tools of its request, and the model that answers. */
export interface Reading {
  readonly tools: ToolNames
  readonly target: Target
}

/** The problem of an answer in whose middle a server reports an error. The type of the event says nothing. */
export const faulty = (event: unknown): ReadEvent => {
  const fault = faultIn(event) ?? { kind: "", message: "" }
  return Result.fail({ _tag: "Fault", fault: { ...fault, kind: fault.kind.replace(/^error /, "") } })
}

/** The problem of an event of an unknown form, which may be an error. An empty one keeps a connection open. */
export const unknownEvent = (event: unknown): ReadEvent =>
  isJson(event) && Object.keys(event).length === 0
    ? Result.succeed(undefined)
    : faultIn(event)?.message
      ? faulty(event)
      : Result.fail({ _tag: "Invalid", detail: "it contains an event of an unknown form" })
