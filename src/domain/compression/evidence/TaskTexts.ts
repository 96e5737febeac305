/** Which calls and words hold the text of the task: those that read an issue, a ticket or a plan, and those that had a plan approved. */

import { Predicate } from "effect"
import { commandIn, pathsIn, toolKind } from "../../actions/AgentTools.ts"
import { answerText } from "../../actions/ToolResults.ts"
import type { Part } from "../../content/Content.ts"
import { textsBetween } from "../../text/TextsBetween.ts"
import type { Edit } from "./FileHistory.ts"

const issueCommand = /\b(?:gh|glab) (?:issue|pr) view\b[^|;&]*|\bbd show\b[^|;&]*/
const issueTool = /(?:get|view|read|fetch)_?(?:issue|ticket|story)/i
const taskFile =
  /(?:^|[\\/_-])(?:issue|ticket|task|plan|prd|spec|todo|requirements|design|brief)s?\b[^\\/]*\.(?:md|txt|org|rst)$|[\\/](?:plans|specs|issues|tasks)[\\/][^\\/]*\.md$/i

/** What stands above the plan in a result of Claude Code: the user may have edited it. */
const approvedInResult = /^## Approved Plan[^\n]*:\n([^]+)/m
const planFile = /[\\/]plans?[\\/][^\\/]+\.md$/i

/** Whether the user approved a plan with this call. One that was submitted to others (a teammate of Claude Code) is not approved yet. */
export const isApproval = ({ functionCall: call }: Part, answer: Part): boolean =>
  toolKind(call?.name ?? "") === "approve" && /^[^\n.]{0,100}\bapproved\b/i.test(answerText(answer))

/** A plan that the user approved, and what holds its text. */
interface ApprovedPlan {
  readonly text: string
  readonly heldBy: "answer" | "call" | "file"
}

/**
 * Returns the plan that the user approved with this call; undefined where it is not known. `edits`: the latest ones, among them that
 * of the plan's file, which some agents name in place of the plan.
 */
export const approvedPlanIn = (
  { functionCall: call }: Part,
  answer: Part,
  edits: ReadonlyArray<Edit>
): ApprovedPlan | undefined => {
  const args: unknown = call?.args
  const [plan, path] = Predicate.isObject(args)
    ? [args.plan, args.plan_path ?? args.planFilePath ?? args.plan_filename]
    : []
  const edited = approvedInResult.exec(answerText(answer))?.[1]
  if (edited !== undefined) return { text: edited, heldBy: "answer" }
  if (typeof plan === "string" && plan.trim() !== "") return { text: plan, heldBy: "call" }
  const isNamed = (file: string) =>
    typeof path === "string" ? `/${file}`.endsWith(`/${path}`) || path.endsWith(`/${file}`) : planFile.test(file)
  const file = edits.findLast((edit) => isNamed(edit.path))?.path
  // The last text that was the whole file, as later edits leave it.
  const whole = edits.findLast((edit) => edit.path === file && edit.isWhole === true)
  return whole === undefined ? undefined : { text: whole.text, heldBy: "file" }
}

/** Returns the plan that words of the agent propose (Codex); undefined where they propose none. */
export const proposedPlanIn = (words: string): string | undefined =>
  textsBetween(words, "proposed_plan").find((plan) => plan !== "")

/** Returns how a call that reads an issue, a ticket or a plan names it; undefined for any other call. */
export const taskSource = (call: Part): string | undefined => {
  const args: unknown = call.functionCall?.args
  if (!Predicate.isObject(args)) return undefined
  const issue = issueCommand.exec(commandIn(args) ?? "")?.[0]
  if (issue !== undefined) return issue.trim()
  const tool = call.functionCall?.name ?? ""
  if (issueTool.test(tool)) return `${tool} ${String(args.id ?? args.issue ?? args.number ?? "")}`.trim()
  return pathsIn(args).find((path) => taskFile.test(path))
}
