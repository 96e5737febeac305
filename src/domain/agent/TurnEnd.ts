import type { ChatEvent } from "../chat/ChatEvent.ts"
import type { Usage } from "../tokens/Tokens.ts"
import { outputLimit } from "../wire/AnswerReader.ts"

/** How a turn ended, read from its events. */
export interface TurnEnd {
  readonly isFinished: boolean
  /** Whether the answer ended at the model's output limit. Its last call may be half of what the model meant. */
  readonly isCut: boolean
  readonly model: string
  readonly usage: Usage | null
  /** Whether a compression removed content from the window before the turn. */
  readonly isCompressed: boolean
  /** The tools that a hook left to choose from. Absent: all. */
  readonly tools?: ReadonlyArray<string>
}

/** A turn without events. */
export const turnBegins: TurnEnd = { isFinished: false, isCut: false, model: "", usage: null, isCompressed: false }

/** The turn after one more event. */
export const afterEvent = (end: TurnEnd, event: ChatEvent): TurnEnd => {
  switch (event._tag) {
    case "ModelInfo":
      return { ...end, model: event.model }
    case "ChatCompressed":
      return { ...end, isCompressed: end.isCompressed || event.status === "COMPRESSED" }
    case "Finished":
      return {
        ...end,
        isFinished: true,
        isCut: event.reason === outputLimit,
        usage: event.usage,
        ...(event.tools === undefined ? {} : { tools: event.tools })
      }
    default:
      return end
  }
}

/** Whether an event is the end of a turn that the agent itself stopped, or of one that it tries again while the conversation is busy. */
export const isOwnEnd = (event: ChatEvent, triesAgain: boolean): boolean =>
  event._tag === "UserCancelled" || (triesAgain && event._tag === "Error" && event.reason === "ChatBusy")
