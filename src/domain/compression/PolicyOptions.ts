/** The options that all compression strategies share, with the models that write summaries. */

import { Schema } from "effect"
import { OutputForm } from "../conversation/ToolOutputShortening.ts"
import { TokenCount } from "../tokens/Tokens.ts"

const Fraction = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** The name of a model; or several, each of which is tried when those before it failed. */
export const ModelNames = Schema.Union([Schema.String, Schema.NonEmptyArray(Schema.String)])
export type ModelNames = typeof ModelNames.Type

/** Returns the names in the order in which they are tried, each once. */
export const modelNames = (names: ModelNames): ReadonlyArray<string> =>
  typeof names === "string" ? [names] : [...new Set(names)]

/** Options of a compression, common to all strategies. Token counts use the conversation's model. */
export const PolicyOptions = Schema.Struct({
  /** Size of the context window, in tokens. */
  limit: TokenCount,
  /** Share of the window above which a conversation is compressed. */
  threshold: Fraction,
  /** Share of the conversation to keep at its end. */
  preserve: Fraction,
  /** Smallest share of the request that a compression has to save. */
  minGain: Fraction,
  /** Tokens of tool output to keep in full, newest first. */
  toolBudget: TokenCount,
  /** Upper bound for the snapshot, in tokens. Absent: derived from the size of what is summarised. */
  snapshotBudget: Schema.optionalKey(TokenCount),
  /** How tool outputs beyond `toolBudget` are shortened. */
  outputForm: OutputForm,
  /** Who writes the snapshot: code, or a model. */
  summarizer: Schema.Literals(["extractive", "model"]),
  /** The summarizing model, or several in the order in which they are tried. Absent: a model of the conversation's family. */
  model: Schema.optionalKey(ModelNames),
  /**
   * Upper bound for what a summarizing model is sent of the messages, in tokens. Longer messages are sent as a digest. Absent: a
   * quarter of the model's window, at most 40,000.
   */
  digestBudget: Schema.optionalKey(TokenCount),
  /** Turns of the user that stay in the window, for strategies that limit them. Absent: no limit. */
  turnLimit: Schema.optionalKey(Schema.Natural),
  /** What the user wants kept. */
  focus: Schema.optionalKey(Schema.String),
  /**
   * Whether secrets are left out of messages that are sent to a summarizing model as they are. Absent: yes. Snapshots and digests
   * never contain secrets.
   */
  redactSecrets: Schema.optionalKey(Schema.Boolean),
  /** Whether stronger plans may follow when the first does not reach the limit. */
  ladder: Schema.Boolean,
  /**
   * Prompt tokens that the API reported for the latest request, for strategies that use the report. Absent: the prompt is
   * counted.
   */
  promptTokens: Schema.optionalKey(TokenCount),
  /** Tokens of the request outside the history: system instruction, tool declarations, environment message. */
  overhead: TokenCount
})
export type PolicyOptions = typeof PolicyOptions.Type
