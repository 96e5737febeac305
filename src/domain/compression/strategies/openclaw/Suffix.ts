/** What code adds below a model's summary: the newest turns word for word, tool failures, files. */

import { actionsOf } from "../../../actions/Actions.ts"
import { answerText } from "../../../actions/ToolResults.ts"
import { isCall, isResponse, isText, isThought } from "../../../content/Content.ts"
import { type Entry, type EntryId, isFromUser } from "../../../conversation/Conversation.ts"
import { firstUnits } from "../../../text/Bytes.ts"
import { answeredCalls } from "../../AnsweredCalls.ts"
import { failureText, isFailure } from "../../evidence/ToolFailures.ts"
import type { FileLists } from "../../FileLists.ts"
import { fileListChars, maxSummaryChars, recentTurns, toolFailures } from "./OpenClaw.ts"

/** Returns the ids of the messages that belong to the newest turns of a range. */
export const newestTurns = (entries: ReadonlyArray<Entry>): ReadonlySet<EntryId> => {
  const turnCount = recentTurns.count
  const starts = entries.flatMap((entry, index) => (isFromUser(entry) ? [index] : []))
  const from = starts.length < turnCount ? undefined : starts[starts.length - turnCount]
  const shown =
    from === undefined
      ? [...new Set([...entries.filter(isFromUser).slice(-turnCount), ...entries.slice(-6)])]
      : entries.slice(from)
  return new Set(shown.map(({ id }) => id))
}

const lineOf = ({ author, content: { parts, role } }: Entry): string => {
  const texts = parts.filter((part) => isText(part) && !isThought(part)).map(({ text = "" }) => text)
  const calls = parts.flatMap((part) => (isCall(part) ? [`[calls ${part.functionCall.name}]`] : []))
  const results = parts
    .filter(isResponse)
    .map((part) => `[result of ${part.functionResponse.name ?? "a tool"}] ${answerText(part)}`)
  const text = [...texts, ...calls, ...results].join(" ").trim()
  const cut = text.length > recentTurns.messageChars ? `${firstUnits(text, recentTurns.messageChars)}…` : text
  return cut === "" ? "" : `- ${role === "model" ? "Assistant" : author === undefined ? "User" : "Program"}: ${cut}`
}

/** Returns the section with the newest turns; empty when there are none. */
export const recentTurnsText = (entries: ReadonlyArray<Entry>): string => {
  const lines = entries.map(lineOf).filter((line) => line !== "")
  return lines.length === 0 ? "" : `## Recent turns\n${lines.join("\n")}`
}

/** Returns the section with the newest failures of tools; empty when none failed. */
export const toolFailuresText = (entries: ReadonlyArray<Entry>): string => {
  const failures = answeredCalls(entries).flatMap(({ answer, call }) => {
    const actions = actionsOf(call, answer)
    if (!isFailure(actions, answer)) return []
    const exit = actions.flatMap((action) => (action._tag === "Command" ? (action.exit ?? []) : []))[0]
    const why = failureText(answerText(answer)).replaceAll("\n", " ")
    const name = call.functionCall?.name ?? "a tool"
    return [firstUnits(`- ${name}${exit === undefined ? "" : ` (exit ${exit})`}: ${why}`, toolFailures.chars)]
  })
  return failures.length === 0 ? "" : `## Tool failures\n${failures.slice(-toolFailures.count).join("\n")}`
}

const fileSection = (tag: string, files: ReadonlyArray<string>, chars: number): string => {
  const shown: Array<string> = []
  let used = 0
  for (const file of files) {
    if (used + file.length + 1 > chars) break
    shown.push(file)
    used += file.length + 1
  }
  const left = files.length - shown.length
  return files.length === 0
    ? ""
    : `<${tag}>\n${[...shown, ...(left === 0 ? [] : [`… and ${left} more`])].join("\n")}\n</${tag}>`
}

/** Returns the lists of files, bounded. */
export const boundedFileLists = ({ modified, read }: FileLists): string => {
  const changed = fileSection("modified-files", modified, fileListChars)
  const readFiles = fileSection("read-files", read, fileListChars)
  return [readFiles, changed].filter((section) => section !== "").join("\n\n")
}

const cutMark = "\n\n[… the summary was cut here]"

/** Joins the summary with what code adds, within the bound. The summary keeps at least half of it. */
export const withSuffixes = (
  summary: string,
  suffixes: ReadonlyArray<string>,
  maxChars: number = maxSummaryChars
): string => {
  const added = suffixes.filter((suffix) => suffix !== "")
  while (added.length > 0 && added.join("\n\n").length > maxChars - Math.min(summary.length, maxChars / 2) - 2)
    added.pop()
  const suffix = added.length === 0 ? "" : `${summary === "" ? "" : "\n\n"}${added.join("\n\n")}`
  const room = maxChars - suffix.length
  return summary.length <= room
    ? `${summary}${suffix}`
    : `${firstUnits(summary, Math.max(0, room - cutMark.length))}${cutMark}${suffix}`
}
