import type { StrategyName } from "../../../domain/compression/strategies/Strategies.ts"
import { gemini } from "./Gemini.ts"
import { palimpsest } from "./Palimpsest.ts"
import type { StrategyRunner } from "./StrategyRunner.ts"

/** The runner of each strategy in the registry (`domain/compression/strategies/Strategies.ts`). */
export const runners: Readonly<Record<StrategyName, StrategyRunner>> = { palimpsest, gemini }

/** Returns the runner of the strategy with this name; undefined when there is none, which an untyped program can cause. */
export const runnerOf = (name: string): StrategyRunner | undefined =>
  Object.values(runners).find(({ strategy }) => strategy.name === name)
