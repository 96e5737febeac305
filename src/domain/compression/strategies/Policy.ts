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
