import { Schema } from "effect"
import { TokenCount, Usage } from "./Tokens.ts"

/** What happens to a conversation that others may look into or change: events, and what may be said to them (spec 8). */

/** Why a compression is attempted. */
export const Trigger = Schema.Literals(["manual", "auto"])
export type Trigger = typeof Trigger.Type

/** A request to the model as hooks see it: no SDK's shape, texts only. */
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

/** What subscribers and commands are told. All but `PostCompress`, which is ours, are those of spec 8. */
export const HookEvent = Schema.TaggedUnion({
  /** A tool is about to run; its arguments were understood. `asked`: the tool that it runs in place of (a tail call). */
  BeforeTool: { tool: Schema.String, input: Schema.Unknown, asked: Schema.optionalKey(Schema.String) },
  /** A tool has run; `response` is what the model will be given. */
  AfterTool: {
    tool: Schema.String,
    input: Schema.Unknown,
    response: Schema.Unknown,
    asked: Schema.optionalKey(Schema.String)
  },
  /** A person's message is about to be worked on. */
  BeforeAgent: { prompt: Schema.String },
  /** The work on a message is done; `isAgain`: a hook had it go on before. */
  AfterAgent: { prompt: Schema.String, answer: Schema.String, isAgain: Schema.Boolean },
  /** A person is told or asked something; `kind` is `ToolPermission`. */
  Notification: { kind: Schema.String, message: Schema.String, details: Schema.Unknown },
  /** A conversation begins, goes on, or begins anew. */
  SessionStart: { source: Schema.Literals(["startup", "resume", "clear"]) },
  /** It ends. */
  SessionEnd: { reason: Schema.Literals(["exit", "clear", "logout", "prompt_input_exit", "other"]) },
  /** Before a compression is attempted, and before it is known whether it will come to one (spec 3.1 step 2). */
  PreCompress: { trigger: Trigger },
  /** After one ended, however it did. */
  PostCompress: {
    trigger: Trigger,
    status: Schema.String,
    before: TokenCount,
    after: TokenCount,
    /** What the compression is known by, and its calls of a model, without what was said. */
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
  /** A request is about to leave. */
  BeforeModel: { request: HookRequest },
  /** The same, for who only wants to say which tools may be called. */
  BeforeToolSelection: { request: HookRequest },
  /** A piece of the answer came. `text` is its text; `finishReason` and, as a rule, `usage` stand on the last one. */
  AfterModel: {
    request: HookRequest,
    text: Schema.String,
    finishReason: Schema.NullOr(Schema.String),
    usage: Schema.optionalKey(Usage)
  }
})
export type HookEvent = typeof HookEvent.Type
/** The name of an event, as settings write it. */
export type HookEventName = HookEvent["_tag"]

/** What a hook may answer (spec 8, output fields). What is absent has no effect. */
export const HookOutput = Schema.Struct({
  /** False stops the whole work. */
  continue: Schema.optionalKey(Schema.Boolean),
  stopReason: Schema.optionalKey(Schema.String),
  suppressOutput: Schema.optionalKey(Schema.Boolean),
  /** Told to the person. */
  systemMessage: Schema.optionalKey(Schema.String),
  decision: Schema.optionalKey(Schema.Literals(["ask", "block", "deny", "approve", "allow"])),
  reason: Schema.optionalKey(Schema.String),
  hookSpecificOutput: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
export type HookOutput = typeof HookOutput.Type

/** A hook failed, died or took too long. The event went on to the others. */
export interface HookFailure {
  readonly hook: string
  readonly message: string
}

/** What a hook said to the person. */
export interface HookNotice {
  readonly hook: string
  readonly message: string
}

/** What all hooks together said to one event. */
export interface HookOutcome {
  /** The work has to stop, and why; undefined: it goes on. */
  readonly stopped: string | undefined
  /** This one thing must not happen, and why. */
  readonly blocked: string | undefined
  /** A person has to be asked, even where they would not be. */
  readonly asks: boolean
  /** For the model: `additionalContext`, joined. */
  readonly context: string | undefined
  /** For the person, one each: system messages. */
  readonly messages: ReadonlyArray<string>
  /** The same, with who says it. */
  readonly notices: ReadonlyArray<HookNotice>
  /** Logs and telemetry need not tell of it (`suppressOutput`). */
  readonly suppressed: boolean
  /** The history is to be emptied (AfterAgent). */
  readonly clears: boolean
  /** `hookSpecificOutput` of all, merged as spec 8 says for the event. */
  readonly specific: Readonly<Record<string, unknown>>
  readonly failures: ReadonlyArray<HookFailure>
}

/** No hook said anything. */
export const unsaid: HookOutcome = {
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
