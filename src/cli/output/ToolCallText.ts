/** Texts about tool calls for the user, in single lines. */

import type { Activity, ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { codePointEscape, visibleLine, printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { shellTool } from "../../domain/tools/Approval.ts"
import type { Display, Todo } from "../../domain/tools/ToolResult.ts"
import { number, plural, type Style } from "./Output.ts"

/** Shorter durations are not shown. */
const minShownMillis = 2_000

const tab = "  "

/** Blanks other than spaces: a command reads them as letters. */
const oddBlank = /(?![ \u3000])\p{Zs}/gu
/** A run of blanks long enough to push the text after it out of sight. */
const blankRun = /(?<=\S)[ \u3000]{41,}(?=\S)/gu

/**
 * A line of a file or a command, made safe to approve: control and invisible characters are escaped, so that the user sees
 * everything they allow. Tabs take two columns, and a carriage return at the end is dropped.
 */
export const legible = (line: string): string =>
  visibleLine(line.replace(/\r$/, "").replaceAll("\t", tab))
    .replace(oddBlank, codePointEscape)
    .replace(blankRun, (blanks) => ` [${blanks.length} blanks] `)

/** Returns the first lines, and a line that counts the rest. */
export const firstLines = (lines: ReadonlyArray<string>, maxLines: number): ReadonlyArray<string> =>
  lines.length <= maxLines + 1
    ? lines
    : [...lines.slice(0, maxLines), `… ${plural(lines.length - maxLines, "more line")}`]

const isHeading = /^(?:---|\+\+\+|Index:|=+$|diff )/

/** All lines of a detail to approve. Nothing is left out: a command can look like anything, even the heading of a diff. */
export const detailLines = (detail: string): ReadonlyArray<string> => detail.replace(/\n$/, "").split("\n").map(legible)

/** The lines of a diff without its file headings, because the title names the file. */
export const diffLines = (diff: string): ReadonlyArray<string> => {
  const lines = detailLines(diff)
  const hunk = lines.findIndex((line) => line.startsWith("@@ "))
  return hunk >= 0 && lines.slice(0, hunk).every((line) => line === "" || isHeading.test(line))
    ? lines.slice(hunk)
    : lines
}

/** The language of a file by its name: the ending, or the whole name of a file such as `Makefile`. */
export const languageOf = (file: string): string =>
  (file.split(/[\\/]/).at(-1) ?? "").split(".").at(-1)?.toLowerCase() ?? ""

/** The language of a diff by its headings; undefined without headings. */
export const diffLanguage = (diff: string): string | undefined => {
  const file = /^\+\+\+ (?!\/dev\/null)(.+)$/m.exec(diff)?.[1] ?? /^--- (?!\/dev\/null)(.+)$/m.exec(diff)?.[1]
  return file === undefined ? undefined : languageOf(file.trim())
}

/** Colours a line of a diff: added, removed or a hunk heading. */
export const colouredDiffLine = (line: string, style: Style): string => {
  if (line.startsWith("+")) return style.good(line)
  if (line.startsWith("-")) return style.bad(line)
  return line.startsWith("@@ ") || line.startsWith("… ") ? style.dim(line) : line
}

const signs: Readonly<Record<Todo["status"], string>> = {
  pending: "○",
  in_progress: "▸",
  completed: "✓",
  cancelled: "✗",
  blocked: "!"
}

/** Returns the lines of a plan, one for each step. */
export const todoLines = (todos: ReadonlyArray<Todo>, style: Style): ReadonlyArray<string> =>
  todos.map(({ description, status }) => {
    const line = `${signs[status]} ${printableLine(description)}`
    if (status === "in_progress") return style.bold(line)
    return status === "completed" || status === "cancelled" ? style.dim(line) : line
  })

/** The step at work and how many are done, in one line; none when nothing is left to do. */
export const currentStep = (todos: ReadonlyArray<Todo>, style: Style): ReadonlyArray<string> => {
  const current =
    todos.find(({ status }) => status === "in_progress") ?? todos.find(({ status }) => status === "pending")
  if (current === undefined) return []
  const done = todos.filter(({ status }) => status === "completed").length
  const count = style.dim(` · ${done} of ${plural(todos.length, "step")} done`)
  return [`${signs[current.status]} ${printableLine(current.description)}${count}`]
}

/** What the built-in tools do, in place of their names at the beginning of a title. Other tools keep their names. */
const verbs: ReadonlyMap<string, string> = new Map([
  ["read_file", "Read"],
  ["read_many_files", "Read"],
  ["list_directory", "List"],
  ["glob", "Find"],
  ["search_file_content", "Search"],
  ["google_web_search", "Search the web:"],
  ["web_fetch", "Fetch"],
  ["replace", "Edit"],
  ["write_file", "Write"],
  [shellTool, "Run"],
  ["write_todos", "Plan"],
  ["recall", "Recall"],
  ["save_memory", "Remember"],
  ["ask_user", "Ask"]
])

/** A call in one line, as the user reads it: `Read src/main.ts`. */
export const callText = (title: string): string =>
  printableLine(title).replace(/^\S+/, (name) => verbs.get(name) ?? name)

/** How the shell tool says that a command failed. */
const failedEnd = /^(?:exit code -?[1-9]\d*|ended by .+)$/

/** Whether a call did what it was to do: a command that ends with an error did not, though the tool ran it. */
export const hasSucceeded = ({ display, name, status }: Extract<ChatEvent, { _tag: "ToolCallResponse" }>): boolean =>
  status === "success" &&
  !(name === shellTool && display?._tag === "Text" && failedEnd.test(display.text.split("\n").at(-1) ?? ""))

/** The summary of a result in the line of its call; empty for none. */
const displaySummary = (display: Display | null): string => {
  switch (display?._tag) {
    case "Text": {
      // The sign in front already shows success.
      const lines = display.text.split("\n").filter((line) => line.trim() !== "" && line !== "exit code 0")
      // The last line says how the command ended.
      const last = printableLine(lines.at(-1) ?? "")
      if (lines.length > 1 && failedEnd.test(last)) return `${last}: ${printableLine(lines.at(-2) ?? "")}`
      return lines.length > 1 ? `… ${last}` : last
    }
    case "Diff":
      return `+${display.added} −${display.removed}`
    case "Todos": {
      const done = display.todos.filter(({ status }) => status === "completed").length
      return `${done} of ${plural(display.todos.length, "step")} done`
    }
    case undefined:
      return ""
  }
}

/** Why the call failed, from the message to the model, shortened for the user. */
const failureText = ({ message, name, status }: Extract<ChatEvent, { _tag: "ToolCallResponse" }>): string => {
  if (status === "denied") return "not allowed"
  if (status === "cancelled") return "cancelled"
  const line = printableLine((message ?? "failed").split("\n")[0] ?? "")
  return line.startsWith(`${name}: `) ? line.slice(name.length + 2) : line
}

/** An answered call in one line: its title and its result. */
export const responseText = (event: Extract<ChatEvent, { _tag: "ToolCallResponse" }>, title: string): string => {
  const time = event.duration < minShownMillis ? "" : `${Math.round(event.duration / 1_000)} s`
  const summary = event.status === "success" ? displaySummary(event.display) : failureText(event)
  return [`${hasSucceeded(event) ? "✓" : "✗"} ${callText(title)}`, summary, time]
    .filter((text) => text !== "")
    .join(" · ")
}

/** The tool with which agents end their work; the result is shown elsewhere. */
const completeTaskTool = "complete_task"

/** A line for the activity of a subagent, or undefined for a minor one. */
export const activityText = (agent: string, activity: Activity): string | undefined => {
  switch (activity._tag) {
    case "CallStarted":
      return activity.name === completeTaskTool ? undefined : `${agent} › ${callText(activity.title)}`
    case "CallEnded":
      return activity.status === "success"
        ? undefined
        : `${agent} ✗ ${callText(activity.name)} ${endText[activity.status]}`
    case "Failed":
      return `${agent} ✗ ${printableLine(activity.message)}`
    case "Thought":
    case "TurnEnded":
      return undefined
  }
}

const endText = {
  error: "failed",
  denied: "was not allowed",
  cancelled: "was cancelled",
  timeout: "took too long"
} as const

/** What an agent that works has done so far. */
export interface AgentProgress {
  readonly turns: number
  readonly tokens: number
  /** The call that runs. */
  readonly call: string | undefined
}

/** The progress after one more activity. */
export const afterActivity = (before: AgentProgress | undefined, activity: Activity): AgentProgress => {
  const progress = before ?? { turns: 0, tokens: 0, call: undefined }
  switch (activity._tag) {
    case "TurnEnded":
      return { ...progress, turns: progress.turns + 1, tokens: activity.tokens }
    case "CallStarted":
      return { ...progress, call: callText(activity.title) }
    case "CallEnded":
      return { ...progress, call: undefined }
    default:
      return progress
  }
}

/** The line of an agent that works: turns, tokens and the call that runs. */
export const agentProgressText = ({ call, tokens, turns }: AgentProgress): string =>
  [`turn ${turns + 1}`, ...(tokens === 0 ? [] : [`${number(tokens)} tokens`]), call ?? "thinking"].join(" · ")

/** Describes a detected loop and what the runtime did. */
export const loopText = ({ detail, halted }: Extract<ChatEvent, { _tag: "LoopDetected" }>): string =>
  halted
    ? `Stopped: the model repeats itself (${printableLine(detail)}). The conversation is intact; tell it how to continue.`
    : `The model repeats itself (${printableLine(detail)}); it was told to change its approach.`
