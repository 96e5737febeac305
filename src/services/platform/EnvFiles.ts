import { Context } from "effect"
import {
  type DotEnvProblem,
  dotEnvProblemText,
  endpointVariable,
  type VariableProblem,
  variableProblemText
} from "../../domain/settings/DotEnv.ts"
import type { HiddenValue } from "../../domain/text/ChildEnvironment.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"

/** The contract of `.env` files: their variables, and notices about them. */

/** Something a user should know about `.env` files. No notice holds a value. */
export type EnvNotice =
  /** The answers about trust cannot be read. */
  | { readonly _tag: "TrustUnknown"; readonly detail: string }
  /** The file could not be read; `detail` names it. */
  | { readonly _tag: "Unreadable"; readonly detail: string }
  | { readonly _tag: "TooLarge"; readonly file: string }
  | { readonly _tag: "NoText"; readonly file: string }
  /** A line was left out, and `more` others. */
  | { readonly _tag: "BrokenLine"; readonly file: string; readonly problem: DotEnvProblem; readonly more: number }
  /** Variables that such a file may not set. */
  | { readonly _tag: "NotTaken"; readonly file: string; readonly names: ReadonlyArray<string> }
  /** The model is asked at this address, with the file's own key. */
  | { readonly _tag: "EndpointUsed"; readonly file: string; readonly address: string }
  | {
      readonly _tag: "VariableLeftOut"
      readonly file: string
      readonly name: string
      readonly problem: VariableProblem
    }

/** A notice in one line. */
export const envNoticeText = (notice: EnvNotice): string => {
  const shown = "file" in notice ? quotedPath(notice.file) : ""
  switch (notice._tag) {
    case "TrustUnknown":
      return notice.detail
    case "Unreadable":
      return `${notice.detail}; it is ignored`
    case "TooLarge":
      return `${shown} has more than 64 KiB; it is ignored`
    case "NoText":
      return `${shown} is not UTF-8 text; it is ignored`
    case "BrokenLine": {
      const { more, problem } = notice
      const others = more === 0 ? "the line is ignored" : `this line and ${more} more are ignored`
      return `${shown}, line ${problem.line}: ${dotEnvProblemText(problem)}; ${others}`
    }
    case "NotTaken":
      return `${shown}: ${notice.names.join(", ")} cannot be set in such a file`
    case "EndpointUsed":
      return `the model is asked at ${notice.address}, as ${endpointVariable} in ${shown} says`
    case "VariableLeftOut":
      return `${shown}: ${notice.name} is ignored: ${variableProblemText(notice.problem)}; set it in the environment to use it`
  }
}

/** The variables of a `.env` file. The real environment overrides them, and child processes do not get them. */
export class EnvFiles extends Context.Service<
  EnvFiles,
  {
    /** The file in use. */
    readonly file: string | undefined
    /** The folder of that file, links followed; undefined for the user's own file. */
    readonly folder?: string | undefined
    /** Its variables by name. */
    readonly variables: Readonly<Record<string, string>>
    /** Its secrets, which no output may show. */
    readonly hidden: ReadonlyArray<HiddenValue>
    /** Files that were ignored because their folder is not trusted. */
    readonly untrusted: ReadonlyArray<string>
    /** Notices for the user about such files. */
    readonly notices: ReadonlyArray<EnvNotice>
  }
>()("palimpsest/services/platform/EnvFiles") {}
