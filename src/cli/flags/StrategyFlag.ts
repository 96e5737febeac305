import { Schema } from "effect"
import type { Flag } from "effect/cli"
import { StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import * as Input from "./SharedFlags.ts"

/** The flags `--strategy`, of one strategy or of several with commas between them, and `--threshold`. */

const isStrategy = Schema.is(StrategyName)
/** The strategies that exist, for descriptions and messages. */
export const names = StrategyName.literals.join(", ")

/** Parses a list such as `palimpsest,gemini` into distinct strategies; undefined when a name is unknown. */
const parseStrategies = (text: string): ReadonlyArray<StrategyName> | undefined => {
  const distinctNames = [...new Set(text.split(",").map((name) => name.trim()))]
  const strategies = distinctNames.filter(isStrategy)
  return strategies.length === distinctNames.length ? strategies : undefined
}

/** `--strategy` of a command that works with one strategy. */
export const one: Flag.Flag<StrategyName> = Input.parsed("strategy", "name", `one of ${names}`, (text) =>
  isStrategy(text) ? text : undefined
)

/** `--strategy` of a command that compares strategies. */
export const several: Flag.Flag<ReadonlyArray<StrategyName>> = Input.parsed(
  "strategy",
  "name,…",
  `strategies with commas between them, of ${names}`,
  parseStrategies
)

/** `--threshold` of a command that compresses a conversation of a file. */
export const threshold = Input.share(
  "threshold",
  "Compress when this part of the window is used (default: 0.5, or what the strategy says)"
)
