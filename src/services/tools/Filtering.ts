import { Schema } from "effect"
import type { FileSettings } from "../FileLimits.ts"
import type { IgnoreChoice } from "../IgnoreRules.ts"

/** What the tools that look through folders have in common in their arguments (spec 13). */

/** Whether ignore rules count; where nothing is said they do as the settings say. */
export const filterOptions = Schema.optionalKey(
  Schema.Struct({
    respect_git_ignore: Schema.optionalKey(Schema.Boolean),
    respect_gemini_ignore: Schema.optionalKey(Schema.Boolean)
  })
).annotate({
  description: "Whether the ignore rules of git, and those of the workspace, leave files out; usually both do"
})

/** The rules that count for a call: what it says, else what the settings say. */
export const choiceOf = (
  wanted:
    | {
        readonly respect_git_ignore?: boolean | undefined
        readonly respect_gemini_ignore?: boolean | undefined
      }
    | undefined,
  usual: Pick<FileSettings, "respectGeminiIgnore" | "respectGitIgnore">
): IgnoreChoice => ({
  git: wanted?.respect_git_ignore ?? usual.respectGitIgnore,
  own: wanted?.respect_gemini_ignore ?? usual.respectGeminiIgnore,
  usual: true
})

/** Arguments where what is null is absent: models send both for "nothing". */
export const withoutNulls = (args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null && value !== undefined))
