/**
 * The place of an agent among the agents that started one another, in this process and above it. A process that an agent starts (an agent, a
 * command, a hook, an MCP server) inherits its place in one environment variable, so that limits hold for all of them together.
 */

import { Result, Schema } from "effect"
import { fromJson } from "../text/JsonText.ts"
import { ApprovalMode } from "../tools/Approval.ts"

/** The limits of a place. */
const PlaceLimits = Schema.Struct({
  /** How deep agents may be nested. */
  depth: Schema.Natural,
  /** How many agents may run at once, without the one that the user started. */
  running: Schema.Natural
})

/** The place of an agent. */
export const AgentPlace = Schema.Struct({
  /** The number of agents above it: 0 for the agent that the user started. */
  depth: Schema.Natural,
  /** The limits of the agent that the user started, or narrower ones of an agent between. */
  limits: PlaceLimits,
  /** The approval mode of the agent above it: its own is never wider. */
  approve: ApprovalMode,
  /** What the names of the files begin with that count the running agents. An absolute path. */
  slots: Schema.NonEmptyString
})
export type AgentPlace = typeof AgentPlace.Type

/** The name under which the agent that the user started asks for approval. No other agent may have it: a question names its agent. */
export const mainAgent = "palimpsest"

/** The environment variable in which a process inherits its place. */
export const placeVariable = "PALIMPSEST_AGENT"

const placeJson = fromJson(AgentPlace)
const decode = Schema.decodeResult(placeJson)
const encode = Schema.encodeSync(placeJson)

/** Parses the value of the variable. Undefined: it holds no place. */
export const parsePlace = (text: string): AgentPlace | undefined => Result.getOrUndefined(decode(text))

/** The value of the variable for a process in this place. */
export const placeText = (place: AgentPlace): string => encode(place)

/** The place of an agent that the user started. Nothing is above it that narrows its approval mode. */
export const firstPlace = (limits: AgentPlace["limits"], slots: string): AgentPlace => ({
  depth: 0,
  limits,
  approve: "all",
  slots
})

/** An inherited place with the agent's own limits, where those are narrower. */
export const narrowedPlace = (place: AgentPlace, own: AgentPlace["limits"]): AgentPlace => ({
  ...place,
  limits: {
    depth: Math.min(place.limits.depth, own.depth),
    running: Math.min(place.limits.running, own.running)
  }
})

/** Whether an agent may not start in this place: it would be nested deeper than the limit. */
export const isTooDeep = ({ depth, limits }: AgentPlace): boolean => depth > limits.depth

/** The place of a process that an agent in this place starts. `mode` is the agent's approval mode at that moment. */
export const placeBelow = (place: AgentPlace, depth: number, mode: ApprovalMode): AgentPlace => ({
  ...place,
  depth: depth + 1,
  approve: mode
})
