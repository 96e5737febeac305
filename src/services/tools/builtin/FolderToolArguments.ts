import { Schema } from "effect"
import type { FileSettings } from "../../workspace/FileLimits.ts"
import type { IgnoreChoice } from "../../workspace/IgnoreRules.ts"

/** Arguments that the tools for folders share. */

/** Whether ignore rules apply. Default: as the settings say. */
export const filterOptions = Schema.optionalKey(
  Schema.Struct({
    respect_git_ignore: Schema.optionalKey(Schema.Boolean),
    respect_gemini_ignore: Schema.optionalKey(Schema.Boolean)
  })
).annotate({
  description: "Whether Git's ignore rules and the workspace's own exclude files. Default: both"
})

/** The ignore rules of a call: its arguments, else the settings. */
export const choiceOf = (
  args:
    | {
        readonly respect_git_ignore?: boolean | undefined
        readonly respect_gemini_ignore?: boolean | undefined
      }
    | undefined,
  defaults: Pick<FileSettings, "respectGeminiIgnore" | "respectGitIgnore">
): IgnoreChoice => ({
  git: args?.respect_git_ignore ?? defaults.respectGitIgnore,
  own: args?.respect_gemini_ignore ?? defaults.respectGeminiIgnore,
  vendored: true
})

/** Arguments without those that are null: models send null for an absent argument. */
export const withoutNulls = (args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null && value !== undefined))
