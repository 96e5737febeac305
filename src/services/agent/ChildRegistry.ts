import type { Scope } from "effect"
import * as AgentHistory from "../../domain/conversation/AgentHistory.ts"
import type { CallContext, Question } from "../tools/Tool.ts"
import type { AgentResult, AgentRunner, Running } from "./AgentRunner.ts"

/** The agents that one agent started: which owe a message, which may be forgotten. */

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

/** A started agent. Mutable. */
export interface Child {
  /** The agent's number in starting order. */
  readonly number: number
  readonly id: string
  readonly agent: SpawnableAgent
  readonly task: string
  /** Start time in milliseconds since the epoch. */
  readonly started: number
  readonly scope: Scope.Closeable
  status: ChildStatus
  history: AgentHistory.AgentHistory
  /** The number of messages it still owes: the result of its task, and a reply to each message sent to it. */
  due: number
  /** How many replies in a row arrived as messages of their own, each to an answer to the one before. */
  exchange: number
  /** The call that waits for the agent, if any; the agent's activity is shown there. */
  waiter: CallContext | undefined
}

/** Replies in a row that arrive as messages. Later ones are only stored, so that two agents do not talk forever. As in OpenClaw. */
export const maxExchangeReplies = 5
/** How many ended agents still accept messages. */
export const maxEndedAgents = 64

const isAtWork = ({ status }: Child): boolean => status._tag === "Starting" || status._tag === "Running"

/** The started agents. Mutable. */
export class ChildRegistry {
  /** By id. Agents that have ended come after the others, in the order in which they ended. */
  readonly children = new Map<string, Child>()
  private count = 0

  /** All agents, oldest first. */
  get inOrder(): ReadonlyArray<Child> {
    return [...this.children.values()].sort((a, b) => a.number - b.number)
  }

  /** The agents that still owe a message, oldest first. */
  get busy(): ReadonlyArray<Child> {
    return this.inOrder.filter(({ due }) => due > 0)
  }

  /** The agents beyond `maxEndedAgents` that ended first, among those that ended and owe no reply. */
  get expendable(): ReadonlyArray<Child> {
    const ended = [...this.children.values()].filter((child) => !isAtWork(child) && child.due === 0)
    return ended.slice(0, Math.max(0, ended.length - maxEndedAgents))
  }

  /** Adds an agent that is being started, unless `max` are at work on their task. */
  reserve(
    { agent, scope, started, task }: Pick<Child, "agent" | "scope" | "started" | "task">,
    max: number
  ): Child | undefined {
    if (this.inOrder.filter(isAtWork).length >= max) return undefined
    this.count += 1
    const child: Child = {
      number: this.count,
      id: `${agent.name}-${this.count}`,
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
    this.children.set(child.id, child)
    return child
  }

  /** Sets the status with which an agent ended. Its result is then no longer due. */
  end(child: Child, status: ChildStatus): void {
    child.status = status
    child.due -= 1
    if (this.children.delete(child.id)) this.children.set(child.id, child)
  }
}

/** Counts a reply without a waiting caller and returns its number. Undefined: it is only stored, and the exchange begins anew. */
export const countReply = (child: Child): number | undefined => {
  const number = child.exchange < maxExchangeReplies ? child.exchange + 1 : undefined
  child.exchange = number ?? 0
  return number
}
