/**
 * Agents that run in the background of the agent that started them, and exchange messages with it, as in OpenClaw.
 * Starting an agent returns its id at once. Its result arrives as a message between two turns. It accepts messages
 * while it works and afterwards.
 */

import { Clock, Deferred, Duration, Effect, Exit, Schema, Scope, Stream, SubscriptionRef } from "effect"
import type { AgentResult } from "../../domain/agent/AgentResult.ts"
import * as Children from "../../domain/agent/Children.ts"
import type { Voice } from "../../domain/conversation/AgentHistory.ts"
import { type CallContext, type Question, ToolFailure } from "../tools/Tool.ts"
import {
  AgentBounds,
  type AgentContextMode,
  type AgentFailure,
  type AgentLimits,
  leavingQuestion,
  type OfferedAgent,
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
import type { Mailbox } from "./Mailbox.ts"

/** What an agent needs to start others. */
interface ChildrenOptions {
  readonly agents: ReadonlyArray<OfferedAgent>
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

/** Starts agents in the background, and passes messages to and from them. */
export interface AgentMessages {
  readonly agents: ReadonlyArray<OfferedAgent>
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
  /** All started agents that are not forgotten, oldest first. */
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

/** How the parent reaches an agent that it started. */
interface Link {
  readonly agent: OfferedAgent
  readonly scope: Scope.Closeable
  /** Undefined: it is still being started. */
  readonly running: Running | undefined
  /** The call that waits for the agent, if any; the agent's activity is shown there. */
  readonly waiter: CallContext | undefined
}

type Child = Children.Child<Link>

/** An agent that starts others. */
interface Parent extends ChildrenOptions {
  /** The scope of all started agents. */
  readonly scope: Scope.Scope
  readonly bounds: AgentLimits
  readonly children: SubscriptionRef.SubscriptionRef<Children.Children<Link>>
}

/** Makes the functions by which one agent starts others. Closing the scope ends them all. */
export const make = Effect.fnUntraced(function* (
  options: ChildrenOptions
): Effect.fn.Return<AgentMessages, never, Scope.Scope> {
  const children = yield* SubscriptionRef.make<Children.Children<Link>>(Children.none)
  const parent: Parent = { ...options, scope: yield* Scope.Scope, bounds: yield* AgentBounds, children }
  const busy = Effect.map(SubscriptionRef.get(children), Children.busy)
  return {
    agents: parent.agents,
    spawn: (name, task, context) => spawn(parent, name, task, context),
    canFork: options.canFork === true,
    send: (id, message, patience, context) => send(parent, id, message, patience, context),
    list: Effect.map(Effect.all([SubscriptionRef.get(children), Clock.currentTimeMillis]), ([all, now]) =>
      Children.inOrder(all).map((child) => stateOf(child, now))
    ),
    history: (id) => Effect.map(find(parent, id), historyText),
    isBusy: Effect.map(busy, (owing) => owing.length > 0),
    quiet: SubscriptionRef.changes(children).pipe(
      Stream.takeUntil((all) => Children.busy(all).length === 0),
      Stream.runDrain
    ),
    alive: Effect.map(busy, reminder),
    question: (agentOrId, message) =>
      Effect.map(SubscriptionRef.get(children), (all) => {
        const { name, place } = agentOf(parent, all, agentOrId.trim()) ?? { name: agentOrId, place: undefined }
        return leavingQuestion([{ place, text: message }], `messages to the agent ${name}`)
      })
  }
})

const change = ({ children }: Parent, id: string, how: (child: Child) => Partial<Child>) =>
  SubscriptionRef.update(children, (all) => Children.change(all, id, how))

const link = (parent: Parent, id: string, to: Partial<Link>) =>
  change(parent, id, (child) => ({ link: { ...child.link, ...to } }))

const note = ({ children }: Parent, id: string, voice: Voice, text: string) =>
  SubscriptionRef.update(children, (all) => Children.addToHistory(all, id, voice, text))

const addDue = ({ children }: Parent, id: string, by: 1 | -1) =>
  SubscriptionRef.update(children, (all) => Children.addDue(all, id, by))

const find = Effect.fnUntraced(function* ({ children }: Parent, id: string) {
  const now = yield* SubscriptionRef.get(children)
  const child = Children.find(now, id.trim())
  if (child !== undefined) return child
  const knownIds = now.all.map((each) => each.id).join(", ")
  return yield* failed(
    `there is no agent session ${id}; ${knownIds === "" ? "none was started" : `the sessions are ${knownIds}`}`
  )
})

/** An agent by its name or by the id of a started one. */
const agentOf = ({ agents }: Parent, all: Children.Children<Link>, agentOrId: string): OfferedAgent | undefined =>
  Children.find(all, agentOrId)?.link.agent ?? agents.find(({ name }) => name === agentOrId)

const stateOf = ({ end, id, name, started, task }: Child, now: number): ChildState => {
  const about = { session: id, agent: name, task: firstLine(task) }
  if (end === undefined || end === "failed") {
    return { ...about, status: end ?? "running", seconds: seconds(now - started) }
  }
  const { duration, reason, session, turns } = end
  return {
    ...about,
    status: reason,
    seconds: seconds(duration),
    turns,
    ...(session === undefined ? {} : { log: session })
  }
}

const spawn = Effect.fn("AgentMessages.spawn")(function* (
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
      const child = yield* reserve(parent, agent, task)
      const { scope } = child.link
      const running = yield* restore(agent.runner.start({ ...taskOf(parent, child), context })).pipe(
        Scope.provide(scope),
        Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : forget(parent, child))),
        Effect.mapError(({ message }) => failed(`${name} could not be started: ${message}`))
      )
      yield* link(parent, child.id, { running })
      // Ends with the scope and then sends nothing: the recipients have ended too.
      yield* Effect.forkIn(
        Effect.flatMap(Effect.exit(running.result), (exit) => reportEnd(parent, child.id, exit)),
        scope,
        // A fiber that is interrupted before it began may never end.
        { startImmediately: true }
      )
      return child.id
    })
  )
})

/** Reserves a place for one more agent, atomically, so that two calls do not take the same one. */
const reserve = Effect.fnUntraced(function* (parent: Parent, agent: OfferedAgent, task: string) {
  const { bounds, children } = parent
  const scope = yield* Scope.fork(parent.scope)
  const started = yield* Clock.currentTimeMillis
  const start = { name: agent.name, task, started, link: { agent, scope, running: undefined, waiter: undefined } }
  const child = yield* SubscriptionRef.modify(children, (all) => Children.reserve<Link>(all, start, bounds.children))
  if (child !== undefined) return child
  yield* Scope.close(scope, Exit.void)
  return yield* failed(
    `${bounds.children} agents are running, which is the maximum; wait for one of them with sessions_yield`
  )
})

/** The task as the runner gets it: activity and questions go to the call that waits for the agent, if any. */
const taskOf = (parent: Parent, { id, task }: Child): Task => {
  const waiter = Effect.map(SubscriptionRef.get(parent.children), (all) => Children.find(all, id)?.link.waiter)
  return {
    prompt: task,
    activity: Effect.fnUntraced(function* (activity) {
      const text = activityText(activity)
      if (text !== undefined) yield* note(parent, id, "agent", text)
      const call = yield* waiter
      if (call !== undefined) yield* call.activity(id, activity)
    }),
    waiting: (work) => Effect.flatMap(waiter, (call) => (call === undefined ? work : call.waiting(work)))
  }
}

const forget = ({ children }: Parent, { id, link: { scope } }: Child) =>
  Effect.andThen(
    SubscriptionRef.update(children, (all) => Children.remove(all, id)),
    Scope.close(scope, Exit.void)
  )

const reportEnd = Effect.fnUntraced(function* (parent: Parent, id: string, exit: Exit.Exit<AgentResult, AgentFailure>) {
  const { children, mailbox } = parent
  const end = Exit.isSuccess(exit) ? exit.value : "failed"
  yield* SubscriptionRef.update(children, (all) => Children.setEnd(all, id, end))
  if (Exit.isSuccess(exit)) {
    const { value: result } = exit
    yield* note(parent, id, "agent", result.text)
    yield* note(parent, id, "runtime", endNote(result))
    if (result.text.trim() !== announceSkip) yield* mailbox.put(resultMessage(id, result))
  } else {
    const message = causeText(exit.cause)
    yield* note(parent, id, "runtime", `It failed: ${message}`)
    yield* mailbox.put(failureMessage(id, message))
  }
  // Last, so that a caller who waits until all is quiet finds the message.
  yield* addDue(parent, id, -1)
  const expendable = Children.expendable(yield* SubscriptionRef.get(children))
  yield* Effect.forEach(expendable, (child) => forget(parent, child), { discard: true })
})

type ReplyExit = Exit.Exit<string, AgentFailure>

/** The reply to one message, for the caller who waits for it; `left` when the caller went away first. */
type PendingReply = Deferred.Deferred<ReplyExit | "left">

/** Stops to wait. Returns the reply if it has arrived; otherwise it arrives later as a message. */
const leave = (reply: PendingReply) =>
  Effect.andThen(
    Deferred.succeed(reply, "left"),
    Effect.map(Deferred.await(reply), (exit) => (exit === "left" ? undefined : exit))
  )

const send = Effect.fn("AgentMessages.send")(function* (
  parent: Parent,
  childId: string,
  message: string,
  patience: Duration.Duration,
  context: CallContext
): Effect.fn.Return<string, ToolFailure> {
  const { id, link: reached } = yield* find(parent, childId)
  const { running, scope } = reached
  if (running === undefined) return yield* failed(`${id} is still starting; send the message again in a moment`)
  const endExchange = change(parent, id, () => ({ exchange: 0 }))
  if (message.trim() === replySkip) {
    return yield* Effect.as(endExchange, `The exchange with ${id} is over; nothing was sent.`)
  }
  const reply: PendingReply = yield* Deferred.make<ReplyExit | "left">()
  yield* note(parent, id, "you", message)
  /** Once the message is sent, the parent receives the reply either here or as a message. */
  const begin = Effect.andThen(
    addDue(parent, id, 1),
    Effect.forkIn(receiveReply(parent, id, running.send(messageToChild(message)), reply), scope, {
      startImmediately: true
    })
  )
  if (!Duration.isGreaterThan(patience, Duration.zero)) {
    yield* Effect.uninterruptible(Effect.andThen(leave(reply), begin))
    return `Sent to ${id}. Its reply will arrive as a message.`
  }
  const exit = yield* Effect.uninterruptibleMask((restore) =>
    link(parent, id, { waiter: context }).pipe(
      Effect.andThen(begin),
      Effect.andThen(restore(Effect.timeoutOption(Deferred.await(reply), patience))),
      Effect.andThen(leave(reply)),
      Effect.onInterrupt(() =>
        Effect.flatMap(leave(reply), (late) => (late === undefined ? Effect.void : announceReply(parent, id, late)))
      ),
      Effect.ensuring(link(parent, id, { waiter: undefined }))
    )
  )
  if (exit === undefined) {
    return `${id} has not replied after ${Duration.toSeconds(patience)} s and is still working; its reply will arrive as a message.`
  }
  if (Exit.isFailure(exit)) return yield* failed(`${id} did not answer: ${causeText(exit.cause)}`)
  yield* endExchange
  return exit.value.trim() === replySkip ? `${id} has no reply.` : exit.value
})

/** Waits for the reply of an agent and passes it to the waiting caller, or to the mailbox when the caller left. */
const receiveReply = Effect.fnUntraced(function* (
  parent: Parent,
  id: string,
  answer: Effect.Effect<string, AgentFailure>,
  reply: PendingReply
) {
  const exit = yield* Effect.exit(answer)
  yield* Exit.isSuccess(exit)
    ? note(parent, id, "agent", exit.value)
    : note(parent, id, "runtime", `No answer: ${causeText(exit.cause)}`)
  yield* Effect.uninterruptible(
    Effect.flatMap(Deferred.succeed(reply, exit), (isAwaited) =>
      isAwaited ? Effect.void : announceReply(parent, id, exit)
    ).pipe(Effect.andThen(addDue(parent, id, -1)))
  )
})

/** Turns a reply without a waiting caller into a message, unless too many were exchanged already. */
const announceReply = Effect.fnUntraced(function* (
  parent: Parent,
  id: string,
  exit: ReplyExit
): Effect.fn.Return<void> {
  const { children, mailbox } = parent
  if (Exit.isFailure(exit)) return yield* mailbox.put(unansweredMessage(id, causeText(exit.cause)))
  if (exit.value.trim() === replySkip) return yield* change(parent, id, () => ({ exchange: 0 }))
  const number = yield* SubscriptionRef.modify(children, (all) => Children.countReply(all, id))
  if (number !== undefined) yield* mailbox.put(replyMessage(id, number, exit.value))
})
