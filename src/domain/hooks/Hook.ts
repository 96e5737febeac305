/** The events of a conversation that hooks can observe or change, and what hooks can answer to them. */

import { Schema } from "effect"
import { TokenCount, Usage } from "../tokens/Tokens.ts"

/** What started a compression. */
export const Trigger = Schema.Literals(["manual", "auto"])
export type Trigger = typeof Trigger.Type

/** A model request as hooks see it: texts only, in no SDK's shape. */
export const HookRequest = Schema.Struct({
  model: Schema.String,
  messages: Schema.Array(Schema.Struct({ role: Schema.Literals(["user", "model", "system"]), content: Schema.String })),
  config: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  toolConfig: Schema.optionalKey(
    Schema.Struct({
      mode: Schema.optionalKey(Schema.Literals(["AUTO", "ANY", "NONE"])),
      allowedFunctionNames: Schema.optionalKey(Schema.Array(Schema.String))
    })
  )
})
export type HookRequest = typeof HookRequest.Type

/**
 * The events that subscribers and command hooks receive. All are Gemini CLI's, except `PostCompress`, which is ours.
 */
export const HookEvent = Schema.TaggedUnion({
  /** A tool is about to run with validated arguments. `asked` names the tool it replaces (a tail call). */
  BeforeTool: { tool: Schema.String, input: Schema.Unknown, asked: Schema.optionalKey(Schema.String) },
  /** A tool ran. `response` is what the model receives. */
  AfterTool: {
    tool: Schema.String,
    input: Schema.Unknown,
    response: Schema.Unknown,
    asked: Schema.optionalKey(Schema.String)
  },
  /** The agent is about to work on a user message. */
  BeforeAgent: { prompt: Schema.String },
  /** The agent finished a message. `isAgain` is true when a hook had already made it continue. */
  AfterAgent: { prompt: Schema.String, answer: Schema.String, isAgain: Schema.Boolean },
  /** The user is notified or asked something. `kind` is `ToolPermission`. */
  Notification: { kind: Schema.String, message: Schema.String, details: Schema.Unknown },
  /** A conversation starts, resumes or is cleared. */
  SessionStart: { source: Schema.Literals(["startup", "resume", "clear"]) },
  /** A conversation ends. */
  SessionEnd: { reason: Schema.Literals(["exit", "clear", "logout", "prompt_input_exit", "other"]) },
  /** Fires before a compression attempt, before it is known whether one is needed. */
  PreCompress: { trigger: Trigger },
  /** Fires after a compression attempt, whatever its outcome. */
  PostCompress: {
    trigger: Trigger,
    status: Schema.String,
    before: TokenCount,
    after: TokenCount,
    /** Identifies the compression and its model calls. Contains no conversation text. */
    promptId: Schema.optionalKey(Schema.String),
    calls: Schema.optionalKey(
      Schema.Array(
        Schema.Struct({
          promptId: Schema.String,
          purpose: Schema.String,
          model: Schema.String,
          usage: Schema.NullOr(Usage)
        })
      )
    )
  },
  /** A request is about to be sent to the model. */
  BeforeModel: { request: HookRequest },
  /** The same request, for hooks that only choose which tools may be called. */
  BeforeToolSelection: { request: HookRequest },
  /** A chunk of the answer arrived. `text` is its text. The last chunk carries `finishReason` and usually `usage`. */
  AfterModel: {
    request: HookRequest,
    text: Schema.String,
    finishReason: Schema.NullOr(Schema.String),
    usage: Schema.optionalKey(Usage)
  }
})
export type HookEvent = typeof HookEvent.Type
/** The name of an event, as written in settings. */
export type HookEventName = HookEvent["_tag"]

/** What a hook may answer. Absent fields have no effect. */
export const HookOutput = Schema.Struct({
  /** False stops the whole run. */
  continue: Schema.optionalKey(Schema.Boolean),
  stopReason: Schema.optionalKey(Schema.String),
  suppressOutput: Schema.optionalKey(Schema.Boolean),
  /** Shown to the user. */
  systemMessage: Schema.optionalKey(Schema.String),
  decision: Schema.optionalKey(Schema.Literals(["ask", "block", "deny", "approve", "allow"])),
  reason: Schema.optionalKey(Schema.String),
  hookSpecificOutput: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
export type HookOutput = typeof HookOutput.Type

/** A hook that failed, crashed or timed out. The other hooks still received the event. */
export const HookFailure = Schema.Struct({ hook: Schema.String, message: Schema.String })
export type HookFailure = typeof HookFailure.Type

/** A message from a hook to the user. */
export const HookNotice = Schema.Struct({ hook: Schema.String, message: Schema.String })
export type HookNotice = typeof HookNotice.Type

/** The merged answer of all hooks to one event. */
export const HookOutcome = Schema.Struct({
  /** Why the run must stop; undefined when it continues. */
  stopped: Schema.UndefinedOr(Schema.String),
  /** Why this one action is refused; undefined when it is allowed. */
  blocked: Schema.UndefinedOr(Schema.String),
  /** Whether the user must be asked, even where no question would be asked otherwise. */
  asks: Schema.Boolean,
  /** Text for the model: all `additionalContext`, joined. */
  context: Schema.UndefinedOr(Schema.String),
  /** System messages for the user, one per hook. */
  messages: Schema.Array(Schema.String),
  /** The same messages with the hook that sent each. */
  notices: Schema.Array(HookNotice),
  /** Whether logs and telemetry may omit the output (`suppressOutput`). */
  suppressed: Schema.Boolean,
  /** Whether the history is to be cleared (AfterAgent). */
  clears: Schema.Boolean,
  /** The `hookSpecificOutput` of all hooks, merged by the rule of the event. */
  specific: Schema.Record(Schema.String, Schema.Unknown),
  failures: Schema.Array(HookFailure)
})
export type HookOutcome = typeof HookOutcome.Type

/** The outcome when no hook answered. */
export const emptyOutcome: HookOutcome = {
  stopped: undefined,
  blocked: undefined,
  asks: false,
  context: undefined,
  messages: [],
  notices: [],
  suppressed: false,
  clears: false,
  specific: {},
  failures: []
}
