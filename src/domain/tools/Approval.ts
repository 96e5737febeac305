/** Decides which tool calls run without asking: modes, grants, and the answers to calls that may not run. */

import { Schema } from "effect"
import { widerGrants } from "./ShellCommand.ts"

/**
 * Which calls run without asking the user (`--approve`): none that change anything, file edits, or all. With `plan`, nothing is
 * changed until the user has approved a plan, whether or not the call would ask.
 */
export const ApprovalMode = Schema.Literals(["none", "edits", "all", "plan"])
export type ApprovalMode = typeof ApprovalMode.Type

/** The modes from the narrowest to the widest. */
const modesByWidth: ReadonlyArray<ApprovalMode> = ["plan", "none", "edits", "all"]

/** The narrower of two modes. A mode that a program without types made up counts as `none`. */
export const narrowerMode = (one: ApprovalMode, other: ApprovalMode): ApprovalMode => {
  const modes = [one, other].map((mode) => (modesByWidth.includes(mode) ? mode : "none"))
  return modesByWidth.find((mode) => modes.includes(mode)) ?? "none"
}

/** The present mode, and the mode that follows a plan: they differ only in plan mode. */
export interface ApprovalModes {
  readonly now: ApprovalMode
  readonly before: ApprovalMode
}

/** The modes of a new session. One that starts in plan mode asks after the plan. */
export const startingModes = (mode: ApprovalMode): ApprovalModes => withMode({ now: mode, before: "none" }, mode)

/** The modes after a change. */
export const withMode = ({ before }: ApprovalModes, mode: ApprovalMode): ApprovalModes => ({
  now: mode,
  before: mode === "plan" ? before : mode
})

/** The modes after the end of a plan. Without a plan nothing changes. */
export const withoutPlan = ({ before }: ApprovalModes): ApprovalModes => ({ now: before, before })

/** The user's answer to a call. `no` may include a message to the model. */
export type Answer =
  | { readonly _tag: "Once" }
  /** Allows this call and everything its grants cover, until the program ends. */
  | { readonly _tag: "Session" }
  /** Like `Session`, and kept in the settings. */
  | { readonly _tag: "Always" }
  | { readonly _tag: "No"; readonly words: string }
  /** Allows the call once, with this text in the place of what the question lets the user edit. */
  | { readonly _tag: "Edited"; readonly text: string }

/** The decision whether a call may run. */
export type Decision =
  | { readonly _tag: "Allowed" }
  /** Runs with this text in the place of what the question let the user edit. */
  | { readonly _tag: "Edited"; readonly text: string }
  /** The user said no, in these words. */
  | { readonly _tag: "Denied"; readonly words: string }
  /** Refused without asking. `why` gives the reason and the alternative. */
  | { readonly _tag: "Refused"; readonly why: string }

/**
 * What a tool does to the world. `read` only reads: it runs in parallel and does not ask. `edit` changes files, `execute` may do
 * anything, and `fetch` reads from outside the computer, or claims to, as tools of MCP servers do. All but `read` ask first
 * unless they are already allowed.
 */
export type ToolKind = "read" | "edit" | "execute" | "fetch"

/** The tool that runs commands, as Gemini CLI names it. */
export const shellTool = "run_shell_command"

/** The grant for file edits in every folder. */
export const editGrant = "edit"

/** The folder that a grant names at its end. */
const folderOf = / in (?=\/|[A-Za-z]:[\\/]|\\\\)/u

/** Whether a grant says where it applies. */
const namesPlace = (grant: string): boolean => folderOf.test(grant) || / \$ |^memory:\//.test(grant)

/** Returns a grant that applies only in the sessions of a folder. One that names its place already is returned unchanged. */
export const grantIn = (grant: string, folder: string | undefined): string =>
  folder === undefined || namesPlace(grant) ? grant : `${grant} in ${folder}`

const isEditGrant = (grant: string): boolean => grant === editGrant || grant.startsWith(`${editGrant} in `)

/** Returns the grant for edits of one file that `editGrant` does not cover (SteeringFiles.ts). */
export const fileGrant = (place: string): string => `${editGrant}:${place}`

/** Returns whether a grant may be kept in the settings. A file that runs by itself asks again in the next session. */
export const canPersist = (grant: string): boolean => !grant.startsWith(fileGrant(""))

const ofServers = "mcp:"

/** Returns the grant for all tools of an MCP server. */
export const serverGrant = (server: string): string => `${ofServers}${server}`

/** Returns what a grant allows, in words. */
export const grantText = (grant: string): string => {
  const split = folderOf.exec(grant)
  const [what, where] =
    split === null
      ? [grant, namesPlace(grant) || grant.startsWith(`${editGrant}:`) ? "" : " in every folder"]
      : [grant.slice(0, split.index), ` in ${grant.slice(split.index + split[0].length)}`]
  const [kind = "", name = ""] = /^([a-z]+):(.*)$/su.exec(what)?.slice(1) ?? [what]
  switch (kind) {
    case "edit":
      return `edits of ${name === "" ? "files" : name}${where}`
    case "shell": {
      const [folder, words] = name.split(/ \$ (.*)/su)
      return words === undefined ? `the command ${name}${where}` : `exactly the command ${words}, in ${folder}`
    }
    case "mcp":
      return `the tools of the MCP server ${name}${where}`
    case "fetch":
      return `pages of ${name}${where}`
    case "memory":
      return `facts in ${name === "global" ? "your own memory" : name}${where}`
    case "browser":
      return `clicks and typing in the browser${where}`
    default:
      return `${what}${where}`
  }
}

/** A call that asks, with what decides whether it may run. */
export interface ApprovalRequest {
  readonly kind: ToolKind
  /** The call runs without asking when all of these are allowed. Empty: it always asks. */
  readonly grants: ReadonlyArray<string>
  /** The only places the call changes, absolute with links followed. Absent: unknown. */
  readonly touches?: ReadonlyArray<string> | undefined
  /** Asks whatever was granted: the user has to see it. */
  readonly mustBeSeen?: boolean | undefined
  /** Asks in every mode: a hook demands the user's review. */
  readonly needsReview?: boolean | undefined
}

/** The state that decides about a call. */
export interface ApprovalRules {
  readonly mode: ApprovalMode
  readonly granted: ReadonlySet<string>
  /** The folder that the agent works in: grants that name it count. */
  readonly folder?: string | undefined
  /** The one file that may be written in plan mode, absolute with links followed. */
  readonly planFile?: string | undefined
}

/** Whether a call runs without asking, asks the user, or is refused. */
export type Verdict = "allowed" | "asked" | "refused"

const isPlanOnly = ({ touches = [] }: ApprovalRequest, planFile: string | undefined): boolean =>
  touches.length > 0 && touches.every((place) => place === planFile)

/**
 * Decides about a call. In plan mode nothing is edited or executed except the plan file, whatever was granted before. Network
 * reads ask as usual. Tools of MCP servers ask each time: that they only read is the server's own claim, and earlier grants were
 * not given for a plan.
 */
export const verdict = ({ folder, granted, mode, planFile }: ApprovalRules, wish: ApprovalRequest): Verdict => {
  const { grants, needsReview: isDoubted = false, kind, mustBeSeen = false } = wish
  const unasked: Verdict = isDoubted ? "asked" : "allowed"
  if (mode === "all") return unasked
  if (mode === "plan" && (kind === "edit" || kind === "execute")) {
    return kind === "edit" && isPlanOnly(wish, planFile) ? unasked : "refused"
  }
  if (isDoubted || mustBeSeen || grants.length === 0) return "asked"
  const isHeld = (grant: string) =>
    (mode === "edits" && isEditGrant(grant)) ||
    (!(mode === "plan" && grant.startsWith(ofServers)) && isGranted(granted, grant, folder))
  return grants.every(isHeld) ? "allowed" : "asked"
}

const isGranted = (granted: ReadonlySet<string>, grant: string, folder: string | undefined): boolean =>
  [grant, grantIn(grant, folder), ...(isEditGrant(grant) ? [editGrant] : widerGrants(grant))].some((held) =>
    granted.has(held)
  )

/** Returns the mode to show: `edits` also where a grant lets edits in the folder run, because they do not ask either. */
export const shownMode = ({ folder, granted, mode }: Omit<ApprovalRules, "planFile">): ApprovalMode =>
  mode === "none" && isGranted(granted, editGrant, folder) ? "edits" : mode

/** The modes that Shift+Tab goes through. `all` is among them only in a session that began with it. */
export const nextMode = (mode: ApprovalMode, first: ApprovalMode): ApprovalMode => {
  const modes: ReadonlyArray<ApprovalMode> = ["none", "edits", "plan", ...(first === "all" ? (["all"] as const) : [])]
  return modes[(modes.indexOf(mode) + 1) % modes.length] ?? "none"
}

/** A grant that is in force. */
export interface HeldGrant {
  readonly grant: string
  /** Whether the settings keep it; otherwise it lasts until the program ends. */
  readonly isKept: boolean
}

/** Returns the answer to the model for a call that would change something in plan mode. */
export const planModeRefusal = (tool: string, planFile: string | undefined): string =>
  `${tool} was not run: while a plan is made, nothing may be changed or executed. ${
    planFile === undefined
      ? "Look at what you need, then give the plan as your answer"
      : `Look at what you need, write the plan to ${planFile}, then call exit_plan_mode, which shows it to the user`
  }`

const denialOf = (tool: string): string => `the user denied this call of ${tool}`

/** Whether the answer to a call says that the user denied it. */
export const wasDenied = (tool: string, answer: string): boolean => answer.includes(denialOf(tool))

/** Returns the answer to the model for a call that the user denies, with what the tool suggests and the user's words. */
export const denial = (tool: string, words: string, otherwise = ""): string => {
  const advice = [otherwise, words === "" ? "" : `they say: ${words}`].filter((text) => text !== "").join("; ")
  return `${denialOf(tool)}; ${advice === "" ? "do without it, or ask what to do" : advice}`
}

/** Returns the note for the model about a call that the user changed before it ran. */
export const editedNote = (argument: string, text: string): string =>
  `[the user changed the ${argument} before it ran, to: ${text}]`
