/** The inputs of the system prompt. */

import { Schema } from "effect"
import type { ApprovalMode } from "../tools/Approval.ts"
import type { Sandbox } from "./EnvironmentMessage.ts"

/** How much of the prompt is sent: everything, some 300 words, what an agent with a specific task needs, or the identity only. */
export const PromptSize = Schema.Literals(["full", "brief", "minimal", "none"])
export type PromptSize = typeof PromptSize.Type

/**
 * The sections in order. Each can be disabled by its name. From `planningWorkflow` on, a section may change during a
 * conversation; what is before that stays as it is, so that a provider's cache holds it.
 */
export const sectionKeys = [
  "preamble",
  "coreMandates",
  "honesty",
  "sources",
  "care",
  "secrets",
  "permission",
  "compressedWindow",
  "memoryRules",
  "agentContexts",
  "agentSkills",
  "hookContext",
  "taskTracker",
  "operationalGuidelines",
  "answers",
  "answerExamples",
  "sandbox",
  "git",
  "planningWorkflow",
  "primaryWorkflows",
  "interactiveYoloMode",
  "finalReminder"
] as const
/** The name of a section. */
export type SectionKey = (typeof sectionKeys)[number]

/** Sections enabled or disabled explicitly; absent sections are enabled. */
export type SectionToggles = Readonly<Partial<Record<SectionKey, boolean>>>

/** Something the model can request by name. */
export interface Offer {
  readonly name: string
  readonly description: string
}

/** Everything the system prompt depends on. Equal inputs give equal bytes. */
export interface PromptInputs {
  readonly size: PromptSize
  /** The model's name. */
  readonly model: string
  /** Whether a user can answer questions. */
  readonly interactive: boolean
  readonly mode: ApprovalMode
  /** Agents to delegate to. Empty: no delegation. */
  readonly agents: ReadonlyArray<Offer>
  readonly skills: ReadonlyArray<Offer>
  /** Names of all tools. */
  readonly tools: ReadonlyArray<string>
  /** Whether hooks may add context. */
  readonly hasHooks: boolean
  /** Whether the working folder is in a Git repository. */
  readonly isGit: boolean
  readonly sandbox: Sandbox
  /** Path of the plan being written (plan mode) or already approved. */
  readonly planFile?: string | undefined
  readonly toggles?: SectionToggles | undefined
  /** Rendered memory, with its enclosing elements. */
  readonly memory?: string | undefined
}

/** Whether a tool of this name is available. */
export const has = ({ tools }: Pick<PromptInputs, "tools">, name: string): boolean => tools.includes(name)

/** Whether the prompt ends with memory. */
export const hasMemory = (size: PromptSize): boolean => size === "full" || size === "brief"

/** Gemini 3 and later need less instruction. */
export const isModern = ({ model }: Pick<PromptInputs, "model">): boolean =>
  /^(?:models\/)?gemini-(?:[3-9]|\d{2,})(?!\d)/.test(model.trim())

/** Joins lines, without the undefined ones. */
export const lines = (...all: ReadonlyArray<string | undefined>): string =>
  all.filter((line) => line !== undefined).join("\n")
