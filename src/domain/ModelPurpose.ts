import { modelAlias } from "./strategies/Gemini.ts"

/** What a model is asked for beside the conversation itself. */
export type Purpose = "compression" | "tool-summary" | "title" | "router" | "edit" | "loop" | "loop-confirmation"

/**
 * Which model does a job, and how it is to answer. The length of an answer is a constant of the job and never derived from
 * the size of what is sent (users' pain #7784).
 */
export interface ModelConfig {
  readonly model: string
  readonly temperature?: number
  /** Tokens. */
  readonly maxOutputTokens?: number
}

/** What somebody set otherwise: any part of any job's configuration. */
export type ModelOverrides = Readonly<Partial<Record<Purpose, Partial<ModelConfig>>>>

const small = "gemini-2.5-flash-lite"

/**
 * Spec 5.3 (2,000 tokens of summary), spec 11 (titles by the small model), spec 12 (router
 * and loop check ask the fast one, a stronger one confirms a loop), spec 14 (edits).
 */
const fixed: Readonly<Record<Exclude<Purpose, "compression">, ModelConfig>> = {
  "tool-summary": { model: small, maxOutputTokens: 2_000 },
  title: { model: small, maxOutputTokens: 64 },
  router: { model: "gemini-2.5-flash", temperature: 0 },
  loop: { model: "gemini-2.5-flash", temperature: 0 },
  "loop-confirmation": { model: "gemini-2.5-pro", temperature: 0 },
  edit: { model: small, temperature: 0, maxOutputTokens: 8_192 }
}

/**
 * The model for a job. A compression is done by the family of the conversation's own model, never by a cheaper one (spec
 * 3.5).
 */
export const modelFor = (purpose: Purpose, family: string, overrides: ModelOverrides = {}): ModelConfig => ({
  ...(purpose === "compression" ? { model: modelAlias(family).model } : fixed[purpose]),
  ...overrides[purpose]
})
