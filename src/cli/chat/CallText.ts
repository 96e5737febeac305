import type { Activity, ChatEvent } from "../../domain/ChatEvent.ts"
import { printable } from "../../domain/Inspection.ts"
import type { Display, Todo } from "../../domain/ToolResult.ts"
import { spelled, visibleLine } from "../../domain/Visible.ts"
import { plural, type Style } from "../Output.ts"

/** What a person is shown of the calls of tools, in lines without line breaks. */

/** Shorter runs are not worth a word. */
const worthTelling = 2_000

const tab = "  "

/** Blanks that do not look like what they are: a command takes them for letters. */
const oddBlank = /(?![ \u3000])\p{Zs}/gu
/** So many blanks push what follows them out of sight. */
const blankRun = /(?<=\S)[ \u3000]{41,}(?=\S)/gu

/**
 * One line of a file or a command as it is, but for tabs, which take two columns, and a carriage return at its end: what else
 * nobody would see, or what would steer a terminal, is spelled out. Who allows it has to see it.
 */
export const legible = (line: string): string =>
  visibleLine(line.replace(/\r$/, "").replaceAll("\t", tab))
    .replace(oddBlank, spelled)
    .replace(blankRun, (blanks) => ` [${blanks.length} blanks] `)

/** The first lines of a text, and how many more there are. */
export const firstOf = (lines: ReadonlyArray<string>, most: number): ReadonlyArray<string> =>
  lines.length <= most + 1 ? lines : [...lines.slice(0, most), `… ${plural(lines.length - most, "more line")}`]

const isHeading = /^(?:---|\+\+\+|Index:|=+$|diff )/

/** What is asked about, line by line and all of it: a command may look like anything, also like the heading of a diff. */
export const detailLines = (detail: string): ReadonlyArray<string> => detail.replace(/\n$/, "").split("\n").map(legible)

/** A diff of what was done, line by line, without what names the files: that is said elsewhere. */
export const diffLines = (diff: string): ReadonlyArray<string> => {
  const lines = detailLines(diff)
  const hunk = lines.findIndex((line) => line.startsWith("@@ "))
  return hunk >= 0 && lines.slice(0, hunk).every((line) => line === "" || isHeading.test(line))
    ? lines.slice(hunk)
    : lines
}

/** A line of a diff in the colour of what becomes of it. */
export const painted = (line: string, style: Style): string => {
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

/** A plan, a line a step. */
export const todoLines = (todos: ReadonlyArray<Todo>, style: Style): ReadonlyArray<string> =>
  todos.map(({ description, status }) => {
    const line = `${signs[status]} ${printable(description)}`
    if (status === "in_progress") return style.bold(line)
    return status === "completed" || status === "cancelled" ? style.dim(line) : line
  })

/** What is shown of a result in the line of its call; empty: nothing. */
const inShort = (display: Display | null): string => {
  switch (display?._tag) {
    case "Text": {
      // That a command ended well is what its sign says.
      const lines = display.text.split("\n").filter((line) => line.trim() !== "" && line !== "exit code 0")
      // How it ended stands at the end.
      const last = printable(lines.at(-1) ?? "")
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

/** What the model was told where the call was no success, as far as a person needs it. */
const failureText = ({ message, name, status }: Extract<ChatEvent, { _tag: "ToolCallResponse" }>): string => {
  if (status === "denied") return "not allowed"
  if (status === "cancelled") return "cancelled"
  const line = printable((message ?? "failed").split("\n")[0] ?? "")
  return line.startsWith(`${name}: `) ? line.slice(name.length + 2) : line
}

/** An answered call in one line: what it was, and what came of it. */
export const responseText = (event: Extract<ChatEvent, { _tag: "ToolCallResponse" }>, title: string): string => {
  const isDone = event.status === "success"
  const time = event.duration < worthTelling ? "" : `${Math.round(event.duration / 1_000)} s`
  const told = isDone ? inShort(event.display) : failureText(event)
  return [`${isDone ? "✓" : "✗"} ${printable(title)}`, told, time].filter((text) => text !== "").join(" · ")
}

/** The tool by which agents end their work (spec 9): their result tells it. */
const handingIn = "complete_task"

/** What an agent does that a call started, where that is worth a line. */
export const activityText = (agent: string, activity: Activity): string | undefined => {
  switch (activity._tag) {
    case "CallStarted":
      return activity.name === handingIn ? undefined : `${agent} › ${printable(activity.title)}`
    case "CallEnded":
      return activity.status === "success" ? undefined : `${agent} ✗ ${activity.name} (${activity.status})`
    case "Failed":
      return `${agent} ✗ ${printable(activity.message)}`
    case "Thought":
      return undefined
  }
}

/** What goes round in circles, and what came of it. */
export const loopText = ({ detail, halted }: Extract<ChatEvent, { _tag: "LoopDetected" }>): string =>
  halted
    ? `Stopped: the model goes round in circles (${printable(detail)}). The conversation is whole; say how to go on.`
    : `The model goes round in circles (${printable(detail)}); it was told so.`
