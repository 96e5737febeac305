import { Context, type Effect } from "effect"

/** A skill that can be activated. */
export interface Skill {
  readonly name: string
  /** What it is good for: by this a model decides. */
  readonly description: string
  /** Absolute. */
  readonly folder: string
}

/** A skill with all that it says. */
export interface ActiveSkill extends Skill {
  readonly instructions: string
  /** Files of its folder, from there, sorted; without `SKILL.md` itself. */
  readonly files: ReadonlyArray<string>
  /** Whether there are more files than are listed. */
  readonly hasMore: boolean
}

/** The skills there are. */
export interface KnownSkills {
  readonly skills: ReadonlyArray<Skill>
  /** What a person should hear: files that are no skills, one line each. */
  readonly notices: ReadonlyArray<string>
}

/** Instructions for special work, which a model reads when it needs them. */
export class Skills extends Context.Service<
  Skills,
  {
    /** All of them, by name. */
    readonly all: Effect.Effect<KnownSkills>
    /** One of them; undefined: there is none of that name, or it can no longer be read. */
    readonly load: (name: string) => Effect.Effect<ActiveSkill | undefined>
  }
>()("palimpsest/services/Skills") {}
