/** The events that a chat reports while a turn runs, with the statuses, faults and limits in them. */

import { Schema } from "effect"
import { FunctionCall } from "../content/Content.ts"
import { EntryId } from "../conversation/Conversation.ts"
import { TokenCount, Usage } from "../tokens/Tokens.ts"
import { Display } from "../tools/ToolResult.ts"

/** Why an answer cannot be used, in the order in which it is checked. */
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

/** What does not fit the window. */
export const Overflowing = Schema.Literals(["message", "tool results"])
export type Overflowing = typeof Overflowing.Type

/** A part of a request that cannot be made smaller. */
export const Stubborn = Schema.Struct({ entry: Schema.NullOr(EntryId), what: Schema.String, tokens: TokenCount })
export type Stubborn = typeof Stubborn.Type

/** How a tool call ended. The model received an answer in each case. */
export const CallStatus = Schema.Literals(["success", "error", "denied", "cancelled", "timeout"])
export type CallStatus = typeof CallStatus.Type

/** An activity of a subagent. */
export const Activity = Schema.TaggedUnion({
  /** The headline of a thought. */
  Thought: { text: Schema.String },
  /** It called a tool. */
  CallStarted: { id: Schema.String, name: Schema.String, title: Schema.String },
  /** The call ended. */
  CallEnded: { id: Schema.String, name: Schema.String, status: CallStatus },
  /** A turn ended; its conversation has so many tokens. */
  TurnEnded: { tokens: TokenCount },
  /** Something failed. The agent goes on, or its result reports it. */
  Failed: { message: Schema.String }
})
export type Activity = typeof Activity.Type

/** A limit of an agent run. */
export const LimitName = Schema.Literals(["turns", "time", "tokens", "cost"])
export type LimitName = typeof LimitName.Type

/** The state of a snapshot that is prepared in the background. */
export const PreparationState = Schema.Literals(["running", "ready", "dropped"])
export type PreparationState = typeof PreparationState.Type

/** What repeats: tool calls, words of the answer, or the whole approach, as judged by a model. */
export const LoopKind = Schema.Literals(["calls", "content", "approach"])
export type LoopKind = typeof LoopKind.Type

/**
 * Everything that a chat reports while a turn runs: for the terminal, for `--stream-json` and for telemetry, under Gemini CLI's
 * names.
 *
 * *Details*: a turn ends with exactly one of `Finished`, `UserCancelled`, `InvalidStream`, `ContextWindowWillOverflow`,
 * `HookStopped` or `Error`. An agent takes turns until one calls no tool, and reports its tool calls between them. It ends with
 * the end of its last turn, with `LimitReached` or with `LoopDetected`.
 */
export const ChatEvent = Schema.TaggedUnion({
  /** The first event of every turn: the model that is asked, and how large a request may be, in tokens. */
  ModelInfo: { model: Schema.String, limit: TokenCount },
  /** A thought of the model: its headline, where it has one, and the rest. Never part of the conversation. */
  Thought: { subject: Schema.String, description: Schema.String },
  /** A piece of the answer. */
  Content: { text: Schema.String },
  /** The model asks for a tool. `id` is that of all later events of this call, also where the model gave none. */
  ToolCallRequest: { id: Schema.String, call: FunctionCall },
  /** The sources that the answer quotes, sorted, one a line. */
  Citation: { text: Schema.String },
  /** The answer so far is void; drop it. The model is asked again after `delay` milliseconds. */
  Retry: {
    /** The next attempt, counted from 2. */
    attempt: Schema.Natural,
    delay: Schema.Finite,
    /** An `AnswerFault` or the tag of a ModelError's reason. */
    reason: Schema.String,
    message: Schema.String
  },
  /** A compression before the request ended in any way but Noop. Tokens of the request before and after. */
  ChatCompressed: {
    trigger: Schema.Literals(["manual", "auto"]),
    status: Schema.String,
    before: TokenCount,
    after: TokenCount,
    limit: TokenCount,
    /** What failed on the way, or why nothing changed. */
    message: Schema.NullOr(Schema.String)
  },
  /**
   * What became of a snapshot that is prepared while the chat goes on: it is being written, it waits for the compression that
   * uses it, or it is given up. Comes within a turn: at its end (`running`), or at the beginning of the next one.
   */
  SnapshotPreparation: {
    state: PreparationState,
    /** Why it is given up. */
    message: Schema.NullOr(Schema.String)
  },
  /** The answer is complete, and committed together with its message. */
  Finished: {
    /** `STOP`, `MAX_TOKENS`, … as the provider names it; `FINISH_REASON_UNSPECIFIED` where it named none. */
    reason: Schema.String,
    usage: Schema.NullOr(Usage),
    answer: EntryId,
    /** Tokens of the conversation now, and how large a request may be. */
    tokens: TokenCount,
    limit: TokenCount,
    /** The tools that a hook left to choose from; calls of others are refused. Absent: all. */
    tools: Schema.optionalKey(Schema.Array(Schema.String))
  },
  /** The turn was cancelled. The conversation did not change. */
  UserCancelled: {},
  /** No attempt gave an answer that can be used. The conversation did not change. */
  InvalidStream: { fault: AnswerFault, message: Schema.String },
  /** The request would not fit, so nothing was sent. The conversation did not change; the message is the user's again. */
  ContextWindowWillOverflow: {
    /** What did not fit: the message, or the results of the last tool calls. */
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
  /** The model, the store or the counter failed. The conversation did not change. */
  Error: { reason: Schema.String, message: Schema.String },
  /** A tool starts: the call is valid and, where that is needed, approved. */
  ToolCallStarted: { id: Schema.String, name: Schema.String, title: Schema.String },
  /** The user is asked to approve a call. `title` is the call in one line, `detail` its diff or command. */
  ToolCallConfirmation: { id: Schema.String, name: Schema.String, title: Schema.String, detail: Schema.String },
  /** The output of a running tool so far, or a line about its progress. Replaces the previous one. */
  ToolCallProgress: { id: Schema.String, text: Schema.String },
  /** An activity of the agent that a call started. */
  SubagentActivity: { id: Schema.String, agent: Schema.String, activity: Activity },
  /** A call ended, and its result is committed. `message` is what the model was told where it did not succeed. */
  ToolCallResponse: {
    id: Schema.String,
    name: Schema.String,
    status: CallStatus,
    display: Schema.NullOr(Display),
    message: Schema.NullOr(Schema.String),
    /** Milliseconds it ran. */
    duration: Schema.Finite
  },
  /** Old tool outputs were masked: only their beginning and end are shown now. Tokens of the view before and after. */
  ToolOutputMasked: { parts: Schema.Natural, before: TokenCount, after: TokenCount },
  /**
   * The model repeats itself. Not `halted`: it was told so and goes on. `halted`: the agent stopped; the conversation is complete,
   * and another message continues it.
   */
  LoopDetected: { kind: LoopKind, detail: Schema.String, halted: Schema.Boolean },
  /** The agent stopped at a limit. The conversation is complete, and another message continues it. */
  LimitReached: { limit: LimitName, message: Schema.String },
  /** A line for the user from outside the conversation: a hook's message, what became of a reference. */
  Notice: { source: Schema.String, message: Schema.String },
  /** A hook stopped the work, or refused the message (`refused`: nothing of it is in the conversation). */
  HookStopped: { message: Schema.String, refused: Schema.Boolean }
})
export type ChatEvent = typeof ChatEvent.Type
