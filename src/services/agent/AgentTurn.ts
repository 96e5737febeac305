import { Deferred, Effect, Stream } from "effect"
import type { Loop } from "../../domain/agent/LoopDetection.ts"
import { afterEvent, isOwnEnd, type TurnEnd, turnBegins } from "../../domain/agent/TurnEnd.ts"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { TurnError } from "../chat/Turn.ts"
import { retryWhileBusy } from "./AgentConversation.ts"
import type { AgentRun } from "./AgentRun.ts"
import type { LoopDetector } from "./LoopDetector.ts"

/** One turn of an agent: its message is sent, and its answer watched for loops. */

/** How a turn of an agent ended. */
export interface AgentTurnEnd extends TurnEnd {
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
    .send(message, { cancel: Effect.raceFirst(stopped, Deferred.await(looping)), author, attached, messageId })
    .pipe(
      Stream.runForEach((event) => {
        end = afterEvent(end, event)
        if (isOwnEnd(event, isUnderWay)) return Effect.void
        return loops === undefined ? emit(event) : Effect.andThen(emit(event), watch(loops, event, looping))
      }),
      Effect.retry({ schedule: retryWhileBusy, while: ({ _tag }) => isUnderWay && _tag === "ChatBusy" })
    )
  const loop = !end.isFinished && (yield* Deferred.isDone(looping)) ? yield* Deferred.await(looping) : undefined
  return { ...end, loop }
})

/** Shows the answer to the loop detector and interrupts it in a loop. */
const watch = (loops: LoopDetector, event: ChatEvent, looping: Deferred.Deferred<Loop>): Effect.Effect<unknown> => {
  if (event._tag === "Retry") return loops.again
  if (event._tag !== "Content") return Effect.void
  return Effect.flatMap(loops.content(event.text), (loop) =>
    loop === undefined ? Effect.void : Deferred.succeed(looping, loop)
  )
}
