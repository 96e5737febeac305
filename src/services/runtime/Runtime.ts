/**
 * An agent in a folder, assembled: a session that is opened or resumed, tools, memory, hooks, subagents, approval.
 *
 * *When to use*: in any program that wants the agent of the command line: a server, a bot, a script. `chat`, `ask` and
 * `agents run` use it too. For an agent of your own tools alone, `Agent.run` is enough.
 *
 * *Details*: the folder is `Path.resolve(".")`; `LiveRuntime.layer({ folder })` sets another. All failures are typed
 * (`RuntimeError`); notices, approvals and questions reach the handlers that you pass. What it started (processes, MCP servers,
 * locks) ends with the scope. Nothing here prints.
 *
 * A whole program: examples/library/runtime.ts.
 */

import { Context, Effect, Layer, type Path, type Scope, type Stream } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { Part } from "../../domain/content/Content.ts"
import type { TurnError } from "../chat/Turn.ts"
import type { EnvFiles } from "../platform/Environment.ts"
import type { AgentHost, RuntimeServices, SendOptions } from "./AgentHost.ts"
import type { AgentHandlers, HostOptions, HostSession } from "./AgentParts.ts"
import type { RuntimeError } from "./RuntimeError.ts"
import { noticeText } from "./RuntimeNotice.ts"
import * as SessionOpening from "./SessionOpening.ts"

/** Options of a runtime. What is absent comes from the settings. */
export interface RuntimeOptions extends SessionOptions, Omit<HostOptions, "isPreview"> {
  /** Whether the conversation is stored. Absent: it is when `session` names one. */
  readonly isStored?: boolean | undefined
  /** The callbacks. Absent: calls that need approval are denied, and notices are logged. */
  readonly handlers?: RuntimeHandlers | undefined
}

type SessionOptions = SessionOpening.SessionOptions

/** The callbacks for approval, questions, notices and progress. */
export interface RuntimeHandlers extends AgentHandlers, Pick<SessionOpening.OpenHandlers, "progress"> {}

/** An assembled agent. */
export interface AssembledAgent extends SessionOpening.OpenSession {
  /** The agent behind `send`: its tools, approval mode, subagents, context. */
  readonly host: AgentHost
  /**
   * Sends a message and works until nothing is left to do. The stream gives each event as it happens; it fails with the
   * reason when no answer comes. One message at a time.
   */
  readonly send: (message: string | ReadonlyArray<Part>, options?: SendOptions) => Stream.Stream<ChatEvent, TurnError>
}

/**
 * Assembles an agent for an open session. What it starts ends with the scope. Its tools are loaded here and not at the start of the program, because
 * they are half of it.
 */
export const host = Effect.fn("Runtime.host")(function* (
  session: HostSession,
  options: HostOptions,
  handlers: AgentHandlers
) {
  const { make: assemble } = yield* Effect.promise(() => import("./AgentAssembly.ts"))
  return yield* assemble(session, options, handlers)
})

const logged: AgentHandlers = {
  notify: (notice) => Effect.logWarning(noticeText(notice))
}

/** Opens the session and assembles an agent for it. Both end with the scope. */
export const make = Effect.fn("Runtime.make")(function* (
  options: RuntimeOptions = {}
): Effect.fn.Return<
  AssembledAgent,
  RuntimeError,
  EnvFiles | Path.Path | RuntimeServices | Scope.Scope | SessionOpening.ChatServices
> {
  const handlers: RuntimeHandlers = options.handlers ?? logged
  const isStored = options.isStored ?? options.session !== undefined
  const opened: SessionOpening.OpenSession = isStored
    ? yield* SessionOpening.open(options, handlers)
    : yield* SessionOpening.openTemporary(options, handlers)
  const working = host(opened, options, handlers)
  const agent = yield* handlers.progress === undefined ? working : handlers.progress("starting the tools", working)
  return { ...opened, host: agent, send: agent.run }
})

/** An agent in a folder. `make` opens one in a scope; `layer` holds one for a program. */
export class Runtime extends Context.Service<Runtime, AssembledAgent>()("palimpsest/services/runtime/Runtime") {}

/** Holds one agent for as long as the layer lives. */
export const layer = (options: RuntimeOptions = {}) => Layer.effect(Runtime, make(options))
