import { Clock, Deferred, Duration, Effect, Exit, Latch, Ref, Schema, Scope } from "effect"
import * as AgentHistory from "../../domain/conversation/AgentHistory.ts"
import { type CallContext, type Question, ToolFailure } from "../tools/Tool.ts"
import {
  AgentBounds,
  type AgentContextMode,
  type AgentFailure,
  type AgentLimits,
  type AgentResult,
  type Running,
  type Task
} from "./AgentRunner.ts"
import {
  activityText,
  announceSkip,
  causeText,
  endNote,
  failureMessage,
  firstLine,
  historyText,
  messageToChild,
  reminder,
  replyMessage,
  replySkip,
  resultMessage,
  seconds,
  unansweredMessage
} from "./ChildMessages.ts"
import { type Child, ChildRegistry, countReply, type SpawnableAgent } from "./ChildRegistry.ts"
import type { Mailbox } from "./Mailbox.ts"

/**
 * Agents that run in the background of the agent that started them, and exchange messages with it, as in OpenClaw.
 * Starting an agent returns its id at once. Its result arrives as a message between two turns. It accepts messages
 * while it works and afterwards.
 */

/** What an agent needs to start others. */
interface ChildrenOptions {
  readonly agents: ReadonlyArray<SpawnableAgent>
  /** Receives the results. */
  readonly mailbox: Mailbox
  /** Whether an agent may begin with a copy of the parent's conversation (`Task.context`). */
  readonly canFork?: boolean | undefined
}

/** The state of one started agent. */
export const ChildState = Schema.Struct({
  session: Schema.String,
  agent: Schema.String,
  task: Schema.String,
  /** `running`, `failed`, or why it ended. */
  status: Schema.String,
  /** Seconds since it was started, or that it took. */
  seconds: Schema.Finite,
  turns: Schema.optionalKey(Schema.Natural),
  /** The conversation that holds its work, if it is saved. */
  log: Schema.optionalKey(Schema.String)
})
export type ChildState = typeof ChildState.Type

/** The agents that one agent started. */
export interface Children {
  readonly agents: ReadonlyArray<SpawnableAgent>
  /** Starts an agent and returns its id, by which messages reach it. */
  readonly spawn: (agent: string, task: string, context?: AgentContextMode) => Effect.Effect<string, ToolFailure>
  /** Whether `spawn` accepts the context `fork`. */
  readonly canFork: boolean
  /** Sends a message to an agent and returns its reply. If the reply takes longer than `patience`, it arrives as a message. */
  readonly send: (
    id: string,
    message: string,
    patience: Duration.Duration,
    context: CallContext
  ) => Effect.Effect<string, ToolFailure>
  /** All started agents that are still in the registry, oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<ChildState>>
  /** The messages to and from one agent, with well-known secrets removed. Fails if there is no agent with this id. */
  readonly history: (id: string) => Effect.Effect<string, ToolFailure>
  /** Whether any agent is working, on its task or on a reply. */
  readonly isBusy: Effect.Effect<boolean>
  /** Waits until no agent is working. By then their messages are in the mailbox. */
  readonly quiet: Effect.Effect<void>
  /** The running agents, as a message to their parent. Repeated after a compression, which may have dropped it. */
  readonly alive: Effect.Effect<string | undefined>
  /** The approval question before a message is sent, by the name of an agent or the id of a started one. */
  readonly question: (agentOrId: string, message: string) => Effect.Effect<Question | undefined>
}

/** Makes the failure of a call of these tools. */
export const failed = (message: string): ToolFailure => new ToolFailure({ message })

/** Makes the registry of the agents that one agent starts. Closing the scope ends them all. */
export const makeChildren = Effect.fnUntraced(function* (
  options: ChildrenOptions
): Effect.fn.Return<Children, never, Scope.Scope> {
  const parent: Parent = {
    ...options,
    scope: yield* Scope.Scope,
    bounds: yield* AgentBounds,
    quiet: yield* Latch.make(true),
    registry: new ChildRegistry()
  }
  return {
    agents: parent.agents,
    spawn: (name, task, context) => spawn(parent, name, task, context),
    canFork: options.canFork === true,
    send: (id, message, patience, context) => send(parent, id, message, patience, context),
    list: Effect.map(Clock.currentTimeMillis, (now) => parent.registry.inOrder.map((child) => stateOf(child, now))),
    history: (id) => Effect.map(find(parent, id), historyText),
    isBusy: Effect.sync(() => parent.registry.busy.length > 0),
    quiet: parent.quiet.await,
    alive: Effect.sync(() => reminder(parent.registry.busy)),
    question: (agentOrId, message) => Effect.sync(() => agentOf(parent, agentOrId)?.question?.(message))
  }
})

/** An agent that starts others. */
interface Parent extends ChildrenOptions {
  /** The scope of all started agents. */
  readonly scope: Scope.Scope
  readonly bounds: AgentLimits
  /** Open while no agent owes a message. */
  readonly quiet: Latch.Latch
  readonly registry: ChildRegistry
}

/**
 * Opens the latch while no agent in the registry owes a message, and closes it otherwise. After an end it is set last, so that a waiting caller
 * finds the message about it.
 */
const setQuiet = ({ quiet, registry }: Parent): boolean =>
  registry.busy.length === 0 ? quiet.openUnsafe() : quiet.closeUnsafe()

const note = (child: Child, voice: AgentHistory.Voice, text: string) =>
  Effect.sync(() => {
    child.history = AgentHistory.add(child.history, voice, text)
  })

const find = (parent: Parent, id: string) =>
  Effect.suspend(() => {
    const { children } = parent.registry
    const child = children.get(id.trim())
    if (child !== undefined) return Effect.succeed(child)
    const knownIds = [...children.keys()].join(", ")
    return Effect.fail(
      failed(
        `there is no agent session ${id}; ${knownIds === "" ? "none was started" : `the sessions are ${knownIds}`}`
      )
    )
  })

/** An agent by its name or by the id of a started one. */
const agentOf = ({ agents, registry }: Parent, agentOrId: string): SpawnableAgent | undefined =>
  registry.children.get(agentOrId.trim())?.agent ?? agents.find(({ name }) => name === agentOrId.trim())

const stateOf = ({ agent, id, started, status, task }: Child, now: number): ChildState => ({
  session: id,
  agent: agent.name,
  task: firstLine(task),
  status: status._tag === "Ended" ? status.result.reason : status._tag === "Failed" ? "failed" : "running",
  seconds: seconds(status._tag === "Ended" ? status.result.duration : now - started),
  ...(status._tag === "Ended" ? { turns: status.result.turns } : {}),
  ...(status._tag === "Ended" && status.result.session !== undefined ? { log: status.result.session } : {})
})

const spawn = Effect.fn("Children.spawn")(function* (
  parent: Parent,
  name: string,
  task: string,
  context: AgentContextMode | undefined
) {
  const { agents, bounds } = parent
  const agent = agents.find((candidate) => candidate.name === name.trim())
  if (agent === undefined) {
    return yield* failed(
      `there is no agent ${name}; the agents are ${agents.map((candidate) => candidate.name).join(", ")}`
    )
  }
  if (task.trim() === "") return yield* failed(`the task for ${name} is empty; describe it in task`)
  if (bounds.depth < 1) return yield* failed("agents may not start others here; do the work yourself")
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const child = yield* place(parent, agent, task)
      const { id, scope } = child
      const running = yield* restore(agent.runner.start({ ...taskOf(child), context })).pipe(
        Scope.provide(scope),
        Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : forget(parent, child))),
        Effect.mapError(({ message }) => failed(`${name} could not be started: ${message}`))
      )
      child.status = { _tag: "Running", running }
      // Ends with the scope and then sends nothing: the recipients have ended too.
      yield* Effect.forkIn(
        Effect.flatMap(Effect.exit(running.result), (exit) => reportEnd(parent, child, running, exit)),
        scope,
        // A fiber that is interrupted before it began may never end.
        { startImmediately: true }
      )
      return id
    })
  )
})

/** Reserves a place for one more agent, atomically, so that two calls do not take the same one. */
const place = Effect.fnUntraced(function* (parent: Parent, agent: SpawnableAgent, task: string) {
  const { children } = parent.bounds
  const scope = yield* Scope.fork(parent.scope)
  const started = yield* Clock.currentTimeMillis
  const child = parent.registry.reserve({ agent, scope, started, task }, children)
  if (child !== undefined) {
    setQuiet(parent)
    return child
  }
  yield* Scope.close(scope, Exit.void)
  return yield* failed(`${children} agents are running, which is the maximum; wait for one of them with sessions_yield`)
})

/** The task as the runner gets it: activity and questions go to the call that waits for the agent, if any. */
const taskOf = (child: Child): Task => ({
  prompt: child.task,
  activity: Effect.fnUntraced(function* (activity) {
    const text = activityText(activity)
    if (text !== undefined) yield* note(child, "agent", text)
    if (child.waiter !== undefined) yield* child.waiter.activity(child.id, activity)
  }),
  waiting: (work) => Effect.suspend(() => (child.waiter === undefined ? work : child.waiter.waiting(work)))
})

const forget = (parent: Parent, { id, scope }: Child) =>
  Effect.suspend(() => {
    parent.registry.children.delete(id)
    setQuiet(parent)
    return Scope.close(scope, Exit.void)
  })

const reportEnd = Effect.fnUntraced(function* (
  parent: Parent,
  child: Child,
  running: Running,
  exit: Exit.Exit<AgentResult, AgentFailure>
) {
  const { mailbox, registry } = parent
  const { id } = child
  if (Exit.isSuccess(exit)) {
    const { value: result } = exit
    registry.end(child, { _tag: "Ended", running, result })
    yield* note(child, "agent", result.text)
    yield* note(child, "runtime", endNote(result))
    if (result.text.trim() !== announceSkip) yield* mailbox.put(resultMessage(id, result))
  } else {
    const message = causeText(exit.cause)
    registry.end(child, { _tag: "Failed", running, message })
    yield* note(child, "runtime", `It failed: ${message}`)
    yield* mailbox.put(failureMessage(id, message))
  }
  setQuiet(parent)
  yield* Effect.forEach(registry.expendable, (ended) => forget(parent, ended), { discard: true })
})

type ReplyExit = Exit.Exit<string, AgentFailure>

/**
 * The reply to one message. The caller is still waiting for it, the caller has left and it becomes a message, or it
 * has arrived.
 */
type Reply = "waiting" | "left" | { readonly exit: ReplyExit }

interface PendingReply {
  readonly state: Ref.Ref<Reply>
  readonly arrived: Deferred.Deferred<void>
}

/** Returns the reply if it has arrived. Otherwise it arrives later as a message. */
const leave = ({ state }: PendingReply) =>
  Ref.modify(state, (now): [ReplyExit | undefined, Reply] =>
    typeof now === "string" ? [undefined, "left"] : [now.exit, now]
  )

const send = Effect.fn("Children.send")(function* (
  parent: Parent,
  childId: string,
  message: string,
  patience: Duration.Duration,
  context: CallContext
): Effect.fn.Return<string, ToolFailure> {
  const child = yield* find(parent, childId)
  const { id, scope, status } = child
  if (status._tag === "Starting") return yield* failed(`${id} is still starting; send the message again in a moment`)
  if (message.trim() === replySkip) {
    child.exchange = 0
    return `The exchange with ${id} is over; nothing was sent.`
  }
  const pending: PendingReply = { state: yield* Ref.make<Reply>("waiting"), arrived: yield* Deferred.make<void>() }
  yield* note(child, "you", message)
  /** Once the message is sent, the agent receives the reply either here or as a message. */
  const begin = Effect.suspend(() => {
    child.due += 1
    setQuiet(parent)
    return Effect.forkIn(receiveReply(parent, child, status.running, message, pending), scope, {
      startImmediately: true
    })
  })
  if (!Duration.isGreaterThan(patience, Duration.zero)) {
    yield* Effect.uninterruptible(Effect.andThen(leave(pending), begin))
    return `Sent to ${id}. Its reply will arrive as a message.`
  }
  const exit = yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      child.waiter = context
      yield* begin
      return yield* restore(Effect.timeoutOption(Deferred.await(pending.arrived), patience)).pipe(
        Effect.andThen(leave(pending)),
        Effect.onInterrupt(() =>
          Effect.flatMap(leave(pending), (late) =>
            late === undefined ? Effect.void : announceReply(parent, child, late)
          )
        ),
        Effect.ensuring(
          Effect.sync(() => {
            child.waiter = undefined
          })
        )
      )
    })
  )
  if (exit === undefined) {
    return `${id} has not replied after ${Duration.toSeconds(patience)} s and is still working; its reply will arrive as a message.`
  }
  if (Exit.isFailure(exit)) return yield* failed(`${id} did not answer: ${causeText(exit.cause)}`)
  child.exchange = 0
  return exit.value.trim() === replySkip ? `${id} has no reply.` : exit.value
})

/** Sends a message to an agent and passes its reply to the waiting caller, or to the mailbox when the caller left. */
const receiveReply = Effect.fnUntraced(function* (
  parent: Parent,
  child: Child,
  running: Running,
  message: string,
  { arrived, state }: PendingReply
) {
  const exit = yield* Effect.exit(running.send(messageToChild(message)))
  yield* Exit.isSuccess(exit)
    ? note(child, "agent", exit.value)
    : note(child, "runtime", `No answer: ${causeText(exit.cause)}`)
  const isAwaited = yield* Ref.modify(state, (now): [boolean, Reply] =>
    now === "left" ? [false, now] : [true, { exit }]
  )
  yield* Effect.uninterruptible(
    Effect.suspend(() => {
      child.due -= 1
      return isAwaited ? Deferred.succeed(arrived, undefined) : announceReply(parent, child, exit)
    }).pipe(Effect.andThen(Effect.sync(() => setQuiet(parent))))
  )
})

/** Turns a reply without a waiting caller into a message, unless too many were exchanged already. */
const announceReply = Effect.fnUntraced(function* (
  { mailbox }: Parent,
  child: Child,
  exit: ReplyExit
): Effect.fn.Return<void> {
  const { id } = child
  if (Exit.isFailure(exit)) return yield* mailbox.put(unansweredMessage(id, causeText(exit.cause)))
  if (exit.value.trim() === replySkip) {
    child.exchange = 0
    return
  }
  const number = countReply(child)
  if (number !== undefined) yield* mailbox.put(replyMessage(id, number, exit.value))
})
