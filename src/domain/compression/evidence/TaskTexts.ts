import { Predicate } from "effect"
import { commandIn, pathsIn, toolKind } from "../../actions/AgentTools.ts"
import type { Part } from "../../content/Content.ts"

/** Which calls hold the text of the task: those that read an issue, a ticket or a plan, and those that had a plan approved. */

const issueCommand = /\b(?:gh|glab) (?:issue|pr) view\b[^|;&]*|\bbd show\b[^|;&]*/
const issueTool = /(?:get|view|read|fetch)_?(?:issue|ticket|story)/i
const taskFile =
  /(?:^|[\\/_-])(?:issue|ticket|task|plan|prd|spec|todo|requirements|design|brief)s?\b[^\\/]*\.(?:md|txt|org|rst)$|[\\/](?:plans|specs|issues|tasks)[\\/][^\\/]*\.md$/i

/** Returns the plan that a call showed to the user for approval; undefined for any other call. */
export const planIn = ({ functionCall: call }: Part): string | undefined =>
  toolKind(call?.name ?? "") === "approve" && Predicate.isObject(call?.args) && typeof call.args.plan === "string"
    ? call.args.plan
    : undefined

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
