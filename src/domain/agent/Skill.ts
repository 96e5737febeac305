/** A skill: a folder with a `SKILL.md` whose front matter says what it is good for. */

import { Result, Schema } from "effect"
import { oneLine } from "../text/OneLine.ts"
import { frontMatter } from "./AgentDefinition.ts"

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

const noFields = "front matter: expected name and description, both texts"

/** Parses a `SKILL.md`. The failure says in one line what was expected. */
export const parseSkill = (file: string): Result.Result<SkillFile, string> => {
  const front = frontMatter(file, "name and description")
  if (Result.isFailure(front)) return Result.fail(front.failure)
  const read = decodeFront(front.success.fields)
  if (Result.isFailure(read)) return Result.fail(noFields)
  const name = cleanName(read.success.name)
  const description = oneLine(read.success.description)
  if (name === "" || description === "") return Result.fail(noFields)
  return Result.succeed({ name, description, instructions: front.success.body })
}
