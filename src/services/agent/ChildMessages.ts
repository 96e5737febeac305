/** The texts that an agent and the agents it started receive from each other. */

import { Cause, Option } from "effect"
import type { AgentResult } from "../../domain/agent/AgentResult.ts"
import { type Child, maxExchangeReplies } from "../../domain/agent/Children.ts"
import type { Activity } from "../../domain/chat/ChatEvent.ts"
import { firstUnits } from "../../domain/text/Bytes.ts"
import { runtimeMark } from "../../domain/text/RuntimeMark.ts"
import { untrustedBlock, untrustedLine } from "../../domain/text/UntrustedText.ts"
import type { AgentFailure } from "./AgentRunner.ts"

/** The answer of an agent that has nothing to say, as in OpenClaw. */
export const replySkip = "REPLY_SKIP"
/** The result of an agent that wants its end not announced. */
export const announceSkip = "ANNOUNCE_SKIP"
/** Characters of a result in a message: the same limit as for a tool result. */
const maxMessageChars = 40_000

/** The first line of a text, shortened to 120 characters. */
export const firstLine = (text: string): string => {
  const [line = ""] = text.trim().split("\n", 1)
  return line.length > 120 ? `${firstUnits(line, 119)}…` : line
}

const marked = (text: string): string => untrustedBlock(text).replace(/^/gm, "> ")

/** Quotes an agent's text in a message of the runtime. Every line is marked, so that none passes for the runtime's. */
const quote = (text: string, id: string): string => {
  const shown = firstUnits(text, maxMessageChars)
  return shown.length === text.length
    ? marked(shown)
    : `${marked(shown)}\n(${text.length - shown.length} more characters; ask ${id} for the rest with sessions_send)`
}

/** How an agent ended, in words. */
export const outcomes: Record<AgentResult["reason"], string> = {
  GOAL: "reached its goal",
  ERROR: "stopped at an error",
  TIMEOUT: "ran out of time",
  MAX_TURNS: "used up its turns",
  ABORTED: "was stopped",
  ERROR_NO_COMPLETE_TASK_CALL: "stopped without saying that it was done"
}

/** Milliseconds in seconds, with one decimal. */
export const seconds = (millis: number): number => Math.round(millis / 100) / 10

const statsOf = ({ duration, session, turns }: AgentResult): string =>
  `${turns} ${turns === 1 ? "turn" : "turns"}, ${seconds(duration)} s${session === undefined ? "" : `, session ${session}`}`

/** The line of an agent's history about its end. */
export const endNote = (result: AgentResult): string => `It ${outcomes[result.reason]} (${statsOf(result)}).`

/** The message about an agent's result. */
export const resultMessage = (id: string, result: AgentResult): string =>
  `${runtimeMark} The agent ${id} that you started ${outcomes[result.reason]} (${result.reason}; ${statsOf(result)}).${result.note === undefined ? "" : ` ${result.note}`} Its result, in its own words:\n\n${quote(result.text, id)}`

/** The message about an agent that failed. */
export const failureMessage = (id: string, why: string): string =>
  `${runtimeMark} The agent ${id} that you started failed. The reason, as far as it is known:\n\n${quote(why, id)}`

/** The message about a message that was not answered. */
export const unansweredMessage = (id: string, why: string): string =>
  `${runtimeMark} Your message to the agent ${id} was not answered. The reason, as far as it is known:\n\n${quote(why, id)}`

/** The message with a reply, by its number in the exchange. */
export const replyMessage = (id: string, number: number, reply: string): string => {
  const last =
    number === maxExchangeReplies ? " This is the last such message; later ones are in sessions_history." : ""
  return `${runtimeMark} The agent ${id} replies to your message (reply ${number} of ${maxExchangeReplies}; send it ${replySkip} to end the exchange).${last} Its words:\n\n${quote(reply, id)}`
}

/** A message as the started agent reads it. */
export const messageToChild = (message: string): string =>
  `${runtimeMark} A message from the agent that started you, not from the user:\n\n${untrustedBlock(message)}`

/** Returns the reminder of the agents at work. Undefined when there are none. */
export const reminder = (busy: ReadonlyArray<Child<unknown>>): string | undefined =>
  busy.length === 0
    ? undefined
    : `${runtimeMark} Agents that you started and that are still running; each reports when it is done, and you can reach it with sessions_send:\n${busy
        .map(({ id, task }) => `- ${id}: ${untrustedLine(firstLine(task))}`)
        .join("\n")}`

/** The messages to and from one agent. */
export const historyText = ({ history: { blocks, dropped }, id }: Child<unknown>): string => {
  const voices = { you: "You", agent: id, runtime: "The runtime" }
  const lines = blocks.map(({ text, voice }) => `${voices[voice]}:\n${marked(text)}`)
  const gap = dropped === 0 ? [] : [`(${dropped} older entries are left out)`]
  return [...lines.slice(0, 1), ...gap, ...lines.slice(1)].join("\n\n")
}

/** The line of an agent's history about an activity. Undefined: none. */
export const activityText = (activity: Activity): string | undefined => {
  switch (activity._tag) {
    case "Thought":
      return `thinks: ${activity.text}`
    case "CallStarted":
      return `calls ${activity.title}`
    case "CallEnded":
      return activity.status === "success" ? undefined : `${activity.name}: ${activity.status}`
    case "TurnEnded":
      return undefined
    case "Failed":
      return `failed during its work: ${activity.message}`
  }
}

/** Why an agent gave no answer. */
export const causeText = (cause: Cause.Cause<AgentFailure>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? "it was stopped" : "it ended unexpectedly"),
    onSome: ({ message }) => message
  })
