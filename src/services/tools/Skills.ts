import { Context, type Effect } from "effect"
import { type SkillProblem, skillProblemText } from "../../domain/agent/Skill.ts"

/** A skill that can be activated. */
export interface Skill {
  readonly name: string
  /** What the skill is for; the model chooses by this text. */
  readonly description: string
  /** The folder of the skill, absolute. */
  readonly folder: string
}

/** A skill with its full text. */
export interface ActiveSkill extends Skill {
  readonly instructions: string
  /** Files of its folder, relative to it and sorted, without `SKILL.md` itself. */
  readonly files: ReadonlyArray<string>
  /** Whether there are more files than the list shows. */
  readonly hasMore: boolean
}

/** A skill or folder that cannot be used, and why. */
export interface UnusableSkill {
  readonly _tag: "UnusableSkill"
  /** The file or folder. */
  readonly file: string
  readonly reason:
    | { readonly _tag: "Untrusted"; readonly folder: string }
    /** `detail` is the disk's message. */
    | { readonly _tag: "Unreadable"; readonly detail: string }
    | { readonly _tag: "NoFile" }
    | { readonly _tag: "TooLarge" }
    | { readonly _tag: "Invalid"; readonly problem: SkillProblem }
}

/** Why a skill cannot be used, in one line. */
export const unusableSkillText = ({ file, reason }: UnusableSkill): string => {
  switch (reason._tag) {
    case "Untrusted":
      return `${file}: it is in ${reason.folder}, which is not trusted; it was left out`
    case "Unreadable":
      return `${file}: ${reason.detail}`
    case "NoFile":
      return `${file}: expected a file`
    case "TooLarge":
      return `${file}: expected at most 1 MiB`
    case "Invalid":
      return `${file}: ${skillProblemText(reason.problem)}`
  }
}

/** The available skills. */
export interface KnownSkills {
  readonly skills: ReadonlyArray<Skill>
  readonly problems: ReadonlyArray<UnusableSkill>
}

/** Skills: instructions for special tasks, which a model reads when it needs them. */
export class Skills extends Context.Service<
  Skills,
  {
    /** All skills, by name. */
    readonly all: Effect.Effect<KnownSkills>
    /** Reads a skill. Undefined: no skill has that name, or it can no longer be read. */
    readonly load: (name: string) => Effect.Effect<ActiveSkill | undefined>
  }
>()("palimpsest/services/tools/Skills") {}
