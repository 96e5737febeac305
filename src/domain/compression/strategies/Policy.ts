import { Schema } from "effect"
import { TokenCount } from "../../tokens/Tokens.ts"
import { PolicyOptions } from "../PolicyOptions.ts"
import { defaultStrategy } from "./Strategies.ts"

/** A compression policy: the name of a strategy, which a program may have brought itself, and its options. */
export const Policy = Schema.Struct({ strategy: Schema.String, ...PolicyOptions.fields })
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

type PolicyNumbers = { readonly [K in keyof Policy]?: unknown }

/** Returns which of these options has a value that no policy can have, and what it takes; undefined when none has. */
export const policyProblem = (options: PolicyNumbers): string | undefined => {
  const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value)
  for (const name of ["limit", "overhead", "toolBudget", "snapshotBudget", "digestBudget", "promptTokens"] as const) {
    const value = options[name]
    const least = name === "limit" ? 1 : 0
    if (value !== undefined && !(isNumber(value) && value >= least)) {
      return `${name} is ${String(value)}; expected a number of tokens, ${least} or more`
    }
  }
  for (const name of ["threshold", "preserve", "minGain"] as const) {
    const value = options[name]
    if (value !== undefined && !(isNumber(value) && value >= 0 && value <= 1)) {
      return `${name} is ${String(value)}; expected a share from 0 to 1`
    }
  }
  const { summarizer } = options
  return summarizer === undefined || summarizer === "model" || summarizer === "extractive"
    ? undefined
    : `summarizer is ${String(summarizer)}; expected model or extractive`
}
