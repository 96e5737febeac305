import { Schema } from "effect"
import type { ApprovalMode } from "../Approval.ts"
import type { Sandbox } from "../EnvironmentMessage.ts"

/** What a system prompt is made of. */

/** How much of it is sent: all, what an agent with a task of its own needs, or who it is (pi-openclaw B11). */
export const PromptSize = Schema.Literals(["full", "minimal", "none"])
export type PromptSize = typeof PromptSize.Type

/** The sections, in the order in which they stand (spec 10). Each can be switched off by its name. */
export const sectionKeys = [
  "preamble",
  "coreMandates",
  "agentContexts",
  "agentSkills",
  "hookContext",
  "planningWorkflow",
  "primaryWorkflows",
  "taskTracker",
  "operationalGuidelines",
  "interactiveYoloMode",
  "sandbox",
  "git",
  "finalReminder"
] as const
/** The name of a section. */
export type SectionKey = (typeof sectionKeys)[number]

/** Sections that somebody switched on or off; what is absent is on. */
export type SectionToggles = Readonly<Partial<Record<SectionKey, boolean>>>

/** Something that can be asked for by its name. */
export interface Offer {
  readonly name: string
  readonly description: string
}

/** All that a system prompt depends on: equal inputs give the same bytes. */
export interface PromptInputs {
  readonly size: PromptSize
  /** Its name. */
  readonly model: string
  /** Whether somebody is there to answer. */
  readonly interactive: boolean
  readonly mode: ApprovalMode
  /** Those that work can be given to. Empty: delegation is not available. */
  readonly agents: ReadonlyArray<Offer>
  readonly skills: ReadonlyArray<Offer>
  /** Names of all tools. */
  readonly tools: ReadonlyArray<string>
  /** Whether there are hooks that may add something. */
  readonly hasHooks: boolean
  /** Whether the working folder is in a repository of git. */
  readonly isGit: boolean
  readonly sandbox: Sandbox
  /** Where the plan stands: the one that is made (mode `plan`), or one that was approved. */
  readonly planFile?: string | undefined
  readonly toggles?: SectionToggles | undefined
  /** What the memory files say, with their own frames. */
  readonly memory?: string | undefined
}

/** Whether a tool of this name can be called. */
export const has = ({ tools }: Pick<PromptInputs, "tools">, name: string): boolean => tools.includes(name)

/** Gemini 3 and later need to be told less (spec 10). */
export const isModern = ({ model }: Pick<PromptInputs, "model">): boolean =>
  /^(?:models\/)?gemini-(?:[3-9]|\d{2,})(?!\d)/.test(model.trim())

/** A text of these lines; those that are undefined are left out. */
export const lines = (...all: ReadonlyArray<string | undefined>): string =>
  all.filter((line) => line !== undefined).join("\n")
