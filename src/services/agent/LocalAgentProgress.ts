/** Reads the progress of an agent from the events of its run: its end, its text, its activity. */

import type { AgentResult, TerminateReason } from "../../domain/agent/AgentResult.ts"
import type { Activity, ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { Handle } from "../../domain/content/Handle.ts"
import * as CompleteTask from "./CompleteTask.ts"
import type { Limits } from "./RunBounds.ts"

/** How a run ended that submitted no result. */
export interface RunEnd {
  readonly reason: TerminateReason
  /** What happened, as a continuation of "the agent". */
  readonly words: string
  /** Whether the agent gets one more turn to submit what it has. */
  readonly hasGrace: boolean
}

const limitEnd = (event: Extract<ChatEvent, { readonly _tag: "LimitReached" }>, limits: Limits): RunEnd => {
  switch (event.limit) {
    case "turns":
      return { reason: "MAX_TURNS", words: `reached its limit of ${limits.turns ?? "?"} turns`, hasGrace: true }
    case "time":
      return {
        reason: "TIMEOUT",
        words: `reached its limit of ${Math.round((limits.time ?? 0) / 6_000) / 10} minutes`,
        hasGrace: true
      }
    case "tokens":
    case "cost":
      return { reason: "ERROR", words: `used up its budget (${event.message})`, hasGrace: false }
  }
}

/** The end of a run that stopped by itself without a result. */
const silent: RunEnd = {
  reason: "ERROR_NO_COMPLETE_TASK_CALL",
  words: `stopped without submitting a result with ${CompleteTask.completeTask}`,
  hasGrace: true
}

/** The result of an agent that submitted none: what stopped it, and what it wrote. Never empty. */
const unfinished = (what: string, soFar: string): string =>
  soFar === ""
    ? `It ${what}. It wrote nothing that could be returned.`
    : `It ${what}. Its last text follows; it is not a finished result:\n${soFar}`

/**
 * The result of a run, from how it ended and from what was submitted. `end` is undefined if a result was submitted in time; with both, the result
 * came in the grace turn. `note`: what is to be said of it in any case.
 */
export const outcomeOf = (
  end: Pick<RunEnd, "reason" | "words"> | undefined,
  submitted: string | undefined,
  soFar: string,
  note: string | undefined
): Pick<AgentResult, "text" | "reason" | "note"> => {
  if (submitted === undefined) {
    const { reason, words } = end ?? silent
    return { text: unfinished(words, soFar), reason, note }
  }
  const late = end === undefined ? undefined : `It had ${end.words}; this is what it had until then.`
  const notes = [note, late].filter((line) => line !== undefined)
  return { text: submitted, reason: "GOAL", note: notes.length === 0 ? undefined : notes.join(" ") }
}

const headline = (event: Extract<ChatEvent, { readonly _tag: "Thought" }>): string =>
  event.subject === "" ? event.description : event.subject

/** The activity that represents an event. Undefined: none. */
export const activityOf = (event: ChatEvent): Activity | undefined => {
  switch (event._tag) {
    case "Thought":
      return { _tag: "Thought", text: headline(event) }
    case "ToolCallStarted":
      return { _tag: "CallStarted", id: event.id, name: event.name, title: event.title }
    case "ToolCallResponse":
      return { _tag: "CallEnded", id: event.id, name: event.name, status: event.status }
    case "Finished":
      return { _tag: "TurnEnded", tokens: event.tokens }
    case "InvalidStream":
    case "ContextWindowWillOverflow":
    case "Error":
    case "LimitReached":
      return { _tag: "Failed", message: event.message }
    case "HookStopped":
      return { _tag: "Failed", message: `stopped by a hook: ${event.message}` }
    case "LoopDetected":
      return { _tag: "Failed", message: event.detail }
    default:
      return undefined
  }
}

/** The state of an agent's work, accumulated from its events. Mutable. */
export class RunProgress {
  turns = 0
  /** For each handle, the conversation up to the end of a task, as a number of entries. */
  readonly handles = new Map<Handle, number>()
  /** How the run ended so far; `silent` until an event says otherwise. */
  end: RunEnd = silent
  private limits: Limits = {}
  private answer = ""
  private turnText = ""

  /** Begins another run with these limits. */
  begin(limits: Limits): void {
    this.limits = limits
    this.end = silent
  }

  /** The text of the last turn, even if it was stopped. */
  get soFar(): string {
    return this.answer.trim() === "" ? this.turnText : this.answer.trim()
  }

  /** Adds an event. Returns true if there is new text. */
  push(event: ChatEvent): boolean {
    switch (event._tag) {
      case "ModelInfo":
        this.turns += 1
        this.turnText = this.soFar
        this.answer = ""
        return false
      case "Retry":
        this.answer = ""
        return false
      case "Content":
        this.answer += event.text
        return false
      case "Finished":
        return this.answer.trim() !== ""
      case "LimitReached":
        this.end = limitEnd(event, this.limits)
        return false
      case "LoopDetected":
        if (event.halted) this.end = { reason: "ERROR", words: `was stuck in a loop (${event.detail})`, hasGrace: true }
        return false
      case "UserCancelled":
        this.end = { reason: "ABORTED", words: "was stopped", hasGrace: false }
        return false
      case "HookStopped":
        this.end = { reason: "ABORTED", words: `was stopped by a hook (${event.message})`, hasGrace: false }
        return false
      default:
        return false
    }
  }
}
