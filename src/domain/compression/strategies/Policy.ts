import { Predicate, Schema, Struct } from "effect"
import { OutputForm } from "../../conversation/ToolOutputShortening.ts"
import { TokenCount } from "../../tokens/Tokens.ts"
import { optionCheck } from "../InvalidOption.ts"
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

/** What the options may be that are not numbers. */
const otherOptions = {
  strategy: "the name of a strategy",
  summarizer: "model or extractive",
  outputForm: OutputForm.literals.join(" or "),
  model: "the name of a model, or several names",
  turnLimit: "a whole number, 0 or more",
  focus: "a text",
  redactSecrets: "true or false",
  ladder: "true or false"
} as const

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value)

/** Says what is wrong with an option that takes a number of tokens; undefined: nothing, or the option is absent. */
export const tokensProblem = (name: string, value: unknown, least = 0): string | undefined => {
  const most = Number.MAX_SAFE_INTEGER
  const isTooLarge = isNumber(value) && value > most
  const range = isTooLarge ? `${most} at most` : `${least} or more`
  return optionCheck((one) => isNumber(one) && one >= least && one <= most, `a number of tokens, ${range}`)(name, value)
}

/** Says what is wrong with an option that takes a share; undefined: nothing, or the option is absent. */
export const shareProblem = optionCheck(
  (value) => isNumber(value) && value >= 0 && value <= 1,
  "a fraction from 0 to 1"
)

const isThreshold = (value: unknown) => isNumber(value) && value > 0 && value <= 1

/** Says what is wrong with a threshold; undefined: nothing, or it is absent. */
export const thresholdProblem = (value: unknown): string | undefined =>
  optionCheck(isThreshold, "a fraction above 0, up to 1")("threshold", value)

/** Says what is wrong with the first of these options whose value no policy can have; undefined: nothing. */
export const policyProblem = (options: unknown): string | undefined => {
  if (!Predicate.isObject(options)) return optionCheck(Predicate.isObject, "an object")("policy", options)
  const problems = [
    ...tokenOptions.map((name) => tokensProblem(name, options[name], name === "limit" ? 1 : 0)),
    thresholdProblem(options.threshold),
    ...shareOptions.map((name) => shareProblem(name, options[name])),
    ...Struct.keys(otherOptions).map((name) =>
      optionCheck(Schema.is(Policy.fields[name]), otherOptions[name])(name, options[name])
    )
  ]
  return problems.find((problem) => problem !== undefined)
}
