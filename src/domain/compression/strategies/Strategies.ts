import { Schema } from "effect"
import type { AgentDefaults } from "../AgentDefaults.ts"
import type { Strategy } from "../Strategy.ts"
import { gemini } from "./gemini/Gemini.ts"
import { openclaw } from "./openclaw/OpenClaw.ts"
import { palimpsest } from "./palimpsest/Palimpsest.ts"
import { pi } from "./pi/Pi.ts"
import { triggerShare } from "./Threshold.ts"

/** The registry of strategies, the default first. To add a strategy, add a folder beside this file and an entry here. */
export const strategies = [palimpsest, gemini, pi, openclaw] as const satisfies ReadonlyArray<Strategy>

/** The name of a built-in strategy. Settings and flags refuse any other name. */
export const StrategyName = Schema.Literals(strategies.map(({ name }) => name))
export type StrategyName = typeof StrategyName.Type

/** The name of a strategy that a program brought itself (`OwnStrategies`): `OwnStrategyName.make("mine")`. A literal that names no built-in strategy does not compile. */
export const OwnStrategyName = Schema.String.pipe(Schema.brand("OwnStrategyName"))
export type OwnStrategyName = typeof OwnStrategyName.Type

/** The default strategy. */
export const defaultStrategy = strategies[0]

/** Returns the strategy with this name; undefined when there is none, as in a log that another version wrote. */
export const strategyNamed = (name: string, among: ReadonlyArray<Strategy> = strategies): Strategy | undefined =>
  among.find((strategy) => strategy.name === name)

/** Whether a strategy waits for growth after a failure. An unknown strategy waits. See `Strategy.waitsForGrowth`. */
export const waitsForGrowth = (name: string): boolean => strategyNamed(name)?.waitsForGrowth !== false

/** Returns the defaults outside of compression that come with this strategy. */
export const agentDefaultsOf = (name: StrategyName): AgentDefaults => strategyNamed(name)?.agentDefaults ?? {}

/** Returns the share of this window above which a strategy compresses when no threshold was set. */
export const defaultThreshold = (name: string, window: number): number =>
  triggerShare(strategyNamed(name) ?? defaultStrategy, window, undefined)

/** Returns the policy defaults of this strategy. */
export const strategyDefaults = (name: string): Strategy["defaults"] & { readonly strategy: OwnStrategyName } => ({
  ...(strategyNamed(name) ?? defaultStrategy).defaults,
  strategy: OwnStrategyName.make(name)
})
