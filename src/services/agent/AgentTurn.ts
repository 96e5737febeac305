/** One turn of an agent: its message is sent, and its answer watched for loops. */

import { Deferred, Effect, Stream } from "effect"
import type { Loop } from "../../domain/agent/LoopDetection.ts"
import { afterEvent, isOwnEnd, type TurnEnd, turnBegins } from "../../domain/agent/TurnEnd.ts"
import type { Emit } from "../chat/ChatState.ts"
import type { TurnError } from "../chat/Turn.ts"
import { retryWhileBusy } from "./AgentConversation.ts"
import type { AgentRun } from "./AgentRun.ts"
import type { LoopDetector } from "./LoopDetector.ts"

/** How a turn of an agent ended. */
interface AgentTurnEnd extends TurnEnd {
  /** The loop for which the answer was interrupted. */
  readonly loop: Loop | undefined
}

/** Runs the next turn and passes its events on, except the end of a turn that this function stopped itself. */
export const runTurn = Effect.fnUntraced(function* ({
  bounds: { stopped },
  emit,
  next: { attached, author, message, messageId },
  profile: { chat, loops },
  used
}: AgentRun): Effect.fn.Return<AgentTurnEnd, TurnError> {
  const looping = yield* Deferred.make<Loop>()
  // After its first turn, a run waits for the user's operations on the conversation instead of failing.
  const isUnderWay = used.turns > 1
  let end = turnBegins
  yield* chat
    .send(message, {
      cancel: Effect.raceFirst(stopped, Deferred.await(looping)),
      author,
      attached,
      messageId,
      through: loops === undefined ? undefined : (pass) => watch(loops, pass, looping)
    })
    .pipe(
      Stream.runForEach((event) => {
        end = afterEvent(end, event)
        return isOwnEnd(event, isUnderWay) ? Effect.void : emit(event)
      }),
      Effect.retry({ schedule: retryWhileBusy, while: ({ _tag }) => isUnderWay && _tag === "ChatBusy" })
    )
  const loop = !end.isFinished && (yield* Deferred.isDone(looping)) ? yield* Deferred.await(looping) : undefined
  return { ...end, loop }
})

/**
 * Shows the answer to the loop detector as it arrives. The turn goes no further than the text that completes a loop, so that the same answer ends
 * the same way however it is cut and timed.
 */
const watch =
  (loops: LoopDetector, pass: Emit, looping: Deferred.Deferred<Loop>): Emit =>
  (event) => {
    if (event._tag === "Retry") return Effect.andThen(loops.again, pass(event))
    if (event._tag !== "Content") return pass(event)
    return Effect.flatMap(loops.content(event.text), (loop) =>
      loop === undefined
        ? pass(event)
        : pass({ ...event, text: event.text.slice(0, loop.end) }).pipe(
            Effect.andThen(Deferred.succeed(looping, loop)),
            Effect.andThen(Effect.never)
          )
    )
  }
