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
