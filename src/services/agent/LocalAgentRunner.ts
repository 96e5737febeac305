import { Clock, Deferred, Effect, Exit, type Scope, Stream } from "effect"
import type { LocalAgent } from "../../domain/agent/AgentDefinition.ts"
import { text, user } from "../../domain/content/Content.ts"
import { entries } from "../../domain/conversation/Conversation.ts"
import { emptySession } from "../../domain/session/Session.ts"
import { rangeHandle } from "../session/EntryBuilder.ts"
import * as Agent from "./Agent.ts"
import type { KnownAgent } from "./AgentDefinitions.ts"
import type { Profile } from "./AgentRun.ts"
import type { AgentFailure, AgentResult, Running, Task } from "./AgentRunner.ts"
import { activityOf, outcomeOf, type RunEnd } from "./LocalAgentProgress.ts"
import { assigned, warning } from "./LocalAgentPrompt.ts"
import { begin, type NestedAgents, type ParentAgent, type Runtime, type StartedAgent } from "./LocalAgentStart.ts"
import type { Limits } from "./RunBounds.ts"

/** Runs agents in this process, each with its own conversation, tools and limits, until it submits a result. */

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
  const { done, id, message, started } = agent
  yield* attempt(agent, assigned(message)).pipe(
    Effect.onExit((exit) =>
      Effect.flatMap(
        Exit.isSuccess(exit)
          ? Effect.succeed(exit.value)
          : resultOf(agent, started, { reason: "ABORTED", words: "was stopped" }, undefined),
        (result) => Deferred.succeed(done, result)
      )
    ),
    Effect.forkScoped
  )
  const context = yield* Effect.context<Runtime>()
  return {
    id,
    result: Deferred.await(done),
    send: (words) => Effect.provideContext(send(agent, words), context)
  }
})

/** The grace period after a limit is reached: one turn, at most one minute, as in Gemini CLI. */
const grace = { turns: 1, time: 60_000 }

/** Works on one message until there is a result, with the grace turn if it is due. */
const attempt = Effect.fnUntraced(
  function* (agent: StartedAgent, message: string): Effect.fn.Return<AgentResult, never, Runtime> {
    const { chat, completion, definition, progress } = agent
    const startedAt = yield* Clock.currentTimeMillis
    yield* completion.reset
    yield* runOnce(agent, message, agent.tools, {
      turns: definition.maxTurns,
      time: definition.timeoutMinutes * 60_000
    })
    const inTime = yield* completion.submitted
    if (inTime !== undefined) return yield* resultOf(agent, startedAt, undefined, inTime, yield* trace(agent))
    const { end, turns } = progress
    if (!end.hasGrace) return yield* resultOf(agent, startedAt, end, undefined, yield* trace(agent))
    yield* chat
      .append([{ content: user(text(warning(end))), at: yield* Clock.currentTimeMillis, author: "program" }])
      .pipe(Effect.andThen(runOnce(agent, "", agent.lastTools, grace)), Effect.ignore)
    // "After 4 turns" would contradict the limit of 3.
    if (end.reason === "MAX_TURNS") progress.turns = turns
    return yield* resultOf(agent, startedAt, end, yield* completion.submitted, yield* trace(agent))
  },
  (work, { working }) => working.withPermit(work)
)

/** One run of the loop. `progress` has how it ended if the agent submitted no result. */
const runOnce = (agent: StartedAgent, input: string, tools: Profile["tools"], limits: Limits) => {
  const { chat, definition, guards, progress, task } = agent
  progress.begin(limits)
  const profile: Profile = {
    ...guards,
    name: definition.name,
    chat,
    tools,
    limits,
    inbox: (use) => readInbox(agent, use),
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

const withNote = (outcome: ReturnType<typeof outcomeOf>, note: string | undefined) =>
  note === undefined ? outcome : { ...outcome, note: outcome.note === undefined ? note : `${note} ${outcome.note}` }

const resultOf = (
  { id, isSaved, note, progress: { soFar, turns } }: StartedAgent,
  startedAt: number,
  end: Pick<RunEnd, "reason" | "words"> | undefined,
  submitted: string | undefined,
  work?: string
) =>
  Effect.map(Clock.currentTimeMillis, (now) => ({
    ...withNote(outcomeOf(end, submitted, soFar), note),
    turns,
    duration: now - startedAt,
    session: isSaved ? id : undefined,
    ...(work === undefined ? {} : { work })
  }))

/**
 * Delivers messages that arrive while the agent works on its task. A message whose delivery fails stays in the inbox.
 * Messages left at the end get a run of their own.
 */
const readInbox = <E>(agent: StartedAgent, use: (lines: ReadonlyArray<string>) => Effect.Effect<void, E>) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      if (Deferred.isDoneUnsafe(agent.done)) return Effect.void
      const letters = agent.inbox
      agent.inbox = []
      return Effect.onExit(restore(use(letters.map((letter) => letter.text))), (exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit)) agent.inbox = [...letters, ...agent.inbox]
        })
      )
    })
  )

/**
 * Sends a message to the agent and returns its reply. If the agent reads the message while it works on its task, the
 * reply is the result of the task.
 */
const send = Effect.fnUntraced(function* (agent: StartedAgent, message: string) {
  const another = Effect.map(attempt(agent, message), ({ text: reply }) => reply)
  if (yield* Deferred.isDone(agent.done)) return yield* another
  const letter = { text: message }
  agent.inbox = [...agent.inbox, letter]
  const { text: result } = yield* Deferred.await(agent.done)
  // The agent may have ended before it read its inbox again.
  if (!agent.inbox.includes(letter)) return result
  agent.inbox = agent.inbox.filter((other) => other !== letter)
  return yield* another
})
