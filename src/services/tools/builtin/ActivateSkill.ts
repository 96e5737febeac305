/** The `activate_skill` tool: reads the instructions of a skill. */

import { Effect, Schema } from "effect"
import { firstUnits } from "../../../domain/text/Bytes.ts"
import { textDisplay } from "../../../domain/tools/ToolResult.ts"
import { type Skill, Skills } from "../Skills.ts"
import { make, type Tool, ToolFailure } from "../Tool.ts"

/** Maximum length of a skill's description in the description of the tool. */
const maxDescriptionChars = 300

/** Maximum number of listed skills, and length of a name: a folder full of skills would fill every request. */
const maxListedSkills = 100
const maxNameChars = 100

const listed = (skills: ReadonlyArray<Skill>): string =>
  [
    ...skills
      .slice(0, maxListedSkills)
      .map(
        ({ description, name }) =>
          `- ${firstUnits(name, maxNameChars)}: ${firstUnits(description, maxDescriptionChars)}`
      ),
    ...(skills.length > maxListedSkills ? [`… and ${skills.length - maxListedSkills} more, by their names`] : [])
  ].join("\n")

const unknown = (name: string, skills: ReadonlyArray<Skill>): ToolFailure =>
  new ToolFailure({
    type: "skill_not_found",
    message:
      skills.length === 0
        ? `there is no skill ${name}, and there are no others here; continue without one`
        : `there is no skill ${name}; the skills are: ${skills
            .slice(0, maxListedSkills)
            .map((skill) => firstUnits(skill.name, maxNameChars))
            .join(", ")}`
  })

/** The `activate_skill` tool. Its description lists the skills. */
export const activateSkill: Effect.Effect<Tool, never, Skills> = Effect.gen(function* () {
  const service = yield* Skills
  const { skills } = yield* service.all
  return make({
    name: "activate_skill",
    description: `Reads the instructions of a skill. Activate a skill before you start the kind of work that it is for, and follow it.\n${
      skills.length === 0 ? "There are no skills at the moment." : `Skills:\n${listed(skills)}`
    }`,
    parameters: Schema.Struct({ name: Schema.String.annotate({ description: "The name of the skill, as listed" }) }),
    result: Schema.Struct({
      skill: Schema.String,
      instructions: Schema.String,
      folder: Schema.String,
      files: Schema.Array(Schema.String)
    }),
    kind: "read",
    keeps: true,
    title: ({ name }) => name,
    run: ({ name }) =>
      Effect.gen(function* () {
        const found = yield* service.load(name.trim())
        if (found === undefined) return yield* unknown(name, (yield* service.all).skills)
        const { files, folder, hasMore, instructions } = found
        return {
          value: {
            skill: found.name,
            instructions,
            folder,
            files: hasMore ? [...files, "… and more"] : files
          },
          display: textDisplay(`${found.name}: ${found.description}`)
        }
      })
  })
})
