import { Schema } from "effect"
import type { IgnoreChoice } from "../IgnoreRules.ts"

/** What the tools that look through folders have in common in their arguments (spec 13). */

/** Whether ignore rules count; all do where nothing is said. */
export const filterOptions = Schema.optionalKey(
  Schema.Struct({
    respect_git_ignore: Schema.optionalKey(Schema.Boolean),
    respect_gemini_ignore: Schema.optionalKey(Schema.Boolean)
  })
).annotate({ description: "Whether the ignore rules of git, and those of the workspace, leave files out; both do" })

/** The rules that count for a call. */
export const choiceOf = ({
  respect_gemini_ignore: own = true,
  respect_git_ignore: git = true
}: {
  readonly respect_git_ignore?: boolean | undefined
  readonly respect_gemini_ignore?: boolean | undefined
} = {}): IgnoreChoice => ({ git, own, usual: true })

/** Arguments where what is null is absent: models send both for "nothing". */
export const withoutNulls = (args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null && value !== undefined))
