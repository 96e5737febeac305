/** What an agent is, and the state of one of its runs. */

import { Effect, type Scope } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { Part } from "../../domain/content/Content.ts"
import type { Attachment } from "../chat/AppendMessages.ts"
import type { Chat } from "../chat/Chat.ts"
import * as Hooked from "../hooks/Hooked.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import type { Approval } from "../tools/Approval.ts"
import type { Tool } from "../tools/Tool.ts"
import type { OutgoingMessage } from "./AgentConversation.ts"
import type { LoopDetector } from "./LoopDetector.ts"
import { type ConsumedLimits, type Limits, type RunBounds, watchBounds } from "./RunBounds.ts"
import type { CallAnswer, PendingCall } from "./ToolAnswer.ts"

/** An agent: a conversation, the tools it may use and its limits. A plain value; several agents may run at the same time. */
export interface Profile {
  /** The agent's name in approval questions and wherever its work is shown. */
  readonly name: string
  readonly chat: Chat["Service"]
  /** The tools, declared to the model in this order. The value is the same object as long as the tools do not change. */
  readonly tools: ReadonlyArray<Tool>
  readonly limits?: Limits | undefined
  /** Detects loops. Without it, nothing looks for loops. */
  readonly loops?: LoopDetector | undefined
  /** Chooses the model of a run. Undefined: the model of the conversation. */
  readonly route?: ((input: ReadonlyArray<Part>) => Effect.Effect<string | undefined>) | undefined
  /** Returns a shorter text to show the model for a tool result; the full text stays behind its handle. Undefined: the result is shown unchanged. */
  readonly summarize?: ((tool: string, output: string, intent: string) => Effect.Effect<string | undefined>) | undefined
  /**
   * Messages from other agents. Each is delivered once, before the next turn: passes the lines to `use` and keeps them when `use` fails or is
   * interrupted.
   */
  readonly inbox?:
    | (<E>(use: (lines: ReadonlyArray<string>) => Effect.Effect<void, E>) => Effect.Effect<void, E>)
    | undefined
  /** Text to repeat when a compression removed it from the window, for example which agents are running. */
  readonly reminder?: Effect.Effect<string | undefined> | undefined
  /** Runs before each turn, when its message is known. It cannot fail, and ends when the run is stopped. */
  readonly beforeTurn?: ((turn: TurnAhead) => Effect.Effect<void, never, Approval>) | undefined
  /** The hooks that observe the run and may change it. Absent: none. */
  readonly hooks?: HookSystem["Service"] | undefined
  /**
   * Empties the conversation at the end of a run when a hook asks for it; `next` is the prompt a hook still wants to run afterwards. Absent: the
   * conversation stays, and the user gets a notice.
   */
  readonly onClear?: ((next: string | undefined) => Effect.Effect<void>) | undefined
}

/** The next turn, as seen by the work that runs before it. */
export interface TurnAhead extends Pick<OutgoingMessage, "attached" | "message"> {
  /** Emits an event to the user. */
  readonly emit: Emit
  /** Runs work that waits for the user. The run does not count that time. */
  readonly waiting: RunBounds["waiting"]
}

/** Options of one run. */
export interface RunOptions {
  /** Cancels the run when it completes first: pending calls are answered as cancelled, and the last event is `UserCancelled`. */
  readonly cancel?: Effect.Effect<unknown> | undefined
  /** Takes what the user typed since the last look. It is appended after the tools of a turn, before the next request. */
  readonly steering?: Effect.Effect<ReadonlyArray<string>> | undefined
  /** Runs work that waits for the user, so that the caller of this agent does not count that time either. */
  readonly waiting?: (<A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
  /** `program`: the message does not come from the user. It is marked as such, and BeforeAgent hooks do not run for it. */
  readonly author?: "program" | undefined
  /** The id under which a client sent the message (`SendOptions`). */
  readonly messageId?: string | undefined
  /** Attachments of the message (`SendOptions`). */
  readonly attached?: ReadonlyArray<Attachment> | undefined
  /** Tools of this run beside those of the agent. One of theirs with the same name is replaced. */
  readonly tools?: ReadonlyArray<Tool> | undefined
  /** Names and wildcards of the agent's tools that this run may use. Absent: all. */
  readonly selects?: ReadonlyArray<string> | undefined
  /** The model of this run. Absent: the one that the agent chooses. */
  readonly model?: string | undefined
  /** What happens to calls that a closed run leaves without a result. Absent: they are answered as not finished. */
  readonly lasting?: LastingCalls | undefined
}

/** Calls that outlive the run that made them, because someone outside the program answers them. */
export interface LastingCalls {
  /** Whether the calls of the present answer stay open when the run is closed. The next run without a message takes them up. */
  readonly staysOpen: Effect.Effect<boolean>
  /** Keeps the answer of a call that changed something, while others of the same message have none. */
  readonly ended: (call: PendingCall, answer: CallAnswer) => Effect.Effect<void>
  /** The answers of open calls of an earlier run, in their order. Undefined: the call did not begin, and is carried out. */
  readonly earlier: (
    calls: ReadonlyArray<PendingCall>,
    tools: ReadonlyArray<Tool>
  ) => Effect.Effect<ReadonlyArray<CallAnswer | undefined>>
}

/** Receives the events of a run. It may make the run wait. */
export type Emit = (event: ChatEvent) => Effect.Effect<void>

/** The state of one run, passed to every function of the loop. */
export interface AgentRun {
  readonly profile: Profile
  readonly emit: Emit
  readonly hooked: Hooked.Hooked
  readonly bounds: RunBounds
  /** The scope of background work, which ends with the run. */
  readonly scope: Scope.Scope
  /** The text of the message that began the run. */
  readonly prompt: string
  readonly steering: RunOptions["steering"]
  readonly lasting: RunOptions["lasting"]
  /** The position of the next message when the run began: the run kept something where it has moved. */
  readonly first: number
  /** Who wrote that message. */
  readonly author: RunOptions["author"]
  used: ConsumedLimits
  /** The number of loops that were detected. */
  loops: number
  /** How often hooks continued the run after the model had finished. */
  continued: number
  /** Whether BeforeAgent was fired, and AfterAgent has yet to be. */
  awaitsAfterAgent: boolean
  /** Whether the last turn compressed the conversation. */
  isCompressed: boolean
  /** The message of the next turn. */
  next: OutgoingMessage
}

/** The message of a turn that only continues. */
export const noMessage: OutgoingMessage = { message: [], author: undefined, attached: [] }

/** Begins a run. Its watchers for cancellation and time end with the scope. */
export const begin = Effect.fnUntraced(function* (
  profile: Profile,
  message: ReadonlyArray<Part>,
  { attached = [], author, cancel, lasting, messageId, steering, waiting = (work) => work }: RunOptions,
  emit: Emit
): Effect.fn.Return<AgentRun, never, Scope.Scope> {
  return {
    profile,
    emit,
    scope: yield* Effect.scope,
    bounds: yield* watchBounds(profile.limits ?? {}, cancel, waiting),
    hooked: Hooked.make(profile.hooks, yield* placeOf(profile), emit),
    prompt: message.flatMap((part) => (part.text === undefined ? [] : [part.text])).join("\n"),
    steering,
    lasting,
    first: (yield* profile.chat.conversation).next,
    author,
    used: { turns: 0, tokens: 0, cost: 0 },
    loops: 0,
    continued: 0,
    awaitsAfterAgent: false,
    isCompressed: false,
    next: { message, author, messageId, attached }
  }
})

/** The session and folder that hooks receive. Looked up only if there are hooks. */
const placeOf = Effect.fnUntraced(function* ({ chat, hooks }: Profile) {
  if (hooks === undefined) return {}
  const { started } = yield* chat.session
  return { session: started?.session, cwd: (yield* chat.settings).cwd ?? started?.cwd }
})
