import { Schema } from "effect"
import { FunctionCall } from "./Content.ts"
import { EntryId } from "./Conversation.ts"
import { TokenCount, Usage } from "./Tokens.ts"

/** Why an answer cannot be used (spec 1.5), in the order in which it is looked for. */
export const AnswerFault = Schema.Literals([
  "NO_FINISH_REASON",
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "MAX_TOKENS_EXCEEDED",
  "SAFETY_BLOCKED",
  "RECITATION_BLOCKED",
  "OTHER_BLOCKED",
  "THINKING_ONLY_RESPONSE",
  "NO_RESPONSE_TEXT"
])
export type AnswerFault = typeof AnswerFault.Type

/** A part of a request that cannot be made smaller. */
export const Stubborn = Schema.Struct({ entry: Schema.NullOr(EntryId), what: Schema.String, tokens: TokenCount })
export type Stubborn = typeof Stubborn.Type

/**
 * Everything a chat reports while a turn runs: for the terminal, for `--stream-json` and for telemetry (names of spec
 * 1.7). A turn ends with exactly one of `Finished`, `UserCancelled`, `InvalidStream`, `ContextWindowWillOverflow` or `Error`.
 */
export const ChatEvent = Schema.TaggedUnion({
  /** The model that is asked, and its window in tokens. The first event of every turn. */
  ModelInfo: { model: Schema.String, limit: TokenCount },
  /** What the model thinks: its headline, where it has one, and the rest. Never part of the conversation. */
  Thought: { subject: Schema.String, description: Schema.String },
  /** A piece of the answer. */
  Content: { text: Schema.String },
  /** The model asks for a tool. */
  ToolCallRequest: { call: FunctionCall },
  /** Addresses the answer quotes, sorted, one a line. */
  Citation: { text: Schema.String },
  /** The answer so far is void and has to be dropped: it is asked for again after `delay` milliseconds. */
  Retry: {
    /** The attempt that comes, counted from 2. */
    attempt: Schema.Natural,
    delay: Schema.Finite,
    /** An `AnswerFault` or the tag of a ModelError's reason. */
    reason: Schema.String,
    message: Schema.String
  },
  /** A compression ended before the request left, in whatever way but Noop. Tokens of the request before and after. */
  ChatCompressed: {
    trigger: Schema.Literals(["manual", "auto"]),
    status: Schema.String,
    before: TokenCount,
    after: TokenCount,
    limit: TokenCount,
    /** What failed on the way, or why nothing came of it. */
    message: Schema.NullOr(Schema.String)
  },
  /** The answer is complete, and in the log together with its message. */
  Finished: {
    /** `STOP`, `MAX_TOKENS`, … as the provider names it. */
    reason: Schema.String,
    usage: Schema.NullOr(Usage),
    answer: EntryId,
    /** Tokens of the conversation as it stands now, and of the window. */
    tokens: TokenCount,
    limit: TokenCount
  },
  /** The turn was cancelled; the conversation is what it was. */
  UserCancelled: {},
  /** No attempt gave an answer that can be used; the conversation is what it was. */
  InvalidStream: { fault: AnswerFault, message: Schema.String },
  /** Nothing was sent: it would not fit. The conversation is what it was, and the message is the person's again. */
  ContextWindowWillOverflow: {
    /** Tokens of the message. */
    estimated: TokenCount,
    /** Tokens that were left for it. */
    remaining: TokenCount,
    limit: TokenCount,
    /** What takes the room and cannot be made smaller, largest first. */
    stubborn: Schema.Array(Stubborn),
    /** The plain text of the message. */
    text: Schema.String,
    message: Schema.String
  },
  /** The model, the store or the counter failed for good; the conversation is what it was. */
  Error: { reason: Schema.String, message: Schema.String }
})
export type ChatEvent = typeof ChatEvent.Type
