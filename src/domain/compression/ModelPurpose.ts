/** Chooses the model for each job beside the conversation: compression, summaries of outputs, titles, routing and more. */

import { makerOf } from "../model/ModelLimits.ts"

/** The jobs that models do besides the conversation itself. */
export type Purpose = "compression" | "tool-summary" | "title" | "router" | "edit" | "loop" | "loop-confirmation"

/**
 * The model of a job and its parameters. The output limit is a constant of the job and never derived from the size of the
 * request: a limit that grows with the input exceeds what models can output.
 */
export interface ModelConfig {
  readonly model: string
  readonly temperature?: number
  /** In tokens. */
  readonly maxOutputTokens?: number
}

const small = "gemini-2.5-flash-lite"

/**
 * As in Gemini CLI: the small model summarises outputs (2,000 tokens), writes titles and corrects edits; the fast one routes
 * and detects loops; a stronger one confirms a loop.
 */
const fixed: Readonly<Record<Exclude<Purpose, "compression">, ModelConfig>> = {
  "tool-summary": { model: small, maxOutputTokens: 2_000 },
  title: { model: small, maxOutputTokens: 64 },
  router: { model: "gemini-2.5-flash", temperature: 0 },
  loop: { model: "gemini-2.5-flash", temperature: 0 },
  "loop-confirmation": { model: "gemini-2.5-pro", temperature: 0 },
  edit: { model: small, temperature: 0, maxOutputTokens: 8_192 }
}

/** Whether a model is of another provider than Google. A user who has that provider's key may have none of Google's. */
const isElsewhere = (model: string): boolean =>
  /^(?:anthropic|ollama|openai)\//.test(model) || (makerOf(model) ?? "google") !== "google"

/**
 * Returns the model for a job in a conversation with this model. Conversations with a Gemini model are compressed by the model
 * that Gemini CLI uses for it (`modelAlias`). With another provider than Google, the conversation's own model does every job.
 */
export const modelFor = (purpose: Purpose, conversationModel: string): ModelConfig => ({
  ...(purpose === "compression"
    ? { model: modelAlias(conversationModel.replace(/^google\//, "")).model }
    : fixed[purpose]),
  ...(isElsewhere(conversationModel) ? { model: conversationModel } : {})
})

/** A model that compresses, with the alias that Gemini CLI gives it. */
export interface CompressionModel {
  readonly alias: string
  readonly model: string
}

const defaultModel: CompressionModel = { alias: "chat-compression-default", model: "gemini-3-pro-preview" }
const pro3: CompressionModel = { alias: "chat-compression-3-pro", model: "gemini-3-pro-preview" }

/** As in Gemini CLI, March 2026. */
const compressionModels: ReadonlyMap<string, CompressionModel> = new Map([
  ["gemini-3-pro-preview", pro3],
  ["gemini-3.1-pro-preview", pro3],
  ["gemini-3-flash-preview", { alias: "chat-compression-3-flash", model: "gemini-3-flash-preview" }],
  ["gemini-2.5-pro", { alias: "chat-compression-2.5-pro", model: "gemini-2.5-pro" }],
  ["gemini-2.5-flash", { alias: "chat-compression-2.5-flash", model: "gemini-2.5-flash" }],
  ["gemini-2.5-flash-lite", { alias: "chat-compression-2.5-flash-lite", model: "gemini-2.5-flash-lite" }]
])

/** Returns the model that compresses conversations with this model. A model that is not in the table gets `defaultModel`. */
export const modelAlias = (name: string): CompressionModel => compressionModels.get(name) ?? defaultModel
