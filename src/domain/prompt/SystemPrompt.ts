import { agentContexts, agentSkills } from "./AgentAndSkillSections.ts"
import { briefTexts } from "./BriefPrompt.ts"
import {
  care,
  compressedWindow,
  coreMandates,
  honesty,
  memoryRules,
  permission,
  preamble,
  secrets,
  sources
} from "./CoreMandates.ts"
import { git, hookContext, interactiveYoloMode, sandbox } from "./EnvironmentSections.ts"
import { answerExamples, answers, finalReminder, operationalGuidelines } from "./Guidelines.ts"
import { has, hasMemory, isModern, type PromptInputs, type SectionKey, sectionKeys } from "./PromptInputs.ts"
import { planningWorkflow, primaryWorkflows, taskTracker } from "./Workflows.ts"

/**
 * Assembles the system prompt: sections in a fixed order, then memory. It contains no date and no folder tree, so it
 * stays the same from turn to turn.
 */

/** One section of the prompt. */
export interface Section {
  readonly key: SectionKey
  /** The heading; the first section has none. */
  readonly title: string
  readonly text: string
}

interface Template {
  readonly title: string
  /** Whether the section is also in the prompt of an agent with a specific task. */
  readonly minimal?: true
  /** The section with which this one is disabled. */
  readonly partOf?: SectionKey
  readonly isFor: (inputs: PromptInputs) => boolean
  readonly text: (inputs: PromptInputs) => string
}

const always = () => true
const canWork = ({ tools }: PromptInputs) => tools.length > 0

/** Each section with the condition under which it is included. */
const templates: Readonly<Record<SectionKey, Template>> = {
  preamble: { title: "", minimal: true, isFor: always, text: preamble },
  coreMandates: { title: "The task", minimal: true, isFor: always, text: coreMandates },
  honesty: { title: "Reports", minimal: true, partOf: "coreMandates", isFor: always, text: honesty },
  sources: {
    title: "What counts as an instruction",
    minimal: true,
    partOf: "coreMandates",
    isFor: always,
    text: sources
  },
  // An agent without tools is not given rules about tools.
  care: { title: "Care", minimal: true, partOf: "coreMandates", isFor: canWork, text: care },
  secrets: { title: "Secrets", minimal: true, partOf: "coreMandates", isFor: canWork, text: secrets },
  permission: { title: "Permission", minimal: true, partOf: "coreMandates", isFor: canWork, text: permission },
  compressedWindow: {
    title: "Compressed context",
    minimal: true,
    partOf: "coreMandates",
    isFor: always,
    text: compressedWindow
  },
  memoryRules: { title: "Memory", partOf: "coreMandates", isFor: always, text: memoryRules },
  agentContexts: { title: "Agents", isFor: ({ agents }) => agents.length > 0, text: agentContexts },
  agentSkills: {
    title: "Skills",
    isFor: (inputs) => inputs.skills.length > 0 && has(inputs, "activate_skill"),
    text: agentSkills
  },
  hookContext: { title: "Hooks", minimal: true, isFor: ({ hasHooks }) => hasHooks, text: hookContext },
  planningWorkflow: { title: "Plan mode", isFor: ({ mode }) => mode === "plan", text: planningWorkflow },
  primaryWorkflows: {
    title: "How to work",
    isFor: (inputs) => inputs.mode !== "plan" && canWork(inputs),
    text: primaryWorkflows
  },
  taskTracker: { title: "Steps", isFor: (inputs) => has(inputs, "write_todos"), text: taskTracker },
  operationalGuidelines: { title: "Tools", minimal: true, isFor: always, text: operationalGuidelines },
  answers: { title: "Answers", minimal: true, partOf: "operationalGuidelines", isFor: always, text: answers },
  answerExamples: {
    title: "Example answers",
    partOf: "operationalGuidelines",
    isFor: (inputs) => !isModern(inputs),
    text: answerExamples
  },
  interactiveYoloMode: {
    title: "Calls run without confirmation",
    isFor: ({ interactive, mode }) => interactive && mode === "all",
    text: interactiveYoloMode
  },
  sandbox: { title: "The machine", minimal: true, isFor: canWork, text: sandbox },
  git: {
    title: "Git",
    minimal: true,
    isFor: (inputs) => inputs.isGit && canWork(inputs),
    text: git
  },
  finalReminder: { title: "Final reminder", isFor: (inputs) => !isModern(inputs), text: finalReminder }
}

const isIn = (inputs: PromptInputs, key: SectionKey): boolean => {
  const { isFor, minimal = false, partOf = key } = templates[key]
  if (inputs.toggles?.[key] === false || inputs.toggles?.[partOf] === false) return false
  if (inputs.size === "none") return key === "preamble"
  if (inputs.size === "brief") return briefTexts[key] !== undefined && isFor(inputs)
  return (inputs.size === "full" || minimal) && isFor(inputs)
}

const sectionOf = (inputs: PromptInputs, key: SectionKey): Section => ({
  key,
  title: templates[key].title,
  text: ((inputs.size === "brief" ? briefTexts[key] : undefined) ?? templates[key].text)(inputs)
})

/** The sections included for these inputs, in order. */
export const sections = (inputs: PromptInputs): ReadonlyArray<Section> =>
  sectionKeys.filter((key) => isIn(inputs, key)).map((key) => sectionOf(inputs, key))

/**
 * The rules of the minimal prompt for an agent whose own prompt says who it is: without identity, memory and offers of agents
 * and skills.
 */
export const agentRules = (inputs: Omit<PromptInputs, "agents" | "interactive" | "size" | "skills">): string =>
  joined(
    sections({ ...inputs, size: "minimal", interactive: false, agents: [], skills: [] })
      .filter(({ key }) => key !== "preamble")
      .map(render)
  )

/** Renders one section. */
export const render = ({ text, title }: Pick<Section, "text" | "title">): string =>
  title === "" ? text : `# ${title}\n\n${text}`

/** At most one blank line in a row. */
const tidied = (text: string): string => text.replace(/\n{3,}/g, "\n\n").trim()

/** Joins pieces with a blank line and drops empty ones. */
export const joined = (pieces: ReadonlyArray<string>): string =>
  tidied(pieces.filter((piece) => piece.trim() !== "").join("\n\n"))

/** The memory to include; none for an agent with a specific task. */
export const memoryOf = ({ memory = "", size }: PromptInputs): string => (hasMemory(size) ? memory.trim() : "")

const placeholder = /\$\{(AgentSkills|SubAgents|AvailableTools|([A-Za-z_][\w.:-]*)_ToolName)\}/g

/**
 * Fills the placeholders of a custom system prompt. Inserted text is not scanned again, and a placeholder for an
 * unknown tool stays as written.
 */
export const substituted = (text: string, inputs: PromptInputs): string => {
  const section = (key: SectionKey) => (templates[key].isFor(inputs) ? render(sectionOf(inputs, key)) : "")
  return text.replace(placeholder, (whole: string, name: string, tool: string | undefined) => {
    if (name === "AgentSkills") return section("agentSkills")
    if (name === "SubAgents") return section("agentContexts")
    if (name === "AvailableTools") return inputs.tools.map((one) => `- ${one}`).join("\n")
    return tool !== undefined && has(inputs, tool) ? tool : whole
  })
}
