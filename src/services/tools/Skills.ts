/** The contract of skills: which are available, and the full text of each on request. */

import { Context, type Effect } from "effect"
import type { UnusableFile } from "../../domain/agent/UnusableFile.ts"

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

/** The available skills. */
export interface KnownSkills {
  readonly skills: ReadonlyArray<Skill>
  readonly problems: ReadonlyArray<UnusableFile>
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
