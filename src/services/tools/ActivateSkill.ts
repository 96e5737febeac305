import { Effect, Schema } from "effect"
import { firstUnits } from "../../domain/Bytes.ts"
import { words } from "../../domain/ToolResult.ts"
import { type Skill, Skills } from "../Skills.ts"
import { make, type Tool, ToolFailure } from "../Tool.ts"

/** Characters of a skill's description that a model is told before it asks. */
const mostDescription = 300

/** Skills that a model is told of, and characters of a name: a folder full of them would fill every request. */
const mostListed = 100
const mostName = 100

const listed = (skills: ReadonlyArray<Skill>): string =>
  [
    ...skills
      .slice(0, mostListed)
      .map(({ description, name }) => `- ${firstUnits(name, mostName)}: ${firstUnits(description, mostDescription)}`),
    ...(skills.length > mostListed ? [`… and ${skills.length - mostListed} more, by their names`] : [])
  ].join("\n")

const unknown = (name: string, skills: ReadonlyArray<Skill>): ToolFailure =>
  new ToolFailure({
    type: "skill_not_found",
    message:
      skills.length === 0
        ? `there is no skill ${name}: there are none here; go on without`
        : `there is no skill ${name}; there are: ${skills
            .slice(0, mostListed)
            .map((skill) => firstUnits(skill.name, mostName))
            .join(", ")}`
  })

/** Reads a skill's instructions (spec 14, activate_skill). The skills that there are now are told with the tool. */
export const activateSkill: Effect.Effect<Tool, never, Skills> = Effect.gen(function* () {
  const service = yield* Skills
  const { skills } = yield* service.all
  return make({
    name: "activate_skill",
    description: `Reads the instructions of a skill, for work that it is made for. Activate it before you begin such work, and follow it.\n${
      skills.length === 0 ? "There are none at the moment." : `There are:\n${listed(skills)}`
    }`,
    parameters: Schema.Struct({ name: Schema.String.annotate({ description: "The skill's name, as it is listed" }) }),
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
          display: words(`${found.name}: ${found.description}`)
        }
      })
  })
})
