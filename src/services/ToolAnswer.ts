import type { CallStatus } from "../domain/ChatEvent.ts"
import type { FunctionCall } from "../domain/Content.ts"
import { errorResponse, type ToolResult } from "../domain/ToolResult.ts"

/** A call that the model asks for. */
export interface Asking {
  readonly call: FunctionCall
  /** The call's own id, else one of its place in the conversation. */
  readonly id: string
}

/** What became of a call. */
export interface Answered {
  readonly status: CallStatus
  /** The `response` that the model is given. */
  readonly response: Readonly<Record<string, unknown>>
  readonly result: ToolResult | undefined
  /** Of the response, what hooks put behind the tool's own words. */
  readonly added?: string | undefined
  /** A hook wants the whole work to stop, and why. */
  readonly stops?: string | undefined
}

/** The answer to a call that came to nothing. */
export const failed = (status: CallStatus, message: string): Answered => ({
  status,
  response: errorResponse(message),
  result: undefined
})

/** The answer to a call that was given up, with what it had printed until then. */
export const givenUp = (why: string, partial: string | undefined): Answered =>
  failed(
    "cancelled",
    `[Operation Cancelled] ${why}${partial === undefined || partial === "" ? "" : `. What there was until then:\n${partial}`}`
  )

/** Why a call was given up whose run was closed. */
export const closed = "the program was stopped before it was done"
