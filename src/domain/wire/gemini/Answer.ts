import { Schema } from "effect"
import { Part } from "../../content/Content.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { numberAt } from "../AnswerUsage.ts"
import type { Json } from "../MessageCodec.ts"

/** Answers of the Gemini API, whole or a piece of a stream. */

/** The documentation and the wire use different keys for these. */
export const Citations = Schema.optionalKey(
  Schema.Array(Schema.Struct({ uri: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Schema.String) }))
)

/** A response. Its counts and its grounding are read elsewhere: the answer is used without them, too. */
const GenerateResponse = Schema.Struct({
  candidates: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        content: Schema.optionalKey(Schema.Struct({ parts: Schema.optionalKey(Schema.Array(Part)) })),
        finishReason: Schema.optionalKey(Schema.String),
        citationMetadata: Schema.optionalKey(Schema.Struct({ citations: Citations, citationSources: Citations })),
        groundingMetadata: Schema.optionalKey(Schema.Unknown)
      })
    )
  ),
  promptFeedback: Schema.optionalKey(Schema.Struct({ blockReason: Schema.optionalKey(Schema.String) })),
  usageMetadata: Schema.optionalKey(Schema.Unknown)
})
/** Decodes a response. */
export const readGenerateResponse = Schema.decodeUnknownResult(GenerateResponse)

/** The counts of an answer. */
export const usage = (counts: Json): Usage => ({
  prompt: numberAt(counts, "promptTokenCount"),
  answer: numberAt(counts, "candidatesTokenCount"),
  thoughts: numberAt(counts, "thoughtsTokenCount"),
  cached: numberAt(counts, "cachedContentTokenCount")
})
