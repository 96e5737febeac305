import { type DefinitionProblem, definitionProblemText } from "./AgentDefinition.ts"
import { type SkillProblem, skillProblemText } from "./Skill.ts"

/** A file or folder of agents or skills that was left out or not read to its end, and why. */
export interface UnusableFile {
  readonly file: string
  readonly reason:
    | { readonly _tag: "Untrusted"; readonly folder: string }
    /** `detail` is the disk's message. */
    | { readonly _tag: "Unreadable"; readonly detail: string }
    | { readonly _tag: "NoFile" }
    | { readonly _tag: "TooLarge" }
    | { readonly _tag: "InvalidAgent"; readonly problem: DefinitionProblem }
    | { readonly _tag: "InvalidSkill"; readonly problem: SkillProblem }
    | { readonly _tag: "TooManyAgents"; readonly maxAgents: number }
}

const reasonText = (reason: UnusableFile["reason"]): string => {
  switch (reason._tag) {
    case "Untrusted":
      return `it is in ${reason.folder}, which is not trusted; it is ignored`
    case "Unreadable":
      return `cannot be read: ${reason.detail}`
    case "NoFile":
      return "expected a file"
    case "TooLarge":
      return "expected at most 1 MiB"
    case "InvalidAgent":
      return definitionProblemText(reason.problem)
    case "InvalidSkill":
      return skillProblemText(reason.problem)
    case "TooManyAgents":
      return `expected at most ${reason.maxAgents} agents; the rest is ignored`
  }
}

/** A problem in words, in one line: the file, and what was expected. */
export const unusableFileText = ({ file, reason }: UnusableFile): string => `${file}: ${reasonText(reason)}`
