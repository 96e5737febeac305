/** The agents that one agent started: which owe a message, which may be forgotten. Every change returns a new value. */

import * as AgentHistory from "../conversation/AgentHistory.ts"
import type { AgentResult } from "./AgentResult.ts"

/** A started agent. `Link` is what its parent reaches it by. */
export interface Child<Link> {
  /** The agent's number in starting order. */
  readonly number: number
  readonly id: string
  /** The name of its definition. */
  readonly name: string
  readonly task: string
  /** Start time in milliseconds since the epoch. */
  readonly started: number
  /** How it ended, as the runtime observed it, whatever the agent itself says. Undefined: it is at work on its task. */
  readonly end: AgentResult | "failed" | undefined
  readonly history: AgentHistory.AgentHistory
  /** The number of messages it still owes: the result of its task, and a reply to each message sent to it. */
  readonly due: number
  /** How many replies in a row arrived as messages of their own, each to an answer to the one before. */
  readonly exchange: number
  readonly link: Link
}

/** The agents that one agent started. */
export interface Children<Link> {
  /** Agents that have ended come after the others, in the order in which they ended. */
  readonly all: ReadonlyArray<Child<Link>>
  /** The number of agents that were started so far, also of those that are forgotten. */
  readonly count: number
}

/** Replies in a row that arrive as messages. Later ones are only stored, so that two agents do not talk forever. As in OpenClaw. */
export const maxExchangeReplies = 5
/** How many ended agents still accept messages. */
export const maxEndedAgents = 64

/** No agents. */
export const none: Children<never> = { all: [], count: 0 }

/** All agents, oldest first. */
export const inOrder = <Link>({ all }: Children<Link>): ReadonlyArray<Child<Link>> =>
  all.toSorted((one, other) => one.number - other.number)

/** The agents that still owe a message, oldest first. */
export const busy = <Link>(children: Children<Link>): ReadonlyArray<Child<Link>> =>
  inOrder(children).filter(({ due }) => due > 0)

/** The agents beyond `maxEndedAgents` that ended first, among those that ended and owe no reply. */
export const expendable = <Link>({ all }: Children<Link>): ReadonlyArray<Child<Link>> => {
  const ended = all.filter(({ due, end }) => end !== undefined && due === 0)
  return ended.slice(0, Math.max(0, ended.length - maxEndedAgents))
}

/** Finds an agent by its id. */
export const find = <Link>({ all }: Children<Link>, id: string): Child<Link> | undefined =>
  all.find((child) => child.id === id)

/** Adds an agent that is being started. Returns undefined in its place when `max` are at work on their task. */
export const reserve = <Link>(
  children: Children<Link>,
  start: Pick<Child<Link>, "link" | "name" | "started" | "task">,
  max: number
): readonly [Child<Link> | undefined, Children<Link>] => {
  const { all, count } = children
  if (all.filter(({ end }) => end === undefined).length >= max) return [undefined, children]
  const number = count + 1
  const child: Child<Link> = {
    ...start,
    number,
    id: `${start.name}-${number}`,
    end: undefined,
    history: AgentHistory.add(AgentHistory.empty, "you", start.task),
    due: 1,
    exchange: 0
  }
  return [child, { all: [...all, child], count: number }]
}

/** Changes one agent. One that was removed does not come back. */
export const change = <Link>(
  children: Children<Link>,
  id: string,
  how: (child: Child<Link>) => Partial<Child<Link>>
): Children<Link> => ({
  ...children,
  all: children.all.map((child) => (child.id === id ? { ...child, ...how(child) } : child))
})

/** Removes an agent. */
export const remove = <Link>({ all, count }: Children<Link>, id: string): Children<Link> => ({
  all: all.filter((child) => child.id !== id),
  count
})

/** Sets how an agent ended. It still owes its result. */
export const setEnd = <Link>(children: Children<Link>, id: string, end: Child<Link>["end"]): Children<Link> => {
  const child = find(children, id)
  return child === undefined ? children : { ...children, all: [...remove(children, id).all, { ...child, end }] }
}

/** Changes the number of messages that an agent owes. */
export const addDue = <Link>(children: Children<Link>, id: string, by: 1 | -1): Children<Link> =>
  change(children, id, ({ due }) => ({ due: due + by }))

/** Adds a block to the history of an agent. */
export const addToHistory = <Link>(
  children: Children<Link>,
  id: string,
  voice: AgentHistory.Voice,
  text: string
): Children<Link> => change(children, id, ({ history }) => ({ history: AgentHistory.add(history, voice, text) }))

/** Counts a reply without a waiting caller and returns its number. Undefined: it is only stored, and the exchange begins anew. */
export const countReply = <Link>(
  children: Children<Link>,
  id: string
): readonly [number | undefined, Children<Link>] => {
  const { exchange = 0 } = find(children, id) ?? {}
  const number = exchange < maxExchangeReplies ? exchange + 1 : undefined
  return [number, change(children, id, () => ({ exchange: number ?? 0 }))]
}
