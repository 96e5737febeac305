import type { Todo } from "../../actions/Action.ts"
import { unprotect } from "../../text/UntrustedText.ts"
import type { Snapshot } from "../Snapshot.ts"

/** Issues that the agent filed in a tracker by command, closed or took on. They are open items beside the todo list. */

/** The filed issues, by id. */
export type FiledIssues = Map<string, Todo>

const tracker =
  /\b(?:bd|gh\s+issue|glab\s+issue)\s+(create|new|close|done|reopen|update)\b((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^|;&\n"'])*)/g
/** The answer to a filed issue: `Created issue: app-12x`, or its address. */
const created = /(?:Created issue:?\s+|\/issues\/)([A-Za-z0-9][\w.-]{0,40})/
const title = /(?:(?:--title|(?<!\S)-t)[= ]|^)\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')/
const idOperand = /(?:^|\s)#?([A-Za-z][\w.]*-[\w.]+|\d+)(?=\s|$)/g

const textOf = (id: string, subject: string): string => `issue ${id}: ${subject}`

/** Records what a command that succeeded did to issues of a tracker. */
export const followIssues = (issues: FiledIssues, command: string, output: string): void => {
  if (!/\b(?:bd|gh|glab)\b/.test(command)) return
  for (const [, verb = "", rest = ""] of command.slice(0, 4_000).matchAll(tracker)) {
    if (verb === "create" || verb === "new") {
      const id = created.exec(output.slice(0, 2_000))?.[1]
      const [, double, single] = title.exec(rest.trim()) ?? []
      const subject = double ?? single
      if (id !== undefined && subject !== undefined) issues.set(id, { text: textOf(id, subject), status: "open" })
      continue
    }
    for (const [, id = ""] of rest.replace(/"[^"]*"|'[^']*'/g, "").matchAll(idOperand)) {
      const known = issues.get(id)
      if (known === undefined) continue
      const status = /--status[= ](\w+)/.exec(rest)?.[1]
      const next = verb === "reopen" ? "open" : verb === "update" ? (status ?? known.status) : "completed"
      issues.set(id, { ...known, status: /^(?:closed|done)$/.test(next) ? "completed" : next })
    }
  }
}

const issueLine = /^- \[([^\]\n]+)\] (issue (\S+): .+)$/

/** Takes over the issues of an earlier snapshot. */
export const resumeIssues = (issues: FiledIssues, snapshot: Snapshot): void => {
  for (const { text } of snapshot.task_state) {
    const [, status, issue, id] = issueLine.exec(text) ?? []
    if (status !== undefined && issue !== undefined && id !== undefined) {
      issues.set(unprotect(id), { status: unprotect(status), text: unprotect(issue) })
    }
  }
}

/** Whether an item of a snapshot is a filed issue. */
export const isFiledIssue = (text: string): boolean => issueLine.test(text)
