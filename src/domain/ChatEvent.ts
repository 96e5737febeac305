import { Schema } from "effect"
import { FunctionCall } from "./Content.ts"
import { EntryId } from "./Conversation.ts"
import { TokenCount, Usage } from "./Tokens.ts"
import { Display } from "./ToolResult.ts"

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

/** What does not fit into the window. */
export const Overflowing = Schema.Literals(["message", "tool results"])
export type Overflowing = typeof Overflowing.Type

/** A part of a request that cannot be made smaller. */
export const Stubborn = Schema.Struct({ entry: Schema.NullOr(EntryId), what: Schema.String, tokens: TokenCount })
export type Stubborn = typeof Stubborn.Type

/** How a call ended: `success`, or why it did not. The model was answered in each case. */
export const CallStatus = Schema.Literals(["success", "error", "denied", "cancelled", "timeout"])
export type CallStatus = typeof CallStatus.Type

/** What an agent that another started is doing (spec 9, activity). */
export const Activity = Schema.TaggedUnion({
  /** It thinks; the headline. */
  Thought: { text: Schema.String },
  /** It calls a tool. */
  CallStarted: { id: Schema.String, name: Schema.String, title: Schema.String },
  /** The tool answered. */
  CallEnded: { id: Schema.String, name: Schema.String, status: CallStatus },
  /** Something failed on the way; it goes on or its result says so. */
  Failed: { message: Schema.String }
})
export type Activity = typeof Activity.Type

/** What an agent may use up. */
export const LimitName = Schema.Literals(["turns", "time", "tokens", "cost"])
export type LimitName = typeof LimitName.Type

/** What repeats: calls of tools, words of the answer, or (as a model sees it) the whole approach (spec 12). */
export const LoopKind = Schema.Literals(["calls", "content", "approach"])
export type LoopKind = typeof LoopKind.Type

/**
 * Everything a chat reports while a turn runs: for the terminal, for `--stream-json` and for telemetry (names of spec
 * 1.7). A turn ends with exactly one of `Finished`, `UserCancelled`, `InvalidStream`, `ContextWindowWillOverflow` or `Error`.
 * An agent takes turns until one calls no tool; what happens between two of them are the events of calls. It ends with the
 * last turn's end, with `LimitReached` or with `LoopDetected`.
 */
export const ChatEvent = Schema.TaggedUnion({
  /** The model that is asked, and its window in tokens. The first event of every turn. */
  ModelInfo: { model: Schema.String, limit: TokenCount },
  /** What the model thinks: its headline, where it has one, and the rest. Never part of the conversation. */
  Thought: { subject: Schema.String, description: Schema.String },
  /** A piece of the answer. */
  Content: { text: Schema.String },
  /** The model asks for a tool. `id` is that of all later events of this call, also where the model gave none. */
  ToolCallRequest: { id: Schema.String, call: FunctionCall },
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
    /** `STOP`, `MAX_TOKENS`, … as the provider names it; `FINISH_REASON_UNSPECIFIED` where it named none. */
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
    /** What did not fit: the message, or what tools answered to the calls before. */
    what: Overflowing,
    /** Its tokens. */
    estimated: TokenCount,
    /** Tokens that were left for it; always fewer. */
    remaining: TokenCount,
    limit: TokenCount,
    /** What takes the room and cannot be made smaller, largest first. */
    stubborn: Schema.Array(Stubborn),
    /** The plain text of the message. */
    text: Schema.String,
    message: Schema.String
  },
  /** The model, the store or the counter failed for good; the conversation is what it was. */
  Error: { reason: Schema.String, message: Schema.String },
  /** A tool starts: the call was understood and, where it changes something, allowed. */
  ToolCallStarted: { id: Schema.String, name: Schema.String, title: Schema.String },
  /** A person is asked whether a call may run. `title` is the call in one line, `detail` its diff or command. */
  ToolCallConfirmation: { id: Schema.String, name: Schema.String, title: Schema.String, detail: Schema.String },
  /** What a running tool printed so far, or a line that says where it is. Replaces the one before. */
  ToolCallProgress: { id: Schema.String, text: Schema.String },
  /** What an agent does that a call started. */
  SubagentActivity: { id: Schema.String, agent: Schema.String, activity: Activity },
  /** A call was answered; its answer is in the log. `message` is what the model was told where it is no success. */
  ToolCallResponse: {
    id: Schema.String,
    name: Schema.String,
    status: CallStatus,
    display: Schema.NullOr(Display),
    message: Schema.NullOr(Schema.String),
    /** Milliseconds it ran. */
    duration: Schema.Finite
  },
  /** Old tool outputs are shown by their beginning and end from now on (spec 5.4). Tokens of the view before and after. */
  ToolOutputMasked: { parts: Schema.Natural, before: TokenCount, after: TokenCount },
  /**
   * The model goes round in circles. Not `halted`: it was told so and goes on. `halted`: the agent stopped; the conversation
   * is whole, and another message goes on with it.
   */
  LoopDetected: { kind: LoopKind, detail: Schema.String, halted: Schema.Boolean },
  /** The agent stopped at a limit; the conversation is whole, and another message goes on with it. */
  LimitReached: { limit: LimitName, message: Schema.String },
  /** A line for the person from somebody beside the conversation: a hook's word, what became of a reference. */
  Notice: { source: Schema.String, message: Schema.String },
  /** A hook stopped the work, or refused the message (`refused`: then nothing of it is in the conversation). */
  HookStopped: { message: Schema.String, refused: Schema.Boolean }
})
export type ChatEvent = typeof ChatEvent.Type
