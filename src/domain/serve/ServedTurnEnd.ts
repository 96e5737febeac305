import { Schema } from "effect"
import type { ChatEvent } from "../chat/ChatEvent.ts"
import { TurnStatus } from "./EventBuffer.ts"

/** How a turn ended that the server ran. `error`: why there is no answer. */
export const ServedTurnEnd = Schema.Struct({ status: TurnStatus, error: Schema.NullOr(Schema.String) })
export type ServedTurnEnd = typeof ServedTurnEnd.Type

/** The end of a turn after one more of its events. */
export const endAfter = (before: ServedTurnEnd, event: ChatEvent): ServedTurnEnd => {
  switch (event._tag) {
    case "UserCancelled":
      return { status: "cancelled", error: null }
    case "Error":
    case "InvalidStream":
    case "ContextWindowWillOverflow":
      return { status: "failed", error: event.message }
    case "HookStopped":
      return event.refused ? { status: "failed", error: event.message } : before
    case "Finished":
      return { status: "answered", error: null }
    default:
      return before
  }
}
