import { type DefinitionProblem, definitionProblemText } from "../../domain/agent/AgentDefinition.ts"
import { type SkillProblem, skillProblemText } from "../../domain/agent/Skill.ts"
import { type SkippedKey, skippedKeyText } from "../../domain/settings/SkippedSetting.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"

/** The result of an import of a Gemini CLI folder, and its reasons in words. */

/** What a row of the report is about. */
export type ImportKind = "setting" | "memory" | "agent" | "skill" | "file"

/** Reasons without details. */
const plainReasons = {
  Missing: "there is no such file",
  LeadsOut: "leads out of the folder",
  Address: "is an address; only files are copied",
  NotBelow: "is not below the file that names it; it is not copied",
  NoText: "only texts are copied: .md, .mdx, .markdown, .txt",
  NoDefinition: "is not an agent definition, which ends in .md",
  NoSkill: "is not the folder of a skill; links are not followed",
  NoPartOfSkill: "is not part of a skill",
  NotRegular: "is not a regular file; links are not followed",
  BesideMemory: "only the files that memory imports are copied",
  NoMeaning: "is not supported"
}

/** Why an entry of the folder is not imported. */
export type SkipReason =
  | { readonly _tag: keyof typeof plainReasons }
  | { readonly _tag: "Setting"; readonly key: SkippedKey }
  /** `detail` is the disk's message. */
  | { readonly _tag: "Unreadable"; readonly detail: string }
  /** It has more than a limit, such as `500 files`. */
  | { readonly _tag: "TooLarge"; readonly limit: string }
  | { readonly _tag: "TooDeep"; readonly levels: number }
  | { readonly _tag: "TooManyImports"; readonly limit: number }
  /** A different file is already in its place. */
  | { readonly _tag: "Differs"; readonly target: string }
  | { readonly _tag: "InvalidAgent"; readonly problem: DefinitionProblem }
  | { readonly _tag: "InvalidSkill"; readonly problem: SkillProblem }
  /** A file of a skill. */
  | { readonly _tag: "File"; readonly file: string; readonly reason: SkipReason }
  /** An entry of the folder that is never imported, by its name. */
  | { readonly _tag: "Never"; readonly name: string }

const signInReason = "sign-in settings are not imported; set GEMINI_API_KEY"

/** Why entries of the folder are never imported, by name. */
const neverReasons: Readonly<Record<string, string>> = {
  commands: "custom commands are not supported; a skill can do the same",
  extensions: "extensions are not imported; copy their memory, skills and servers one by one",
  tmp: "sessions are read where they are",
  history: "Gemini CLI's checkpoints of files are not imported",
  "trustedFolders.json": "trust is not imported; trust each folder with palimpsest trust",
  "oauth_creds.json": signInReason,
  "google_accounts.json": signInReason,
  "mcp-oauth-tokens.json": "sign-in settings are not imported",
  "mcp-oauth-tokens-v2.json": "sign-in settings are not imported",
  policies: "approvals are not imported; set approve and allowed",
  ".env": "may hold keys and is not copied; the one in your .gemini folder is read where it is"
}

/** Whether an entry of the folder is never imported. */
export const isNeverImported = (name: string): boolean => Object.hasOwn(neverReasons, name)

/** A reason in words, in one line. */
export const skipReasonText = (reason: SkipReason): string => {
  switch (reason._tag) {
    case "Setting":
      return skippedKeyText(reason.key)
    case "Unreadable":
      return reason.detail
    case "TooLarge":
      return `has more than ${reason.limit}`
    case "TooDeep":
      return `has folders more than ${reason.levels} deep`
    case "TooManyImports":
      return `only ${reason.limit} imports are followed`
    case "Differs":
      return `${quotedPath(reason.target)} is there and differs`
    case "InvalidAgent":
      return definitionProblemText(reason.problem)
    case "InvalidSkill":
      return skillProblemText(reason.problem)
    case "File":
      return `${reason.file}: ${skipReasonText(reason.reason)}`
    case "Never":
      return neverReasons[reason.name] ?? plainReasons.NoMeaning
    default:
      return plainReasons[reason._tag]
  }
}

/** The result for everything in the folder. `from` is a settings key, or a path below the folder. */
export interface ImportReport {
  /** The folder, links resolved. */
  readonly from: string
  /** The home folder of this program. */
  readonly home: string
  /** Whether nothing was written. */
  readonly dryRun: boolean
  /** `to` is a settings key here, or a file. */
  readonly taken: ReadonlyArray<{
    readonly kind: ImportKind
    readonly from: string
    readonly to: string
    readonly note: string | null
  }>
  /** Already present here and unchanged; `isSame`: with the same content. */
  readonly kept: ReadonlyArray<{
    readonly kind: ImportKind
    readonly from: string
    readonly to: string
    readonly isSame: boolean
  }>
  readonly notTaken: ReadonlyArray<{ readonly kind: ImportKind; readonly from: string; readonly reason: SkipReason }>
}
