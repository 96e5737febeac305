import { Result, Schema } from "effect"
import { Part } from "../content/Content.ts"
import { Usage } from "../tokens/Tokens.ts"
import type { Target } from "./ModelState.ts"
import { faultIn, type ProviderFault } from "./ProviderFault.ts"
import type { ToolNames } from "./ToolDeclarations.ts"

/** Reads an answer for a conversation, event by event: the parts that it adds, how it ends, and what is wrong with it. */

/** The finish reason of an answer that ended at the output limit of its model. */
export const outputLimit = "MAX_TOKENS"

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
  /** The piece that the end of the answer completes. */
  readonly end: () => ModelChunk | undefined
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

/** The problem of an event of an unknown form, which may be an error. */
export const unknownEvent = (event: unknown): ReadEvent =>
  faultIn(event)?.message
    ? faulty(event)
    : Result.fail({ _tag: "Invalid", detail: "it contains an event of an unknown form" })
