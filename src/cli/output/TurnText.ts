/** The sentences about one turn: compressions, messages that do not fit, pauses and answers that are cut off. */

import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import * as Output from "./Output.ts"

/** Says why an attempt failed, without the advice that follows, and when the next one begins. */
export const retrySentence = ({ delay, message }: Extract<ChatEvent, { _tag: "Retry" }>): string => {
  const cause = Output.sentence(message.split("; ")[0] ?? message).replace(/\.$/, "")
  return `${cause}; retrying in ${Math.max(1, Math.round(delay / 1_000))} s.`
}

/** Explains the statuses of compressions that had no effect. */
const compressionFailures: Readonly<Record<string, string>> = {
  COMPRESSION_FAILED_INFLATED_TOKEN_COUNT: "the summary would not be smaller",
  COMPRESSION_FAILED_TOKEN_COUNT_ERROR: "the tokens could not be counted",
  COMPRESSION_FAILED_EMPTY_SUMMARY: "the model returned an empty summary",
  FAILED_SUMMARIZER: "the summary failed"
}

/** Describes a compression that ran before a message. `undo` ends the sentence about what can be taken back. */
export const compressedSentence = (event: Extract<ChatEvent, { _tag: "ChatCompressed" }>, undo: string): string => {
  const { after, before, limit, message, status } = event
  const note = message === null ? "" : ` Note: ${printableLine(message).replace(/\.$/, "")}.`
  return status === "COMPRESSED" || status === "CONTENT_TRUNCATED"
    ? `${status === "COMPRESSED" ? "Compressed" : "Shortened tool outputs"} to make room: from ${Output.number(before)} to ${Output.number(after)} tokens (${Output.share(before, limit)} to ${Output.share(after, limit)} of the window). Everything stays recallable${undo}.${note}`
    : `Not compressed: ${compressionFailures[status] ?? status}. The conversation is unchanged.${note}`
}

/** A compression is recommended only when more than this share of the window is in use. */
const minCompressibleShare = 0.25

/** Explains why a message does not fit, with the token counts and the possible remedies. */
export const overflowSentence = (event: Extract<ChatEvent, { _tag: "ContextWindowWillOverflow" }>): string => {
  const { estimated, limit, remaining, stubborn, what } = event
  const size = `about ${Output.number(estimated)} tokens`
  const isMessage = what === "message"
  const isAlone = isMessage && estimated > limit
  const advice = !isMessage
    ? "Ask for less at once, or use a model with a larger window (/model)."
    : isAlone || limit - remaining <= minCompressibleShare * limit
      ? "Shorten it, or use a model with a larger window (/model)."
      : "Shorten it, try /compress, or use a model with a larger window (/model)."
  const largest = (isAlone ? [] : stubborn)
    // The message itself is described separately.
    .filter(({ entry, tokens }) => entry !== null || tokens !== estimated)
    .slice(0, 3)
    .map(({ entry, tokens, what }) => `${entry === null ? "" : `${entry} `}${what} (${Output.number(tokens)})`)
  return [
    isAlone
      ? `This message alone is too large: it has ${size}, the whole window ${Output.number(limit)}.`
      : `${isMessage ? "This message does not fit: it has" : "The tools' results do not fit: they have"} ${size}, and ${Output.number(remaining)} of the window of ${Output.number(limit)} are left.`,
    "Nothing was sent.",
    advice,
    ...(largest.length === 0 ? [] : [`Cannot be shortened: ${largest.join(", ")}.`])
  ].join(" ")
}

/** Names what the model quoted. */
export const sourcesSentence = ({ text }: Extract<ChatEvent, { _tag: "Citation" }>): string =>
  `Sources: ${text.split("\n").join(" · ")}`

/** Explains the finish reasons of incomplete answers. */
export const cutOffSentences: Readonly<Record<string, string>> = {
  MAX_TOKENS: "The answer was cut off at the model's output limit. Ask it to continue.",
  SAFETY: "The model's provider cut the answer off (SAFETY).",
  RECITATION: "The model's provider cut the answer off (RECITATION)."
}

/** Describes a masking: tokens of the conversation before and after. */
export const maskedSentence = ({ after, before, parts }: Extract<ChatEvent, { _tag: "ToolOutputMasked" }>): string =>
  `${Output.plural(parts, "old tool output")} shortened: from ${Output.number(before)} to ${Output.number(after)} tokens. The full outputs stay recallable.`
