/** Runs agents in this process, each with its own conversation, tools and limits, until it submits a result. */

import { Clock, Effect, Exit, Fiber, type Scope, Stream } from "effect"
import type { LocalAgent } from "../../domain/agent/AgentDefinition.ts"
import type { AgentResult } from "../../domain/agent/AgentResult.ts"
import { text, user } from "../../domain/content/Content.ts"
import { entries } from "../../domain/conversation/Conversation.ts"
import { emptySession } from "../../domain/session/Session.ts"
import { rangeHandle } from "../session/EntryBuilder.ts"
import * as Agent from "./Agent.ts"
import type { KnownAgent } from "./AgentDefinitions.ts"
import type { Profile } from "./AgentRun.ts"
import type { AgentFailure, Running, Task } from "./AgentRunner.ts"
import { activityOf, outcomeOf, type RunEnd } from "./LocalAgentProgress.ts"
import { assigned, warning } from "./LocalAgentPrompt.ts"
import { begin, type NestedAgents, type ParentAgent, type Runtime, type StartedAgent } from "./LocalAgentStart.ts"
import * as Mailbox from "./Mailbox.ts"
import type { Limits } from "./RunBounds.ts"

/**
 * Starts an agent in this process, with its own conversation, tools, model and limits. Only the submitted result returns to the caller. Closing
 * the scope ends it and everything it started.
 */
export const start = Effect.fn("LocalAgentRunner.start")(function* (
  knownAgent: KnownAgent,
  definition: LocalAgent,
  parent: ParentAgent,
  nested: NestedAgents,
  task: Task
): Effect.fn.Return<Running, AgentFailure, Runtime | Scope.Scope> {
  const agent = yield* begin(knownAgent, definition, parent, nested, task)
  const { id, message, started } = agent
  const inbox = yield* Mailbox.make
  const working = yield* Effect.forkScoped(attempt(agent, assigned(message), inbox))
  const result = Effect.flatMap(Fiber.await(working), (exit) =>
    Exit.isSuccess(exit)
      ? Effect.succeed(exit.value)
      : resultOf(agent, started, { reason: "ABORTED", words: "was stopped" }, undefined)
  )
  const context = yield* Effect.context<Runtime>()
  /** The agent reads a message while it works on its task, and its reply is then the result of the task; else the message gets a run of its own. */
  const send = Effect.fnUntraced(function* (words: string) {
    yield* inbox.put(words)
    const { text: reply } = yield* result
    if (!(yield* inbox.withdraw(words))) return reply
    return (yield* attempt(agent, words)).text
  }, Effect.provideContext(context))
  return { id, result, send }
})

/** The grace period after a limit is reached: one turn, at most one minute, as in Gemini CLI. */
const grace = { turns: 1, time: 60_000 }

/** Works on one message until there is a result, with the grace turn if it is due. `inbox`: messages that it reads meanwhile. */
const attempt = Effect.fnUntraced(
  function* (
    agent: StartedAgent,
    message: string,
    inbox?: Mailbox.Mailbox
  ): Effect.fn.Return<AgentResult, never, Runtime> {
    const { chat, completion, definition, progress } = agent
    const startedAt = yield* Clock.currentTimeMillis
    yield* completion.reset
    const limits = { turns: definition.maxTurns, time: definition.timeoutMinutes * 60_000 }
    yield* runOnce(agent, message, agent.tools, limits, inbox)
    const result = (end: RunEnd | undefined, submitted: string | undefined) =>
      Effect.flatMap(trace(agent), (work) => resultOf(agent, startedAt, end, submitted, work))
    const inTime = yield* completion.submitted
    if (inTime !== undefined) return yield* result(undefined, inTime)
    const { end, turns } = progress
    if (!end.hasGrace) return yield* result(end, undefined)
    yield* chat
      .append([{ content: user(text(warning(end))), at: yield* Clock.currentTimeMillis, author: "program" }])
      .pipe(Effect.andThen(runOnce(agent, "", agent.lastTools, grace, inbox)), Effect.ignore)
    // "After 4 turns" would contradict the limit of 3.
    if (end.reason === "MAX_TURNS") progress.turns = turns
    return yield* result(end, yield* completion.submitted)
  },
  (work, { working }) => working.withPermit(work)
)

/** One run of the loop. `progress` has how it ended if the agent submitted no result. */
const runOnce = (
  { chat, definition, guards, progress, task }: StartedAgent,
  input: string,
  tools: Profile["tools"],
  limits: Limits,
  inbox: Mailbox.Mailbox | undefined
) => {
  progress.begin(limits)
  const profile: Profile = {
    ...guards,
    name: definition.name,
    chat,
    tools,
    limits,
    inbox: inbox?.deliver,
    // Snapshots need not preserve messages of a program, but these are the agent's whole task.
    reminder: Effect.succeed(input)
  }
  return Agent.run(profile, input, { waiting: task.waiting, author: "program" }).pipe(
    Stream.runForEach((event) =>
      Effect.gen(function* () {
        const isNews = progress.push(event)
        const activity = activityOf(event)
        if (activity !== undefined) yield* task.activity(activity)
        if (isNews && task.progress !== undefined) yield* task.progress(progress.soFar)
      })
    ),
    Effect.catch((error) =>
      Effect.sync(() => {
        progress.end = { reason: "ERROR", words: `failed: ${error.message}`, hasGrace: false }
      })
    )
  )
}

/** Describes where the agent's whole work can be read. */
const trace = Effect.fnUntraced(function* ({ chat, id, progress }: StartedAgent) {
  const { conversation } = yield* Effect.orElseSucceed(chat.whole, () => emptySession)
  const all = entries(conversation)
  const handle = yield* rangeHandle(all)
  progress.handles.set(handle, all.length)
  return `recall ${handle} of session ${id}`
})

const resultOf = (
  { id, isSaved, note, progress: { soFar, turns } }: StartedAgent,
  startedAt: number,
  end: Pick<RunEnd, "reason" | "words"> | undefined,
  submitted: string | undefined,
  work?: string
) =>
  Effect.map(Clock.currentTimeMillis, (now) => ({
    ...outcomeOf(end, submitted, soFar, note),
    turns,
    duration: now - startedAt,
    session: isSaved ? id : undefined,
    ...(work === undefined ? {} : { work })
  }))
