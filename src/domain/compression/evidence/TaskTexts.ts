import { Predicate } from "effect"
import { commandIn, pathsIn, toolKind } from "../../actions/AgentTools.ts"
import { answerText } from "../../actions/ToolResults.ts"
import type { Part } from "../../content/Content.ts"
import type { Edit } from "./FileHistory.ts"

/** Which calls and words hold the text of the task: those that read an issue, a ticket or a plan, and those that had a plan approved. */

const issueCommand = /\b(?:gh|glab) (?:issue|pr) view\b[^|;&]*|\bbd show\b[^|;&]*/
const issueTool = /(?:get|view|read|fetch)_?(?:issue|ticket|story)/i
const taskFile =
  /(?:^|[\\/_-])(?:issue|ticket|task|plan|prd|spec|todo|requirements|design|brief)s?\b[^\\/]*\.(?:md|txt|org|rst)$|[\\/](?:plans|specs|issues|tasks)[\\/][^\\/]*\.md$/i

/** What stands above the plan in a result of Claude Code: the user may have edited it. */
const approvedInResult = /^## Approved Plan[^\n]*:\n([^]+)/m
const planFile = /[\\/]plans?[\\/][^\\/]+\.md$/i

/**
 * Returns the plan that the user approved with this call; undefined for any other call, and where it is not known. `edits`: the latest
 * ones, among them that of the plan's file, which some agents name in place of the plan.
 */
export const approvedPlanIn = (
  { functionCall: call }: Part,
  answer: Part,
  edits: ReadonlyArray<Pick<Edit, "path" | "text">>
): string | undefined => {
  if (toolKind(call?.name ?? "") !== "approve") return undefined
  const args: unknown = call?.args
  const [plan, path] = Predicate.isObject(args) ? [args.plan, args.plan_path ?? args.planFilePath] : []
  const file = edits.findLast((edit) => edit.path === path || planFile.test(edit.path))?.path
  const written = edits.filter((edit) => edit.path === file).map(({ text }) => text)
  return (
    approvedInResult.exec(answerText(answer))?.[1] ??
    (typeof plan === "string" && plan.trim() !== "" ? plan : undefined) ??
    // The first text is the whole file, as later edits leave it.
    written[0]
  )
}

/** Returns the plan that words of the agent propose (Codex); undefined where they propose none. */
export const proposedPlanIn = (words: string): string | undefined =>
  /<proposed_plan>\s*([^]*?)\s*<\/proposed_plan>/.exec(words)?.[1]

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
