import { Cause, Clock, Deferred, Duration, Effect, Exit, Latch, Option, Ref, Schema, Scope } from "effect"
import type { Activity } from "../../domain/chat/ChatEvent.ts"
import * as AgentHistory from "../../domain/conversation/AgentHistory.ts"
import { firstUnits } from "../../domain/text/Bytes.ts"
import { runtimeMark } from "../../domain/text/RuntimeMark.ts"
import { untrustedBlock, untrustedLine } from "../../domain/text/UntrustedText.ts"
import { type CallContext, type Question, ToolFailure } from "../tools/Tool.ts"
import { AgentBounds, type AgentFailure, type AgentResult, type AgentRunner, type Running } from "./AgentRunner.ts"
import type { Mailbox } from "./Mailbox.ts"

/**
 * Agents that run beside the agent that started them, and messages in both directions, as in OpenClaw. Starting an agent returns its name at once;
 * its result arrives as a message between two turns; it accepts messages while it works and afterwards.
 *
 * One file: starting, messaging and ending an agent change one registry, and each change has to see the others.
 */

/** An agent that may be started by its name. */
export interface SpawnableAgent {
  readonly name: string
  readonly description: string
  readonly runner: AgentRunner
  /** The approval question before a message is sent to it. Absent: none. */
  readonly question?: ((message: string) => Question) | undefined
}

/** The status of an agent as the runtime observed it, whatever the agent itself says. */
type Status =
  | { readonly _tag: "Starting" }
  | { readonly _tag: "Running"; readonly running: Running }
  | { readonly _tag: "Ended"; readonly running: Running; readonly result: AgentResult }
  | { readonly _tag: "Failed"; readonly running: Running; readonly message: string }

interface Child {
  /** The agent's number in starting order. */
  readonly number: number
  readonly id: string
  readonly agent: SpawnableAgent
  readonly task: string
  /** Start time in milliseconds since the epoch. */
  readonly started: number
  readonly scope: Scope.Closeable
  readonly status: Status
  readonly history: AgentHistory.AgentHistory
  /** The number of messages it still owes: the result of its task, and a reply to each message sent to it. */
  readonly due: number
  /** How many replies in a row arrived as messages of their own, each to an answer to the one before. */
  readonly exchange: number
  /** The call that waits for the agent, if any; the agent's activity is shown there. */
  readonly waiter: CallContext | undefined
}

interface Registry {
  readonly count: number
  /** Agents that have ended come after the others, in the order in which they ended. */
  readonly children: ReadonlyMap<string, Child>
}

/** What an agent needs to start others. */
export interface ChildrenOptions {
  readonly agents: ReadonlyArray<SpawnableAgent>
  /** Receives the results. */
  readonly mailbox: Mailbox
  /** How many agents stand above this one. 0: the agent that talks to the user. */
  readonly depth?: number | undefined
  /** Receives the activities of the agents as they happen. */
  readonly activity?: ((id: string, agent: string, activity: Activity) => Effect.Effect<void>) | undefined
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
  readonly spawn: (agent: string, task: string) => Effect.Effect<string, ToolFailure>
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
  /** Waits until no agent is working. Their messages have been delivered to the mailbox by then. */
  readonly quiet: Effect.Effect<void>
  /** The running agents, as a message to their parent. Repeated after a compression, which may have dropped it. */
  readonly alive: Effect.Effect<string | undefined>
  /** The approval question before a message is sent, by the name of an agent or the id of a started one. */
  readonly question: (agentOrId: string, message: string) => Effect.Effect<Question | undefined>
}

/** Replies in a row that arrive as messages. Later ones are only stored, so that two agents do not talk forever. As in OpenClaw. */
const maxExchangeReplies = 5
/** The answer of an agent that has nothing to say, as in OpenClaw. */
const replySkip = "REPLY_SKIP"
const announceSkip = "ANNOUNCE_SKIP"
/** Characters of a result in a message: the same limit as for a tool result. */
const maxMessageChars = 40_000
/** How many ended agents still accept messages. */
const maxEndedAgents = 64

/** Makes the failure of a call of these tools. */
export const failed = (message: string): ToolFailure => new ToolFailure({ message })

/** The first line of a text, shortened to 120 characters. */
export const firstLine = (text: string): string => {
  const [line = ""] = text.trim().split("\n", 1)
  return line.length > 120 ? `${firstUnits(line, 119)}…` : line
}

/** Quotes an agent's text in a message of the runtime. Every line is marked, so that none passes for the runtime's. */
const quote = (text: string, id: string): string => {
  const shown = firstUnits(text, maxMessageChars)
  const quoted = untrustedBlock(shown).replace(/^/gm, "> ")
  return shown.length === text.length
    ? quoted
    : `${quoted}\n(${text.length - shown.length} more characters; ask ${id} for the rest with sessions_send)`
}

const outcomes: Record<AgentResult["reason"], string> = {
  GOAL: "reached its goal",
  ERROR: "stopped at an error",
  TIMEOUT: "ran out of time",
  MAX_TURNS: "used up its turns",
  ABORTED: "was stopped",
  ERROR_NO_COMPLETE_TASK_CALL: "stopped without saying that it was done"
}

const seconds = (millis: number): number => Math.round(millis / 100) / 10

const statsOf = ({ duration, session, turns }: AgentResult): string =>
  `${turns} ${turns === 1 ? "turn" : "turns"}, ${seconds(duration)} s${session === undefined ? "" : `, session ${session}`}`

const activityText = (activity: Activity): string | undefined => {
  switch (activity._tag) {
    case "Thought":
      return `thinks: ${activity.text}`
    case "CallStarted":
      return `calls ${activity.title}`
    case "CallEnded":
      return activity.status === "success" ? undefined : `${activity.name}: ${activity.status}`
    case "Failed":
      return `failed on the way: ${activity.message}`
  }
}

/** The state of the reply to one message: the caller still waits, the caller left and the reply becomes a message, or it has arrived. */
type Reply = "waiting" | "left" | { readonly exit: Exit.Exit<string, AgentFailure> }

const causeText = (cause: Cause.Cause<AgentFailure>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? "it was stopped" : "it broke off in a way that was not foreseen"),
    onSome: ({ message }) => message
  })

const isAtWork = ({ status }: Child): boolean => status._tag === "Starting" || status._tag === "Running"

/** The agents working on their task. They count against the limit of running agents. */
const childrenAtWork = ({ children }: Registry): Array<Child> => [...children.values()].filter(isAtWork)

/** The agents that still owe a message. */
const busyChildren = ({ children }: Registry): Array<Child> => [...children.values()].filter(({ due }) => due > 0)

/** Makes the registry of the agents that one agent starts. Closing the scope ends them all. */
export const makeChildren = Effect.fnUntraced(function* ({
  activity: tell,
  agents,
  depth = 0,
  mailbox
}: ChildrenOptions): Effect.fn.Return<Children, never, Scope.Scope> {
  const all = yield* Scope.Scope
  const bounds = yield* AgentBounds
  const quiet = yield* Latch.make(true)
  let registry: Registry = { count: 0, children: new Map() }
  const current = Effect.sync(() => registry)
  const modify = <A>(f: (before: Registry) => readonly [A, Registry]): Effect.Effect<A> =>
    Effect.sync(() => {
      const [made, next] = f(registry)
      registry = next
      if (busyChildren(next).length > 0) quiet.closeUnsafe()
      return made
    })
  /** Runs after each end, so that a waiting caller finds the message of that end. */
  const hush = Effect.sync(() => {
    if (busyChildren(registry).length === 0) quiet.openUnsafe()
  })

  const change = (id: string, f: (child: Child) => Child) =>
    modify((before) => {
      const child = before.children.get(id)
      if (child === undefined) return [undefined, before]
      return [undefined, { ...before, children: new Map(before.children).set(id, f(child)) }]
    })

  const owes = (id: string) => change(id, (child) => ({ ...child, due: child.due + 1 }))
  const settled = (id: string) => change(id, (child) => ({ ...child, due: child.due - 1 }))

  const note = (id: string, voice: AgentHistory.Voice, text: string) =>
    change(id, (child) => ({ ...child, history: AgentHistory.add(child.history, voice, text) }))

  const find = (id: string) =>
    Effect.flatMap(current, ({ children }) => {
      const child = children.get(id.trim())
      if (child !== undefined) return Effect.succeed(child)
      const knownIds = [...children.keys()].join(", ")
      return Effect.fail(
        failed(`there is no agent session ${id}; ${knownIds === "" ? "none was started" : `there are ${knownIds}`}`)
      )
    })

  /** Reserves a place for one more agent, atomically, so that two calls do not take the same one. */
  const reserve = Effect.fnUntraced(function* (agent: SpawnableAgent, task: string) {
    const scope = yield* Scope.fork(all)
    const started = yield* Clock.currentTimeMillis
    const child = yield* modify((before): [Child | undefined, Registry] => {
      if (childrenAtWork(before).length >= bounds.children) return [undefined, before]
      const count = before.count + 1
      const made: Child = {
        number: count,
        id: `${agent.name}-${count}`,
        agent,
        task,
        started,
        scope,
        status: { _tag: "Starting" },
        history: AgentHistory.add(AgentHistory.empty, "you", task),
        due: 1,
        exchange: 0,
        waiter: undefined
      }
      return [made, { count, children: new Map(before.children).set(made.id, made) }]
    })
    if (child === undefined) {
      yield* Scope.close(scope, Exit.void)
      return yield* failed(
        `${bounds.children} agents are at work, and no more may be; wait for one of them with sessions_yield`
      )
    }
    return child
  })

  const forget = ({ id, scope }: Child) =>
    modify((before) => {
      const children = new Map(before.children)
      children.delete(id)
      return [undefined, { ...before, children }]
    }).pipe(Effect.andThen(hush), Effect.andThen(Scope.close(scope, Exit.void)))

  /** Removes the agents that ended first, among those that ended and owe no reply. */
  const sweep = Effect.flatMap(current, ({ children }) => {
    const ended = [...children.values()].filter((child) => !isAtWork(child) && child.due === 0)
    return Effect.forEach(ended.slice(0, Math.max(0, ended.length - maxEndedAgents)), forget, { discard: true })
  })

  const end = Effect.fnUntraced(function* (id: string, running: Running, exit: Exit.Exit<AgentResult, AgentFailure>) {
    const status: Status = Exit.isSuccess(exit)
      ? { _tag: "Ended", running, result: exit.value }
      : { _tag: "Failed", running, message: causeText(exit.cause) }
    yield* modify((before) => {
      const child = before.children.get(id)
      if (child === undefined) return [undefined, before]
      const children = new Map(before.children)
      children.delete(id)
      return [undefined, { ...before, children: children.set(id, { ...child, status, due: child.due - 1 }) }]
    })
    if (status._tag === "Ended") {
      yield* note(id, "agent", status.result.text)
      yield* note(id, "runtime", `It ${outcomes[status.result.reason]} (${statsOf(status.result)}).`)
      if (status.result.text.trim() !== announceSkip) {
        yield* mailbox.put(
          `${runtimeMark} The agent ${id} that you started ${outcomes[status.result.reason]} (${status.result.reason}; ${statsOf(status.result)}). What it says, in its own words:\n\n${quote(status.result.text, id)}`
        )
      }
    } else if (status._tag === "Failed") {
      yield* note(id, "runtime", `It failed: ${status.message}`)
      yield* mailbox.put(
        `${runtimeMark} The agent ${id} that you started failed. Why, as far as is known:\n\n${quote(status.message, id)}`
      )
    }
    yield* hush
    yield* sweep
  })

  const spawn = Effect.fn("Children.spawn")(function* (
    name: string,
    task: string
  ): Effect.fn.Return<string, ToolFailure> {
    const agent = agents.find((candidate) => candidate.name === name.trim())
    if (agent === undefined) {
      return yield* failed(
        `there is no agent ${name}; there are ${agents.map((candidate) => candidate.name).join(", ")}`
      )
    }
    if (task.trim() === "") return yield* failed(`${name} was given nothing to do; say it in task`)
    if (depth >= bounds.depth) {
      return yield* failed(`an agent this deep (${depth}) may start no others; do the work yourself`)
    }
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const child = yield* reserve(agent, task)
        const { id, scope } = child
        const waiterOf = Effect.map(current, ({ children }) => children.get(id)?.waiter)
        const running = yield* restore(
          agent.runner.start({
            prompt: task,
            activity: (activity) =>
              Effect.gen(function* () {
                const text = activityText(activity)
                if (text !== undefined) yield* note(id, "agent", text)
                const waiter = yield* waiterOf
                if (waiter !== undefined) yield* waiter.activity(id, activity)
                else if (tell !== undefined) yield* tell(id, agent.name, activity)
              }),
            waiting: (work) =>
              Effect.flatMap(waiterOf, (waiter) => (waiter === undefined ? work : waiter.waiting(work)))
          })
        ).pipe(
          Scope.provide(scope),
          Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : forget(child))),
          Effect.mapError(({ message }) => failed(`${name} could not be started: ${message}`))
        )
        yield* change(id, (started) => ({ ...started, status: { _tag: "Running", running } }))
        // Ends with the scope and then sends nothing, because the recipients have ended too.
        yield* Effect.forkIn(
          Effect.interruptible(Effect.flatMap(Effect.exit(running.result), (exit) => end(id, running, exit))),
          scope,
          // A fiber that is interrupted before it began may never end.
          { startImmediately: true }
        )
        return id
      })
    )
  })

  /** A reply without a waiting caller becomes a message, unless too many went back and forth already. */
  const announceReply = Effect.fnUntraced(function* (id: string, exit: Exit.Exit<string, AgentFailure>) {
    if (Exit.isFailure(exit)) {
      return yield* mailbox.put(
        `${runtimeMark} Your message to the agent ${id} was not answered. Why, as far as is known:\n\n${quote(causeText(exit.cause), id)}`
      )
    }
    if (exit.value.trim() === replySkip) return yield* change(id, (child) => ({ ...child, exchange: 0 }))
    const turn = yield* modify((before): [number, Registry] => {
      const child = before.children.get(id)
      if (child === undefined) return [maxExchangeReplies + 1, before]
      const exchange = child.exchange + 1
      const kept = { ...child, exchange: exchange > maxExchangeReplies ? 0 : exchange }
      return [exchange, { ...before, children: new Map(before.children).set(id, kept) }]
    })
    if (turn > maxExchangeReplies) return
    const last =
      turn === maxExchangeReplies
        ? " This is the last of these that you are told; later ones are in sessions_history."
        : ""
    yield* mailbox.put(
      `${runtimeMark} The agent ${id} replies to your message (reply ${turn} of ${maxExchangeReplies}; say ${replySkip} to it to end the exchange).${last} Its words:\n\n${quote(exit.value, id)}`
    )
  })

  const noteReply = (id: string, exit: Exit.Exit<string, AgentFailure>) =>
    Exit.isSuccess(exit) ? note(id, "agent", exit.value) : note(id, "runtime", `No answer: ${causeText(exit.cause)}`)

  const send = Effect.fn("Children.send")(function* (
    childId: string,
    message: string,
    patience: Duration.Duration,
    context: CallContext
  ): Effect.fn.Return<string, ToolFailure> {
    const { id, scope, status } = yield* find(childId)
    if (status._tag === "Starting") return yield* failed(`${id} is being started; say it again in a moment`)
    if (message.trim() === replySkip) {
      yield* change(id, (child) => ({ ...child, exchange: 0 }))
      return `The exchange with ${id} is over; nothing was sent.`
    }
    const reply = yield* Ref.make<Reply>("waiting")
    const there = yield* Deferred.make<void>()
    const asks = Duration.isGreaterThan(patience, Duration.zero)
    /** Returns the reply if it has arrived; otherwise it will come as a message. */
    const leave = Ref.modify(reply, (state): [Exit.Exit<string, AgentFailure> | undefined, Reply] =>
      typeof state === "string" ? [undefined, "left"] : [state.exit, state]
    )
    yield* note(id, "you", message)
    const text = `${runtimeMark} A message from the agent that started you, not from the user:\n\n${untrustedBlock(message)}`
    const ask = Effect.gen(function* () {
      const exit = yield* Effect.exit(status.running.send(text))
      yield* noteReply(id, exit)
      const isAwaited = yield* Ref.modify(reply, (state): [boolean, Reply] =>
        state === "left" ? [false, state] : [true, { exit }]
      )
      yield* Effect.uninterruptible(
        settled(id).pipe(
          Effect.andThen(isAwaited ? Deferred.succeed(there, undefined) : announceReply(id, exit)),
          Effect.andThen(hush)
        )
      )
    })
    /** Once the message is sent, the reply reaches the agent in one way or the other. */
    const begin = Effect.andThen(owes(id), Effect.forkIn(Effect.interruptible(ask), scope, { startImmediately: true }))
    if (!asks) {
      yield* Effect.uninterruptible(Effect.andThen(leave, begin))
      return `Sent to ${id}. Its reply comes as a message.`
    }
    const exit = yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        yield* change(id, (child) => ({ ...child, waiter: context }))
        yield* begin
        return yield* restore(Effect.timeoutOption(Deferred.await(there), patience)).pipe(
          Effect.andThen(leave),
          Effect.onInterrupt(() =>
            Effect.flatMap(leave, (late) => (late === undefined ? Effect.void : announceReply(id, late)))
          ),
          Effect.ensuring(change(id, (child) => ({ ...child, waiter: undefined })))
        )
      })
    )
    if (exit === undefined) {
      return `${id} has not replied after ${Duration.toSeconds(patience)} s and works on; its reply comes as a message.`
    }
    if (Exit.isFailure(exit)) return yield* failed(`${id} did not answer: ${causeText(exit.cause)}`)
    yield* change(id, (child) => ({ ...child, exchange: 0 }))
    return exit.value.trim() === replySkip ? `${id} has nothing to say to that.` : exit.value
  })

  const stateOf = ({ agent, id, started, status, task }: Child, now: number): ChildState => ({
    session: id,
    agent: agent.name,
    task: firstLine(task),
    status: status._tag === "Ended" ? status.result.reason : status._tag === "Failed" ? "failed" : "running",
    seconds: seconds(status._tag === "Ended" ? status.result.duration : now - started),
    ...(status._tag === "Ended" ? { turns: status.result.turns } : {}),
    ...(status._tag === "Ended" && status.result.session !== undefined ? { log: status.result.session } : {})
  })

  return {
    agents,
    spawn,
    send,
    list: Effect.gen(function* () {
      const { children } = yield* current
      const now = yield* Clock.currentTimeMillis
      return [...children.values()].sort((a, b) => a.number - b.number).map((child) => stateOf(child, now))
    }),
    history: Effect.fn("Children.history")(function* (id: string): Effect.fn.Return<string, ToolFailure> {
      const { history, id: childId } = yield* find(id)
      const voices = { you: "You", agent: childId, runtime: "The runtime" }
      const lines = history.blocks.map(
        ({ text, voice }) => `${voices[voice]}:\n${untrustedBlock(text).replace(/^/gm, "> ")}`
      )
      const gap = history.dropped === 0 ? [] : [`(${history.dropped} older entries are left out)`]
      return [...lines.slice(0, 1), ...gap, ...lines.slice(1)].join("\n\n")
    }),
    isBusy: Effect.map(current, (state) => busyChildren(state).length > 0),
    quiet: quiet.await,
    alive: Effect.map(current, (state) => {
      const living = busyChildren(state).sort((a, b) => a.number - b.number)
      return living.length === 0
        ? undefined
        : `${runtimeMark} Agents that you started and that are still at work; each tells you when it is done, and sessions_send reaches it:\n${living
            .map(({ id, task }) => `- ${id}: ${untrustedLine(firstLine(task))}`)
            .join("\n")}`
    }),
    question: (agentOrId, message) =>
      Effect.map(current, ({ children }) => {
        const agent = children.get(agentOrId.trim())?.agent ?? agents.find(({ name }) => name === agentOrId.trim())
        return agent?.question?.(message)
      })
  }
})
