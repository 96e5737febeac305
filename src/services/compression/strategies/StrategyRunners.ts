/** The runners of the built-in strategies, and those that a program adds. */

import { Context } from "effect"
import type { StrategyName } from "../../../domain/compression/strategies/Strategies.ts"
import { gemini } from "./Gemini.ts"
import { openclaw } from "./OpenClaw.ts"
import { palimpsest } from "./Palimpsest.ts"
import { pi } from "./Pi.ts"
import type { StrategyRunner } from "./StrategyRunner.ts"

/** The runner of each strategy in the registry. */
export const runners: Readonly<Record<StrategyName, StrategyRunner>> = { palimpsest, gemini, pi, openclaw }

/**
 * The strategies that a policy may name in addition to the built-in ones. A program provides its own here. They are
 * checked (`checkedRunner`), and cannot take a built-in name.
 */
export const OwnStrategies = Context.Reference<ReadonlyArray<StrategyRunner>>(
  "palimpsest/services/compression/strategies/StrategyRunners/OwnStrategies",
  { defaultValue: () => [] }
)
