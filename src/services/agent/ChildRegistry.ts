import type { Scope } from "effect"
import * as AgentHistory from "../../domain/conversation/AgentHistory.ts"
import type { CallContext, Question } from "../tools/Tool.ts"
import type { AgentResult, AgentRunner, Running } from "./AgentRunner.ts"

/** The agents that one agent started, as a value: each change returns the next registry. */

/** An agent that may be started by its name. */
export interface SpawnableAgent {
  readonly name: string
  readonly description: string
  readonly runner: AgentRunner
  /** The approval question before a message is sent to it. Absent: none. */
  readonly question?: ((message: string) => Question) | undefined
}

/** The status of an agent as the runtime observed it, whatever the agent itself says. */
export type ChildStatus =
  | { readonly _tag: "Starting" }
  | { readonly _tag: "Running"; readonly running: Running }
  | { readonly _tag: "Ended"; readonly running: Running; readonly result: AgentResult }
  | { readonly _tag: "Failed"; readonly running: Running; readonly message: string }

/** A started agent. */
export interface Child {
  /** The agent's number in starting order. */
  readonly number: number
  readonly id: string
  readonly agent: SpawnableAgent
  readonly task: string
  /** Start time in milliseconds since the epoch. */
  readonly started: number
  readonly scope: Scope.Closeable
  readonly status: ChildStatus
  readonly history: AgentHistory.AgentHistory
  /** The number of messages it still owes: the result of its task, and a reply to each message sent to it. */
  readonly due: number
  /** How many replies in a row arrived as messages of their own, each to an answer to the one before. */
  readonly exchange: number
  /** The call that waits for the agent, if any; the agent's activity is shown there. */
  readonly waiter: CallContext | undefined
}

/** The started agents. */
export interface Registry {
  readonly count: number
  /** Agents that have ended come after the others, in the order in which they ended. */
  readonly children: ReadonlyMap<string, Child>
}

/** A change of the registry that also returns something. */
export type RegistryChange<A> = (before: Registry) => readonly [A, Registry]

/** No agent was started. */
export const emptyRegistry: Registry = { count: 0, children: new Map() }

/** Replies in a row that arrive as messages. Later ones are only stored, so that two agents do not talk forever. As in OpenClaw. */
export const maxExchangeReplies = 5
/** How many ended agents still accept messages. */
export const maxEndedAgents = 64

const isAtWork = ({ status }: Child): boolean => status._tag === "Starting" || status._tag === "Running"

/** Whether any agent still owes a message. */
export const isBusy = ({ children }: Registry): boolean => [...children.values()].some(({ due }) => due > 0)

/** The agents that still owe a message, oldest first. */
export const busyChildren = (registry: Registry): ReadonlyArray<Child> =>
  childrenInOrder(registry).filter(({ due }) => due > 0)

/** All agents, oldest first. */
export const childrenInOrder = ({ children }: Registry): ReadonlyArray<Child> =>
  [...children.values()].sort((a, b) => a.number - b.number)

/** Adds an agent that is being started, unless `max` are at work on their task. */
export const reserve =
  (
    { agent, scope, started, task }: Pick<Child, "agent" | "scope" | "started" | "task">,
    max: number
  ): RegistryChange<Child | undefined> =>
  (before) => {
    if ([...before.children.values()].filter(isAtWork).length >= max) return [undefined, before]
    const number = before.count + 1
    const child: Child = {
      number,
      id: `${agent.name}-${number}`,
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
    return [child, { count: number, children: new Map(before.children).set(child.id, child) }]
  }

/** Changes an agent. Without this agent nothing changes. */
export const withChild = (before: Registry, id: string, f: (child: Child) => Child): Registry => {
  const child = before.children.get(id)
  return child === undefined ? before : { ...before, children: new Map(before.children).set(id, f(child)) }
}

/** Removes an agent. */
export const withoutChild = (before: Registry, id: string): Registry => {
  const children = new Map(before.children)
  children.delete(id)
  return { ...before, children }
}

/** Sets the status with which an agent ended. Its result is then no longer due. */
export const withEnd = (before: Registry, id: string, status: ChildStatus): Registry => {
  const child = before.children.get(id)
  if (child === undefined) return before
  const { children, count } = withoutChild(before, id)
  return { count, children: new Map(children).set(id, { ...child, status, due: child.due - 1 }) }
}

/** The agents beyond `maxEndedAgents` that ended first, among those that ended and owe no reply. */
export const expendable = ({ children }: Registry): ReadonlyArray<Child> => {
  const ended = [...children.values()].filter((child) => !isAtWork(child) && child.due === 0)
  return ended.slice(0, Math.max(0, ended.length - maxEndedAgents))
}

/** Counts a reply without a waiting caller and returns its number. Undefined: it is only stored, and the exchange begins anew. */
export const countReply =
  (id: string): RegistryChange<number | undefined> =>
  (before) => {
    const exchange = (before.children.get(id)?.exchange ?? maxExchangeReplies) + 1
    const number = exchange > maxExchangeReplies ? undefined : exchange
    return [number, withChild(before, id, (child) => ({ ...child, exchange: number ?? 0 }))]
  }
