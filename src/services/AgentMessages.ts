import { Cause, Clock, Deferred, Duration, Effect, Exit, Latch, Option, Ref, Schema, Scope } from "effect"
import * as AgentHistory from "../domain/AgentHistory.ts"
import { firstUnits } from "../domain/Bytes.ts"
import type { Activity } from "../domain/ChatEvent.ts"
import { foreignBlock, foreignLine } from "../domain/Foreign.ts"
import { runtimeMark } from "../domain/RuntimeMark.ts"
import { words } from "../domain/ToolResult.ts"
import { AgentBounds, type AgentFailure, type AgentResult, type AgentRunner, type Running } from "./AgentRunner.ts"
import type { Mailbox } from "./Mailbox.ts"
import { type CallContext, make as makeTool, type Question, type Tool, ToolFailure } from "./Tool.ts"

/**
 * Agents that work beside the one that started them, and messages both ways (pi-openclaw B12): starting one gives its name at
 * once, its result comes as a message between two turns, and it can be talked to while it works and afterwards.
 */

/** An agent that may be started by its name. */
export interface Spawnable {
  readonly name: string
  readonly description: string
  readonly runner: AgentRunner
  /** What a person is asked before something is said to it. Absent: nothing. */
  readonly question?: ((message: string) => Question) | undefined
}

/** What becomes of an agent; from the runtime, whatever the agent says of itself. */
type Status =
  | { readonly _tag: "Starting" }
  | { readonly _tag: "Running"; readonly running: Running }
  | { readonly _tag: "Ended"; readonly running: Running; readonly result: AgentResult }
  | { readonly _tag: "Failed"; readonly running: Running; readonly message: string }

interface Child {
  /** Which of all that were started. */
  readonly number: number
  readonly id: string
  readonly agent: Spawnable
  readonly task: string
  /** Milliseconds since the epoch. */
  readonly started: number
  readonly scope: Scope.Closeable
  readonly status: Status
  readonly history: AgentHistory.AgentHistory
  /** What it still has to say: the result of its task, and a reply to each message that was said to it. */
  readonly due: number
  /** How many replies in a row came as messages of their own, each to an answer to the one before. */
  readonly exchange: number
  /** The call that waits for it, if one does: what it does is told there. */
  readonly waiter: CallContext | undefined
}

interface Registry {
  readonly count: number
  /** Those that ended stand behind the others, the one that ended last at the end. */
  readonly children: ReadonlyMap<string, Child>
}

/** What an agent needs to start others. */
export interface ChildrenOptions {
  readonly agents: ReadonlyArray<Spawnable>
  /** Where the results go. */
  readonly mailbox: Mailbox
  /** How many agents stand above this one: 0 for the one a person talks to. */
  readonly depth?: number | undefined
  /** Is told what they do, as they do it. */
  readonly activity?: ((id: string, agent: string, activity: Activity) => Effect.Effect<void>) | undefined
}

/** What is known of one of them. */
export const ChildState = Schema.Struct({
  session: Schema.String,
  agent: Schema.String,
  task: Schema.String,
  /** `running`, `failed`, or why it ended. */
  status: Schema.String,
  /** Seconds since it was started, or that it took. */
  seconds: Schema.Finite,
  turns: Schema.optionalKey(Schema.Natural),
  /** The conversation that holds its work, where one is kept. */
  log: Schema.optionalKey(Schema.String)
})
export type ChildState = typeof ChildState.Type

/** The agents that one agent started. */
export interface Children {
  readonly agents: ReadonlyArray<Spawnable>
  /** Starts one and gives the name by which it is talked to. */
  readonly spawn: (agent: string, task: string) => Effect.Effect<string, ToolFailure>
  /** Says something to one; its reply, unless that takes longer than `patience`: then the reply comes as a message. */
  readonly send: (
    id: string,
    message: string,
    patience: Duration.Duration,
    context: CallContext
  ) => Effect.Effect<string, ToolFailure>
  /** All that were started and are still known, oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<ChildState>>
  /** What was said by and to one of them, without well-known secrets; a failure where there is none of this id. */
  readonly history: (id: string) => Effect.Effect<string, ToolFailure>
  /** Whether one is at work, on its task or on a reply. */
  readonly isBusy: Effect.Effect<boolean>
  /** Waits until none is. What they had to say as messages has been said by then. */
  readonly quiet: Effect.Effect<void>
  /** Those at work, as a message to the agent that started them: said again after a compression, which may have dropped them. */
  readonly alive: Effect.Effect<string | undefined>
  /** What is asked before something is said to an agent, or to the one that a child is. */
  readonly question: (agentOrId: string, message: string) => Effect.Effect<Question | undefined>
}

/** Replies that come unasked before they are only kept (pi-openclaw B12). */
const longestExchange = 5
/** What an agent answers with when nothing is to be said (pi-openclaw B12). */
const replySkip = "REPLY_SKIP"
const announceSkip = "ANNOUNCE_SKIP"
/** Characters of a result as a message: as many as of a tool's result. */
const longestLetter = 40_000
/** How many ended agents can still be talked to. */
const mostEnded = 64

const failed = (message: string): ToolFailure => new ToolFailure({ message })

const firstLine = (text: string): string => {
  const [line = ""] = text.trim().split("\n", 1)
  return line.length > 120 ? `${firstUnits(line, 119)}…` : line
}

/** The words of an agent within a message of the runtime: every line is marked, so that none passes for the runtime's. */
const quote = (text: string, id: string): string => {
  const shown = firstUnits(text, longestLetter)
  const quoted = foreignBlock(shown).replace(/^/gm, "> ")
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

/** The reply to one message: still waited for, there, or to be told as a message of its own. */
type Reply = "waiting" | "left" | { readonly exit: Exit.Exit<string, AgentFailure> }

const causeText = (cause: Cause.Cause<AgentFailure>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? "it was stopped" : "it broke off in a way that was not foreseen"),
    onSome: ({ message }) => message
  })

const isAtWork = ({ status }: Child): boolean => status._tag === "Starting" || status._tag === "Running"

/** Those at work on their task: they take up the places. */
const atWork = ({ children }: Registry): Array<Child> => [...children.values()].filter(isAtWork)

/** Those from which something is still to come. */
const busy = ({ children }: Registry): Array<Child> => [...children.values()].filter(({ due }) => due > 0)

/** Keeps the agents that an agent starts. Closing the scope ends them all. */
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
      if (busy(next).length > 0) quiet.closeUnsafe()
      return made
    })
  /** After each end: who waits is to find the message that it brought. */
  const hush = Effect.sync(() => {
    if (busy(registry).length === 0) quiet.openUnsafe()
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
      const known = [...children.keys()].join(", ")
      return Effect.fail(
        failed(`there is no agent session ${id}; ${known === "" ? "none was started" : `there are ${known}`}`)
      )
    })

  /** A free place for one more, taken at once so that two calls do not take the same. */
  const reserve = Effect.fnUntraced(function* (agent: Spawnable, task: string) {
    const scope = yield* Scope.fork(all)
    const started = yield* Clock.currentTimeMillis
    const child = yield* modify((before): [Child | undefined, Registry] => {
      if (atWork(before).length >= bounds.children) return [undefined, before]
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

  /** Of those that ended and owe no reply, those that ended first make room. */
  const sweep = Effect.flatMap(current, ({ children }) => {
    const ended = [...children.values()].filter((child) => !isAtWork(child) && child.due === 0)
    return Effect.forEach(ended.slice(0, Math.max(0, ended.length - mostEnded)), forget, { discard: true })
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
    const agent = agents.find((known) => known.name === name.trim())
    if (agent === undefined) {
      return yield* failed(`there is no agent ${name}; there are ${agents.map((known) => known.name).join(", ")}`)
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
        // Ends with the scope, and then tells nobody: whoever would be told has ended too.
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

  /** A reply that nobody waits for becomes a message, unless it went back and forth long enough. */
  const announceReply = Effect.fnUntraced(function* (id: string, exit: Exit.Exit<string, AgentFailure>) {
    if (Exit.isFailure(exit)) {
      return yield* mailbox.put(
        `${runtimeMark} Your message to the agent ${id} was not answered. Why, as far as is known:\n\n${quote(causeText(exit.cause), id)}`
      )
    }
    if (exit.value.trim() === replySkip) return yield* change(id, (child) => ({ ...child, exchange: 0 }))
    const turn = yield* modify((before): [number, Registry] => {
      const child = before.children.get(id)
      if (child === undefined) return [longestExchange + 1, before]
      const exchange = child.exchange + 1
      const kept = { ...child, exchange: exchange > longestExchange ? 0 : exchange }
      return [exchange, { ...before, children: new Map(before.children).set(id, kept) }]
    })
    if (turn > longestExchange) return
    const last =
      turn === longestExchange
        ? " This is the last of these that you are told; later ones are in sessions_history."
        : ""
    yield* mailbox.put(
      `${runtimeMark} The agent ${id} replies to your message (reply ${turn} of ${longestExchange}; say ${replySkip} to it to end the exchange).${last} Its words:\n\n${quote(exit.value, id)}`
    )
  })

  const noteReply = (id: string, exit: Exit.Exit<string, AgentFailure>) =>
    Exit.isSuccess(exit) ? note(id, "agent", exit.value) : note(id, "runtime", `No answer: ${causeText(exit.cause)}`)

  const send = Effect.fn("Children.send")(function* (
    wanted: string,
    message: string,
    patience: Duration.Duration,
    context: CallContext
  ): Effect.fn.Return<string, ToolFailure> {
    const { id, scope, status } = yield* find(wanted)
    if (status._tag === "Starting") return yield* failed(`${id} is being started; say it again in a moment`)
    if (message.trim() === replySkip) {
      yield* change(id, (child) => ({ ...child, exchange: 0 }))
      return `The exchange with ${id} is over; nothing was sent.`
    }
    const reply = yield* Ref.make<Reply>("waiting")
    const there = yield* Deferred.make<void>()
    const asks = Duration.isGreaterThan(patience, Duration.zero)
    /** The reply if it is there; from now on it comes as a message. */
    const leave = Ref.modify(reply, (state): [Exit.Exit<string, AgentFailure> | undefined, Reply] =>
      typeof state === "string" ? [undefined, "left"] : [state.exit, state]
    )
    yield* note(id, "you", message)
    const text = `${runtimeMark} A message from the agent that started you, not from the user:\n\n${foreignBlock(message)}`
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
    /** Once it is said, the reply reaches the agent in one way or the other. */
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
      const { history, id: known } = yield* find(id)
      const voices = { you: "You", agent: known, runtime: "The runtime" }
      const lines = history.blocks.map(
        ({ text, voice }) => `${voices[voice]}:\n${foreignBlock(text).replace(/^/gm, "> ")}`
      )
      const gap = history.dropped === 0 ? [] : [`(${history.dropped} older entries are left out)`]
      return [...lines.slice(0, 1), ...gap, ...lines.slice(1)].join("\n\n")
    }),
    isBusy: Effect.map(current, (state) => busy(state).length > 0),
    quiet: quiet.await,
    alive: Effect.map(current, (state) => {
      const living = busy(state).sort((a, b) => a.number - b.number)
      return living.length === 0
        ? undefined
        : `${runtimeMark} Agents that you started and that are still at work; each tells you when it is done, and sessions_send reaches it:\n${living
            .map(({ id, task }) => `- ${id}: ${foreignLine(firstLine(task))}`)
            .join("\n")}`
    }),
    question: (agentOrId, message) =>
      Effect.map(current, ({ children }) => {
        const agent = children.get(agentOrId.trim())?.agent ?? agents.find(({ name }) => name === agentOrId.trim())
        return agent?.question?.(message)
      })
  }
})

// The tools

const sessionParameter = Schema.String.annotate({ description: "The session that sessions_spawn gave" })

const spawnTool = (children: Children): Tool =>
  makeTool({
    name: "sessions_spawn",
    description: `Starts an agent that works beside you and gives its session at once. Its result comes to you as a message when it is done: go on with other work, or wait for it with sessions_yield. It sees nothing of this conversation, so put all it needs into the task. Agents:\n${children.agents
      .map(({ description, name }) => `- ${name}: ${description}`)
      .join("\n")}`,
    parameters: Schema.Struct({
      agent: Schema.String.annotate({ description: "The name of the agent" }),
      task: Schema.String.annotate({ description: "What it has to do, and all it needs to know for that" })
    }),
    result: Schema.Struct({ session: Schema.String, status: Schema.Literal("accepted") }),
    kind: "execute",
    title: ({ agent, task }) => `${agent}: ${firstLine(task)}`,
    question: ({ agent, task }) => children.question(agent, task),
    run: ({ agent, task }) =>
      Effect.map(children.spawn(agent, task), (session) => ({
        value: { session, status: "accepted" as const },
        display: words(`${session} is at work`)
      }))
  })

const sendTool = (children: Children): Tool =>
  makeTool({
    name: "sessions_send",
    description:
      "Says something to an agent that you started, while it works or after it has ended, and waits for its reply. With timeout_seconds 0 it does not wait: the reply comes as a message. Say REPLY_SKIP to end an exchange.",
    parameters: Schema.Struct({
      session: sessionParameter,
      message: Schema.String.annotate({ description: "What to say" }),
      timeout_seconds: Schema.optionalKey(
        Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 3_600 }))
      ).annotate({
        description: "How long to wait for the reply: 30 unless told, 0 not at all"
      })
    }),
    result: Schema.String,
    kind: "execute",
    // It waits as long as it is told to, and says so itself.
    timeout: "Infinity",
    title: ({ message, session }) => `${session}: ${firstLine(message)}`,
    question: ({ message, session }) => children.question(session, message),
    run: ({ message, session, timeout_seconds = 30 }, context) =>
      Effect.map(children.send(session, message, Duration.seconds(timeout_seconds), context), (value) => ({ value }))
  })

const listTool = (children: Children): Tool =>
  makeTool({
    name: "sessions_list",
    description: "Lists the agents that you started, with what each was asked to do and what became of it.",
    parameters: Schema.Struct({}),
    result: Schema.Struct({ sessions: Schema.Array(ChildState) }),
    kind: "read",
    run: () => Effect.map(children.list, (sessions) => ({ value: { sessions } }))
  })

const historyTool = (children: Children): Tool =>
  makeTool({
    name: "sessions_history",
    description:
      "Shows what was said to and by an agent that you started, and what it did. Long entries are shortened, secrets left out.",
    parameters: Schema.Struct({ session: sessionParameter }),
    result: Schema.String,
    kind: "read",
    title: ({ session }) => session,
    run: ({ session }) => Effect.map(children.history(session), (value) => ({ value }))
  })

const yieldTool = (children: Children, mailbox: Mailbox): Tool =>
  makeTool({
    name: "sessions_yield",
    description: "Waits until an agent that you started reports. Use it when you have nothing to do before that.",
    parameters: Schema.Struct({}),
    result: Schema.String,
    kind: "read",
    timeout: "Infinity",
    run: Effect.fnUntraced(function* () {
      // What lies there is told before the next turn: there is nothing to wait for.
      if (yield* mailbox.hasMail) return { value: "A message has come in already." }
      if (!(yield* children.isBusy)) return yield* failed("no agent is at work, so none will report; go on yourself")
      yield* Effect.raceFirst(mailbox.arrival, children.quiet)
      if (yield* mailbox.hasMail) return { value: "An agent has reported." }
      return {
        value: "No agent is at work any more, and none has a message for you; sessions_list tells how they ended."
      }
    })
  })

/** The tools by which an agent starts others and talks to them (pi-openclaw B12). */
export const tools = (children: Children, mailbox: Mailbox): ReadonlyArray<Tool> => [
  spawnTool(children),
  sendTool(children),
  listTool(children),
  historyTool(children),
  yieldTool(children, mailbox)
]
