/** Compresses messages in one call, which returns the outcome and the new messages. */
export {
  anthropic,
  type CompressedMessages,
  type CompressMessagesError,
  type CompressMessagesOptions,
  type PolicyChanges,
  type CompressMessagesServices,
  gemini,
  openAi,
  responses
} from "../services/compression/CompressMessages.ts"
export { type CompressedPrompt, prompt } from "../services/effect-ai/CompressPrompt.ts"
export {
  type CompressedTranscript,
  type CompressTranscriptOptions,
  transcript
} from "../services/transcripts/CompressTranscript.ts"
