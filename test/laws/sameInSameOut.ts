import { Effect } from "effect"
import { projectMessages, sentJson } from "../../src/domain/conversation/Projection.ts"
import { encodeLine } from "../../src/domain/session/LogFormat.ts"
import type { Check, Played } from "../support/generate.ts"

/** Law 7: the same conversation, played again in a new world, gives the same bytes. */

const described = Effect.fnUntraced(function* ({ chat, events, moments }: Played) {
  return {
    log: events.map((event) => encodeLine(event)).join("\n"),
    outcomes: JSON.stringify(moments.map(({ outcome }) => outcome)),
    sent: sentJson(projectMessages(yield* chat.conversation))
  }
})

/** A second play gives the same log, the same outcomes and the same request. */
export const sameAgain: Check = Effect.fnUntraced(function* (played, _, again) {
  const first = yield* described(played)
  const second = yield* described(yield* again)
  if (first.log !== second.log) return "the logs differ"
  if (first.outcomes !== second.outcomes) return "the outcomes differ"
  return first.sent === second.sent ? undefined : "what is sent differs"
})
