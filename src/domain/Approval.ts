import { Schema } from "effect"
import { widerGrants } from "./ShellCommand.ts"

/**
 * Which calls run without asking a person (`--approve`): none that changes anything, edits of files, or all. `plan`: until a
 * person has approved a plan nothing is changed, asked or not.
 */
export const ApprovalMode = Schema.Literals(["none", "edits", "all", "plan"])
export type ApprovalMode = typeof ApprovalMode.Type

/** What a person may say to a call. `no` may carry a word to the model. */
export type Answer =
  | { readonly _tag: "Once" }
  /** This and all that its grants cover, until the program ends. */
  | { readonly _tag: "Session" }
  /** The same from now on; kept in the settings. */
  | { readonly _tag: "Always" }
  | { readonly _tag: "No"; readonly words: string }

/** Whether a call may run. */
export type Decision =
  | { readonly _tag: "Allowed" }
  /** A person said no, in these words. */
  | { readonly _tag: "Denied"; readonly words: string }
  /** Nobody was asked: it cannot run as things are. Why, and what to do instead. */
  | { readonly _tag: "Refused"; readonly why: string }

/**
 * What a tool does to the world. `read` only looks: it runs beside others and nobody is asked. `edit` changes files,
 * `execute` anything at all, `fetch` looks beyond the computer, or says so and is not believed, as the tools of servers: each
 * asks first unless that is allowed already.
 */
export type ToolKind = "read" | "edit" | "execute" | "fetch"

/** The grant that stands for edits of files. */
export const editGrant = "edit"

/** The grant that stands for edits of one file that `editGrant` does not cover (SteeringFiles.ts). */
export const fileGrant = (place: string): string => `${editGrant}:${place}`

/** Whether a grant may be given for always. A file that runs by itself is looked at again in another session. */
export const canLast = (grant: string): boolean => !grant.startsWith(fileGrant(""))

const ofServers = "mcp:"

/** The grant that stands for all tools of an MCP server. */
export const serverGrant = (server: string): string => `${ofServers}${server}`

/** A call that has something to ask, as far as it matters for whether it may run. */
export interface Wish {
  readonly kind: ToolKind
  /** All of them have to be allowed for it not to be asked for. None: it is asked for each time. */
  readonly grants: ReadonlyArray<string>
  /** The only places it changes, absolute with links followed; absent: nobody knows. */
  readonly touches?: ReadonlyArray<string> | undefined
  /** Asked for whatever was granted: a person has to have seen it. */
  readonly mustBeSeen?: boolean | undefined
  /** Asked for in every mode: a hook wants a person to look. */
  readonly isDoubted?: boolean | undefined
}

/** What holds when a call comes. */
export interface Rules {
  readonly mode: ApprovalMode
  readonly granted: ReadonlySet<string>
  /** The one file that may be written while a plan is made, absolute with links followed. */
  readonly planFile?: string | undefined
}

/** Whether a call runs unasked, waits for a person, or is refused. */
export type Verdict = "allowed" | "asked" | "refused"

const isPlanOnly = ({ touches = [] }: Wish, planFile: string | undefined): boolean =>
  touches.length > 0 && touches.every((place) => place === planFile)

/**
 * What becomes of a call. While a plan is made nothing is edited or executed but the plan's own file, whatever was granted
 * before; what looks at the network is asked for as usual, and what a server offers each time: that it only looks is the
 * server's own word, and what was granted before was not granted for a plan.
 */
export const verdict = ({ granted, mode, planFile }: Rules, wish: Wish): Verdict => {
  const { grants, isDoubted = false, kind, mustBeSeen = false } = wish
  const unasked: Verdict = isDoubted ? "asked" : "allowed"
  if (mode === "all") return unasked
  if (mode === "plan" && (kind === "edit" || kind === "execute")) {
    return kind === "edit" && isPlanOnly(wish, planFile) ? unasked : "refused"
  }
  if (isDoubted || mustBeSeen || grants.length === 0) return "asked"
  const isHeld = (grant: string) =>
    (granted.has(grant) && !(mode === "plan" && grant.startsWith(ofServers))) ||
    widerGrants(grant).some((wider) => granted.has(wider)) ||
    (mode === "edits" && grant === editGrant)
  return grants.every(isHeld) ? "allowed" : "asked"
}

/** What a model is told whose call would change something while a plan is made. */
export const planFirst = (tool: string, planFile: string | undefined): string =>
  `${tool} was not run: while a plan is made, nothing may be changed or executed. ${
    planFile === undefined
      ? "Look at what you need, then give the plan as your answer"
      : `Look at what you need, write the plan to ${planFile}, then call exit_plan_mode, which shows it to the person`
  }`
