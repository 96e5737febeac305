import { Result, Schema } from "effect"
import { oneLine } from "../text/OneLine.ts"
import { frontMatter, type FrontMatterProblem } from "./AgentDefinition.ts"

/** A skill: a folder with a `SKILL.md` whose front matter says what it is good for. */

/** The content of `SKILL.md`. */
export interface SkillFile {
  readonly name: string
  readonly description: string
  /** The text below the front matter. */
  readonly instructions: string
}

/** The file that makes a folder a skill. */
export const skillFile = "SKILL.md"

const Front = Schema.Struct({ name: Schema.NonEmptyString, description: Schema.NonEmptyString })
const decodeFront = Schema.decodeUnknownResult(Front)

/** A skill's name in a form that a model can repeat: without characters of paths and line breaks. */
const cleanName = (name: string): string => oneLine(name).replace(/[:\\/<>*?"|]/g, "-")

/** Why a `SKILL.md` is invalid. */
export type SkillProblem =
  | FrontMatterProblem
  /** The name or the description is missing, blank or no text. */
  | { readonly _tag: "InvalidFields" }

/** A problem in words: what was expected, in one line. */
export const skillProblemText = (problem: SkillProblem): string => {
  switch (problem._tag) {
    case "NoFrontMatter":
      return "expected front matter: a line ---, name and description, a line ---"
    case "NoYaml":
      return `front matter: expected YAML; ${problem.detail}`
    case "InvalidFields":
      return "front matter: expected name and description, both texts"
  }
}

/** Parses a `SKILL.md`. */
export const parseSkill = (file: string): Result.Result<SkillFile, SkillProblem> => {
  const front = frontMatter(file)
  if (Result.isFailure(front)) return Result.fail(front.failure)
  const read = decodeFront(front.success.fields)
  if (Result.isFailure(read)) return Result.fail({ _tag: "InvalidFields" })
  const name = cleanName(read.success.name)
  const description = oneLine(read.success.description)
  if (name === "" || description === "") return Result.fail({ _tag: "InvalidFields" })
  return Result.succeed({ name, description, instructions: front.success.body })
}
