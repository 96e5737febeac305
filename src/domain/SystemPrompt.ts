import { coreMandates, preamble } from "./prompt/CoreMandates.ts"
import { finalReminder, operationalGuidelines } from "./prompt/Guidelines.ts"
import { agentContexts, agentSkills } from "./prompt/Offers.ts"
import { has, isModern, type PromptInputs, type SectionKey, sectionKeys } from "./prompt/PromptInputs.ts"
import { git, hookContext, interactiveYoloMode, sandbox } from "./prompt/Surroundings.ts"
import { planningWorkflow, primaryWorkflows, taskTracker } from "./prompt/Workflows.ts"

/**
 * The system prompt: sections that stand in one order, then the memory (spec 10). It holds no date and no tree of folders,
 * so that it stays the same from turn to turn.
 */

/** One piece of it. */
export interface Section {
  readonly key: SectionKey
  /** Its heading; the first has none. */
  readonly title: string
  readonly text: string
}

interface Template {
  readonly title: string
  /** Whether it also stands in the prompt of an agent with a task of its own (pi-openclaw B11). */
  readonly minimal?: true
  readonly isFor: (inputs: PromptInputs) => boolean
  readonly text: (inputs: PromptInputs) => string
}

const always = () => true
const canWork = ({ tools }: PromptInputs) => tools.length > 0

/** Spec 10, guards. */
const templates: Readonly<Record<SectionKey, Template>> = {
  preamble: { title: "", minimal: true, isFor: always, text: preamble },
  coreMandates: { title: "Ground rules", minimal: true, isFor: always, text: coreMandates },
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
  operationalGuidelines: { title: "Tools and answers", minimal: true, isFor: always, text: operationalGuidelines },
  interactiveYoloMode: {
    title: "Everything runs unasked",
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
  finalReminder: { title: "Last of all", isFor: (inputs) => !isModern(inputs), text: finalReminder }
}

const isIn = (inputs: PromptInputs, key: SectionKey): boolean => {
  const { isFor, minimal = false } = templates[key]
  if (inputs.toggles?.[key] === false) return false
  if (inputs.size === "none") return key === "preamble"
  return (inputs.size === "full" || minimal) && isFor(inputs)
}

const sectionOf = (inputs: PromptInputs, key: SectionKey): Section => ({
  key,
  title: templates[key].title,
  text: templates[key].text(inputs)
})

/** The sections that hold for these inputs, in their order. */
export const sections = (inputs: PromptInputs): ReadonlyArray<Section> =>
  sectionKeys.filter((key) => isIn(inputs, key)).map((key) => sectionOf(inputs, key))

/** A section as it stands in the prompt. */
export const render = ({ text, title }: Pick<Section, "text" | "title">): string =>
  title === "" ? text : `# ${title}\n\n${text}`

/** Spec 10: no more than one blank line anywhere. */
const tidied = (text: string): string => text.replace(/\n{3,}/g, "\n\n").trim()

/** Puts pieces together, a blank line between them; those that say nothing are left out. */
export const joined = (pieces: ReadonlyArray<string>): string =>
  tidied(pieces.filter((piece) => piece.trim() !== "").join("\n\n"))

/** The memory that goes with a prompt: to an agent with a task of its own none does. */
export const memoryOf = ({ memory = "", size }: PromptInputs): string => (size === "full" ? memory.trim() : "")

const placeholder = /\$\{(AgentSkills|SubAgents|AvailableTools|([A-Za-z_][\w.:-]*)_ToolName)\}/g

/**
 * What a prompt of the person's own says once its placeholders stand for something (spec 10). What is put in is not looked
 * at again, and a tool that there is not stays as it was written.
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
