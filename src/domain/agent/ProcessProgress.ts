import type { Activity, ChatEvent } from "../chat/ChatEvent.ts"
import { firstUnits } from "../text/Bytes.ts"

/** The progress of an agent in its own process, and its result. */

/** Characters of an answer that are kept. */
const maxAnswerChars = 4 * 1024 * 1024

/** Why the agent ended. */
type EndReason = "ABORTED" | "ERROR" | "GOAL" | "MAX_TURNS" | "TIMEOUT"

/** The answer that was received so far. */
export interface ProcessProgress {
  /** The text of the last turn. */
  readonly text: string
  readonly turns: number
  /** Whether the last turn called tools, so that another turn follows. */
  readonly calls: boolean
  /** Why the agent ended, as far as an event reported it. */
  readonly reason: EndReason | undefined
  /** What stopped the agent before its goal. */
  readonly stop: string | undefined
}

/** The progress before the first event. */
export const nothingYet: ProcessProgress = { text: "", turns: 0, calls: false, reason: undefined, stop: undefined }

/** Returns the progress after another event. */
export const progressAfter = (progress: ProcessProgress, event: ChatEvent): ProcessProgress => {
  switch (event._tag) {
    case "ModelInfo":
      return { text: "", turns: progress.turns + 1, calls: false, reason: undefined, stop: undefined }
    case "Content":
      return { ...progress, text: firstUnits(progress.text + event.text, maxAnswerChars) }
    case "Retry":
      return { ...progress, text: "" }
    case "ToolCallRequest":
      return { ...progress, calls: true }
    case "Finished":
      return { ...progress, reason: "GOAL" }
    case "UserCancelled":
      return { ...progress, reason: "ABORTED", stop: "it was cancelled" }
    case "InvalidStream":
    case "ContextWindowWillOverflow":
    case "Error":
      return { ...progress, reason: "ERROR", stop: event.message }
    case "LimitReached":
      return { ...progress, reason: event.limit === "time" ? "TIMEOUT" : "MAX_TURNS", stop: event.message }
    case "LoopDetected":
      return event.halted ? { ...progress, reason: "ERROR", stop: `it was stuck in a loop: ${event.detail}` } : progress
    default:
      return progress
  }
}

/** Whether the agent waits for a message and sends nothing more. */
export const isEnd = (event: ChatEvent, { calls }: ProcessProgress): boolean => {
  switch (event._tag) {
    case "Finished":
      return !calls
    case "UserCancelled":
    case "InvalidStream":
    case "ContextWindowWillOverflow":
    case "Error":
    case "LimitReached":
      return true
    case "LoopDetected":
      return event.halted
    default:
      return false
  }
}

/** Returns the activity that an event reports to the parent. Undefined when it reports none. */
export const activityOf = (event: ChatEvent): Activity | undefined => {
  switch (event._tag) {
    case "Thought":
      return { _tag: "Thought", text: event.subject === "" ? event.description : event.subject }
    case "ToolCallStarted":
      return { _tag: "CallStarted", id: event.id, name: event.name, title: event.title }
    case "ToolCallResponse":
      return { _tag: "CallEnded", id: event.id, name: event.name, status: event.status }
    case "SubagentActivity":
      return event.activity
    case "Retry":
    case "Error":
    case "InvalidStream":
      return { _tag: "Failed", message: event.message }
    default:
      return undefined
  }
}

/** Returns the result of the agent. Keeps the text that it wrote before a failure. `duration` is in milliseconds. */
export const processResult = ({ reason = "GOAL", stop, text, turns }: ProcessProgress, duration: number) => ({
  text: stop === undefined ? text : text === "" ? stop : `${stop}\n\nPartial result:\n${text}`,
  reason,
  turns,
  duration,
  session: undefined
})

/** Returns the last lines of a process's stderr. */
export const lastLines = (text: string): string => {
  const last = text.trim().split("\n").slice(-5).join("\n").trim()
  return last === "" ? "" : `; the last lines of its error output: ${last}`
}

const signals: ReadonlyMap<number, string> = new Map([
  [130, "it was interrupted"],
  [134, "it crashed"],
  [137, "it was killed, possibly because memory ran out"],
  [139, "it crashed"],
  [143, "it was terminated"]
])

/** Describes how a program ended. */
export const exitText = (program: string, code: number): string => {
  const why = signals.get(code)
  return `${program} ended with exit status ${code}${why === undefined ? "" : ` (${why})`}`
}
