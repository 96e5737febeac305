/** The end of a resumed conversation: which messages are shown, and calls in the lines that they had when they ran. */

import { Effect } from "effect"
import { actionsOf } from "../../domain/actions/Actions.ts"
import { subjectOf } from "../../domain/compression/evidence/ToolFailures.ts"
import { type Content, isErrorResponse, isResponse } from "../../domain/content/Content.ts"
import { responseText as textOfResponse } from "../../domain/content/MediaBlocks.ts"
import type { CallWithResponse } from "../../domain/conversation/CallPairs.ts"
import { visibleLine } from "../../domain/text/InvisibleCharacters.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import { wasDenied } from "../../domain/tools/Approval.ts"
import { type Tool, toolsByName, unwatchedCall } from "../../services/tools/Tool.ts"
import { responseText } from "../output/ToolCallText.ts"

const maxTitleChars = 80

/** The title of a call whose tool gives none: its name, and its command, file or pattern. */
export const plainTitle = ({ call, response }: CallWithResponse): string => {
  const part = { functionCall: call }
  const subject = subjectOf(part, actionsOf(part, response))
  return visibleLine(shortLine(subject.startsWith(call.name) ? subject : `${call.name} ${subject}`, maxTitleChars))
}

const titleOf = (tools: ReadonlyArray<Tool>, answered: CallWithResponse) => {
  const { args, name } = answered.call
  const tool = toolsByName(tools).get(name)
  return tool === undefined
    ? Effect.succeed(plainTitle(answered))
    : Effect.match(tool.call(args, unwatchedCall("", "")), { onSuccess: ({ title }) => title, onFailure: () => name })
}

/** The exit code of a command that failed; undefined where none did. */
const failedExit = ({ call, response }: CallWithResponse): number | undefined =>
  actionsOf({ functionCall: call }, response)
    .flatMap((action) => (action._tag === "Command" ? (action.exit ?? 0) : 0))
    .find((exit) => exit !== 0)

const statusOf = ({ call, response }: CallWithResponse, text: string) => {
  if (response === undefined) return "cancelled"
  if (!isErrorResponse(response)) return "success"
  if (wasDenied(call.name, text)) return "denied"
  return text.startsWith("[Operation Cancelled") ? "cancelled" : "error"
}

/** Turns, and messages of these, that are shown at most when a session is resumed. */
const maxTurns = 2
const maxMessages = 30

/** Whether the user typed a message: the others hold responses of tools. */
export const isTyped = ({ parts, role }: Content): boolean => role === "user" && !parts.some(isResponse)

/** The last turns of a conversation, with the prompt of the last one, and how many messages of these are not shown. */
export const lastTurns = (
  all: ReadonlyArray<Content>
): { readonly shown: ReadonlyArray<Content>; readonly skipped: number } => {
  const typed = all.flatMap((content, index) => (isTyped(content) ? [index] : []))
  const from = typed.at(-maxTurns) ?? 0
  const skipped = Math.max(0, all.length - from - maxMessages)
  const prompt = all.slice(0, from + skipped).slice(typed.at(-1) ?? all.length, (typed.at(-1) ?? 0) + 1)
  return { shown: [...prompt, ...all.slice(from + skipped)], skipped: skipped - prompt.length }
}

/** The line of a call: its title, and why it failed. */
export const pastCallText = Effect.fnUntraced(function* (tools: ReadonlyArray<Tool>, answered: CallWithResponse) {
  const { call, response } = answered
  const text = response === undefined ? "" : textOfResponse(response)
  const exit = failedExit(answered)
  const event = {
    id: "",
    name: call.name,
    status: exit === undefined ? statusOf(answered, text) : "error",
    display: null,
    message: exit === undefined ? text : `exit code ${exit}`,
    duration: 0
  } as const
  return {
    isDone: event.status === "success",
    line: responseText({ _tag: "ToolCallResponse", ...event }, yield* titleOf(tools, answered))
  }
})
