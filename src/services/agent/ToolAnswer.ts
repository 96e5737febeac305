/** The calls that a model requested, and the answers to those that failed or were abandoned. */

import type { CallStatus, ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { FunctionCall } from "../../domain/content/Content.ts"
import { errorResponse, type ToolResult, truncateDisplay, truncateMessage } from "../../domain/tools/ToolResult.ts"

/** A call that the model requested. */
export interface PendingCall {
  readonly call: FunctionCall
  /** The call's own id, or else one made from its place in the conversation. */
  readonly id: string
}

/** The outcome of a call. */
export interface CallAnswer {
  readonly status: CallStatus
  /** The `response` object that the model receives. */
  readonly response: Readonly<Record<string, unknown>>
  readonly result: ToolResult | undefined
  /** The part of the response that hooks appended to the tool's own text. */
  readonly added?: string | undefined
  /** Why a hook stops the whole run. Undefined: no hook does. */
  readonly stops?: string | undefined
}

/** The answer to a call that failed. */
export const failedAnswer = (status: CallStatus, message: string): CallAnswer => ({
  status,
  response: errorResponse(message),
  result: undefined
})

/** The answer to an abandoned call, with its output up to then. */
export const abandonedAnswer = (why: string, partial = ""): CallAnswer =>
  failedAnswer("cancelled", `[Operation Cancelled] ${why}${partial === "" ? "" : `. Output until then:\n${partial}`}`)

/** The reason in the answer to a call whose run was closed. */
export const stoppedReason = "the program was stopped before the call finished"

/** The event about the answer to a call. */
export const responseEvent = (
  id: string,
  name: string,
  { response: { error }, status }: CallAnswer,
  duration: number,
  display: ToolResult["display"] = undefined
): ChatEvent => ({
  _tag: "ToolCallResponse",
  id,
  name,
  status,
  display: display === undefined ? null : truncateDisplay(display),
  message: typeof error === "string" && status !== "success" ? truncateMessage(error) : null,
  duration
})
