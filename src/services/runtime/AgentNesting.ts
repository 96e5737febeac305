/** Where the agent of this process stands among the agents that started one another, and what the processes it starts inherit. */

import { Effect } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import {
  type AgentPlace,
  firstPlace,
  isTooDeep,
  narrowedPlace,
  parsePlace,
  placeBelow,
  placeText,
  placeVariable
} from "../../domain/agent/AgentPlace.ts"
import { agentDefaultsOf } from "../../domain/compression/strategies/Strategies.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import type { ApprovalMode } from "../../domain/tools/Approval.ts"
import { AgentBounds, AgentDepth, type AgentLimits } from "../agent/AgentRunner.ts"
import type { AgentSlots } from "../agent/AgentSlots.ts"
import { Environment } from "../platform/Environment.ts"
import { AgentNestingError } from "./RuntimeError.ts"
import { RuntimePlatform } from "./RuntimePlatform.ts"

/** The position of an agent, with the limits that hold there. */
export interface Nesting {
  readonly place: AgentPlace
  /** The limits on the agents that it starts. */
  readonly bounds: AgentLimits
  /** Counts the running agents of all processes together. */
  readonly slots: AgentSlots
}

/** The limits on agents: those of the settings or of the strategy, else those that the program provides. */
const ownBounds = (settings: SettingsFile) => {
  const { strategy, subagents } = withDefaults(settings)
  const { children, depth, running } = subagents
  const isLimited = settings.subagents !== undefined || agentDefaultsOf(strategy).subagents !== undefined
  return isLimited ? Effect.succeed({ children, depth, running }) : AgentBounds
}

/** The place that this process inherits. Undefined: the user started it. No `.env` file can set it. */
const inheritedPlace = Effect.gen(function* () {
  const { variables } = yield* Environment
  const text = (yield* variables)[placeVariable] ?? ""
  if (text.trim() === "") return undefined
  const place = parsePlace(text)
  if (place !== undefined) return place
  return yield* new AgentNestingError({
    problem: "Unreadable",
    message: `${placeVariable} says nothing about an agent; unset it to start an agent of your own`
  })
})

/**
 * Finds the position of what runs in this process. Fails where nothing more may start, as it would be nested too deep. The process of an
 * agent has the limits of its parent; anything else may narrow them by its settings.
 */
export const find = Effect.fn("AgentNesting.find")(function* (settings: SettingsFile, isAgentProcess = false) {
  const inherited = yield* inheritedPlace
  const platform = yield* RuntimePlatform
  const slots = yield* platform.slots(inherited?.slots)
  const { children, ...limits } = yield* ownBounds(settings)
  if (isAgentProcess && inherited === undefined) {
    return yield* new AgentNestingError({
      problem: "Unreadable",
      message: `${placeVariable} is not set: only an agent starts the process of another`
    })
  }
  const place =
    inherited === undefined
      ? firstPlace(limits, slots.name)
      : isAgentProcess
        ? inherited
        : narrowedPlace(inherited, limits)
  const { depth } = place.limits
  if (isTooDeep(place)) {
    return yield* new AgentNestingError({
      problem: "TooDeep",
      message: `agents may be nested at most ${depth} levels deep, and this one would be deeper: an agent, or a command that it ran, started it`
    })
  }
  return { place, bounds: { ...place.limits, children }, slots }
})

/** Finds the position of an agent, and counts the agent until the scope closes, unless the user or its parent process started it. */
export const enter = Effect.fn("AgentNesting.enter")(function* (
  settings: SettingsFile,
  {
    isAgentProcess = false,
    isPreview = false
  }: { readonly isAgentProcess?: boolean | undefined; readonly isPreview?: boolean | undefined }
) {
  const nesting = yield* find(settings, isAgentProcess)
  const { bounds, place, slots } = nesting
  if (place.depth === 0 || isPreview || isAgentProcess) return nesting
  const isCounted = yield* Effect.mapError(
    slots.take(bounds.running),
    ({ message }) => new AgentNestingError({ problem: "Uncounted", message })
  )
  if (isCounted) return nesting
  return yield* new AgentNestingError({
    problem: "TooMany",
    message: `${bounds.running} agents are already running, which is the maximum; wait until one ends`
  })
})

const withVariables = (command: ChildProcess.Command, variables: Record<string, string>): ChildProcess.Command =>
  ChildProcess.isStandardCommand(command) && command.options.env === undefined
    ? ChildProcess.make(command.command, command.args, { ...command.options, env: variables, extendEnv: true })
    : ChildProcess.setEnv(command, variables)

/**
 * Lets every process that the work starts inherit the place below the agent that starts it, with that agent's approval mode. No environment
 * that the command is given replaces it.
 */
export const passOn =
  (place: AgentPlace, mode: Effect.Effect<ApprovalMode>) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.updateService(work, ChildProcessSpawner.ChildProcessSpawner, (spawner) =>
      ChildProcessSpawner.make(
        Effect.fnUntraced(function* (command) {
          const below = placeBelow(place, Math.max(place.depth, yield* AgentDepth), yield* mode)
          return yield* spawner.spawn(withVariables(command, { [placeVariable]: placeText(below) }))
        })
      )
    )
