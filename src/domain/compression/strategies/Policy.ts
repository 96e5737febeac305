import { Schema } from "effect"
import { TokenCount } from "../../tokens/Tokens.ts"
import { PolicyOptions } from "../PolicyOptions.ts"
import { defaultStrategy, OwnStrategyName, StrategyName } from "./Strategies.ts"

/** A compression policy: the name of a strategy, which a program may have brought itself, and its options. */
export const Policy = Schema.Struct({
  strategy: Schema.Union([StrategyName, OwnStrategyName]),
  ...PolicyOptions.fields
})
export type Policy = typeof Policy.Type

/** The default strategy in a window of 1,048,576 tokens, with snapshots written by code. */
export const defaultPolicy: Policy = {
  strategy: defaultStrategy.name,
  ...defaultStrategy.defaults,
  limit: TokenCount.make(1_048_576),
  threshold: 0.5,
  preserve: 0.3,
  toolBudget: TokenCount.make(50_000),
  summarizer: "extractive",
  ladder: true,
  overhead: TokenCount.make(0)
}

/** The options that are numbers of tokens. */
export const tokenOptions = [
  "limit",
  "overhead",
  "toolBudget",
  "snapshotBudget",
  "digestBudget",
  "promptTokens"
] as const
const shareOptions = ["preserve", "minGain"] as const

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value)

/** Says what is wrong with an option that takes a number of tokens; undefined: nothing, or the option is absent. */
export const tokensProblem = (name: string, value: unknown, least = 0): string | undefined => {
  if (value === undefined) return undefined
  if (!isNumber(value) || value < least)
    return `${name} is ${String(value)}; expected a number of tokens, ${least} or more`
  const most = Number.MAX_SAFE_INTEGER
  return value <= most ? undefined : `${name} is ${value}; expected a number of tokens, ${most} at most`
}

/** Says what is wrong with an option that takes a share; undefined: nothing, or the option is absent. */
export const shareProblem = (name: string, value: unknown): string | undefined =>
  value === undefined || (isNumber(value) && value >= 0 && value <= 1)
    ? undefined
    : `${name} is ${String(value)}; expected a fraction from 0 to 1`

/** Says what is wrong with a threshold; undefined: nothing, or it is absent. */
export const thresholdProblem = (value: unknown): string | undefined =>
  value === undefined || (isNumber(value) && value > 0 && value <= 1)
    ? undefined
    : `threshold is ${String(value)}; expected a fraction above 0, up to 1`

/** Says what is wrong with the first of these options whose value no policy can have; undefined: nothing. */
export const policyProblem = (options: { readonly [K in keyof Policy]?: unknown }): string | undefined => {
  const { summarizer } = options
  const problems = [
    ...tokenOptions.map((name) => tokensProblem(name, options[name], name === "limit" ? 1 : 0)),
    thresholdProblem(options.threshold),
    ...shareOptions.map((name) => shareProblem(name, options[name])),
    summarizer === undefined || summarizer === "model" || summarizer === "extractive"
      ? undefined
      : `summarizer is ${String(summarizer)}; expected model or extractive`
  ]
  return problems.find((problem) => problem !== undefined)
}
