/** What other agents report to the one whose session it is: in the result of a call, or in a later message of the program. */

import { Predicate } from "effect"
import type { Part } from "../content/Content.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { textsBetween } from "../text/TextsBetween.ts"
import { answersInStates, toolKind } from "./AgentTools.ts"
import { answerTexts } from "./ToolResults.ts"

/** A result that only says that the agent runs (Claude Code). */
const started = /^(?:Async agent launched|Spawned successfully)/

/** How much of the end of a result is searched for what Claude Code writes after the report. */
const maxEndingChars = 600

/** Returns a report without what Claude Code writes after it: the id of the agent, and what it used. */
const withoutEnding = (result: string): string => {
  const report = result.trimEnd()
  const usage = report.endsWith("</usage>") ? report.lastIndexOf("<usage>") : -1
  const rest = usage >= 0 && report.length - usage <= maxEndingChars ? report.slice(0, usage).trimEnd() : report
  const line = rest.lastIndexOf("\n") + 1
  const isId = rest.length - line <= maxEndingChars && /^agentId: \w/.test(rest.slice(line))
  return isId ? rest.slice(0, line).trimEnd() : rest
}

/** Returns the reports in Codex's form, `{"status":{"the agent":{"completed":"its report"}}}`, or of one agent alone. */
const completedIn = (text: string): ReadonlyArray<string> => {
  const value = text.trim().startsWith("{") ? parsedOrUndefined(text) : undefined
  const status: unknown = Predicate.isObject(value) ? value.status : undefined
  if (!Predicate.isObject(status)) return []
  return [status, ...Object.values(status)].flatMap((state: unknown) =>
    Predicate.isObject(state) && typeof state.completed === "string" ? [state.completed] : []
  )
}

/** What Codex of 2026 writes before the answer of an agent. */
const answering = /^Message Type: FINAL_ANSWER\n(?:[A-Z][\w ]{0,40}: [^\n]*\n){0,8}Payload:\n/

/** Returns the reports in a message of a program: Claude Code's, a review in Codex, and Codex's of an agent. */
export const notifiedReports = (text: string): ReadonlyArray<string> => {
  if (/<(?:(?:task|agent)-notification|user_action)>/.test(text))
    return ["result", "results"].flatMap((tag) => textsBetween(text, tag))
  const head = answering.exec(text)?.[0]
  return head === undefined
    ? textsBetween(text, "subagent_notification").flatMap(completedIn)
    : [text.slice(head.length).trim()]
}

/** Returns the reports in the result of a call. */
export const reportsIn = ({ functionCall: call }: Part, answer: Part): ReadonlyArray<string> => {
  const name = call?.name ?? ""
  if (toolKind(name, call?.args) !== "delegate") return []
  const result = answerTexts(answer).join("\n")
  if (answersInStates(name)) return completedIn(result)
  if (started.test(result)) return []
  // opencode's
  const marked = textsBetween(result, "task_result")
  return marked.length > 0 ? marked : [withoutEnding(result)]
}
