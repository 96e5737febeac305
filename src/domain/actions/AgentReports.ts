import { Predicate } from "effect"
import type { Part } from "../content/Content.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { toolKind } from "./AgentTools.ts"
import { answerTexts } from "./ToolResults.ts"

/** What other agents report to the one whose session it is: in the result of a call, or in a later message of the program. */

/** Where a report stands among what programs write around it (Claude Code's message, opencode's result, a review in Codex). */
const between = /<(results?|task_result)>\s*([^]*?)\s*<\/\1>/g
/** A result that only says that the agent runs (Claude Code, Codex). */
const started = /^(?:Async agent launched|\{"agent_id")/
/** What Claude Code writes after the report. */
const ending = /\n*(?:agentId: \w+[^\n]*\n?|<usage>[^]*<\/usage>)+\s*$/

/** Returns the reports in Codex's form: `{"status":{"the agent":{"completed":"its report"}}}`. */
const completedIn = (value: unknown): ReadonlyArray<string> => {
  if (!Predicate.isObject(value)) return []
  return typeof value.completed === "string" ? [value.completed] : Object.values(value).flatMap(completedIn)
}

/** Returns the reports in a message of a program. */
export const notifiedReports = (text: string): ReadonlyArray<string> =>
  /<(?:(?:task|agent)-notification|user_action)>/.test(text)
    ? [...text.matchAll(between)].map(([, , report = ""]) => report)
    : completedIn(parsedOrUndefined(/<subagent_notification>([^]*?)<\/subagent_notification>/.exec(text)?.[1] ?? ""))

/** Returns the reports in the result of a call. */
export const reportsIn = ({ functionCall: call }: Part, answer: Part): ReadonlyArray<string> => {
  if (toolKind(call?.name ?? "") !== "delegate") return []
  const result = answerTexts(answer).join("\n")
  const json = result.startsWith("{") ? completedIn(parsedOrUndefined(result)) : []
  if (json.length > 0 || started.test(result)) return json
  const marked = [...result.matchAll(between)].map(([, , report = ""]) => report)
  return marked.length > 0 ? marked : [result.replace(ending, "")]
}
