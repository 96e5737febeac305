/** Compress what you have, in one call: messages in, an outcome and messages out. */
export {
  anthropic,
  type CompressedMessages,
  type CompressMessagesOptions,
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
