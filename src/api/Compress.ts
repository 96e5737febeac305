/** Compresses messages in one call, which returns the outcome and the new messages. */

import { Effect } from "effect"
import type { CompressMessagesError, CompressMessagesServices } from "../services/conversation/CompressMessages.ts"
import type { CompressedTranscript, CompressTranscriptOptions } from "../services/transcripts/CompressTranscript.ts"
import type { TranscriptError } from "../services/transcripts/TranscriptError.ts"

/** @category Functions @since 0.1.0 */
export { anthropic, gemini, openAi, responses } from "../services/conversation/CompressMessages.ts"
/** @category Functions @since 0.1.0 */
export { prompt } from "../services/effect-ai/CompressPrompt.ts"
/** @category Models @since 0.1.0 */
export type {
  CompressedMessages,
  CompressMessagesError,
  CompressMessagesOptions,
  PolicyChanges,
  CompressMessagesServices
} from "../services/conversation/CompressMessages.ts"
/** @category Models @since 0.1.0 */
export type { CompressedPrompt } from "../services/effect-ai/CompressPrompt.ts"
/** @category Models @since 0.1.0 */
export type { CompressedTranscript, CompressTranscriptOptions } from "../services/transcripts/CompressTranscript.ts"

/**
 * Compresses the text of a transcript, in any format that `palimpsest compress` reads. What an earlier compaction removed stays recallable.
 *
 * *Details*: the readers of the formats are loaded with the first call, so that a bundle of the other functions is small.
 *
 * **Example** (Compressing the session of another agent)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compress, Palimpsest } from "palimpsest"
 *
 * const session = Array.from({ length: 40 }, (_, n) =>
 *   JSON.stringify({
 *     role: n % 2 === 0 ? "user" : "model",
 *     parts: [{ text: `Message ${n}. ${"Of oak. ".repeat(60)}` }]
 *   })
 * ).join(",")
 * const compressed = Compress.transcript(`[${session}]`, { limit: 4_000 }).pipe(
 *   Effect.provide(Palimpsest.layer())
 * )
 * console.log((await Effect.runPromise(compressed)).outcome._tag) // => Compressed
 * ```
 *
 * @category Functions
 * @since 0.1.0
 */
export const transcript = (
  text: string,
  options: CompressTranscriptOptions = {}
): Effect.Effect<CompressedTranscript, CompressMessagesError | TranscriptError, CompressMessagesServices> =>
  Effect.flatMap(
    Effect.promise(() => import("../services/transcripts/CompressTranscript.ts")),
    ({ transcript }) => transcript(text, options)
  )
