/** Holds the messages that the user typed while the agent works. */

import { Cause, Effect, Queue } from "effect"
import { Closed } from "../../services/terminal/ChatTerminal.ts"

/** A complete message. */
export interface TypedMessage {
  readonly text: string
  /** Whether it waits for a prompt, also while work goes on that could take it. */
  readonly waits: boolean
  /** Stores it in the history. */
  readonly store: Effect.Effect<void>
}

/** Makes an empty queue of the messages that wait for the next prompts. The user can take them back until a prompt takes them. */
export const make = Effect.gen(function* () {
  const arrivals = yield* Queue.unbounded<TypedMessage, Closed>()
  /** Messages in `arrivals` that were not taken back, oldest first. */
  const waiting: Array<TypedMessage> = []
  const messages: ReadonlyArray<TypedMessage> = waiting
  return {
    /** Whether messages are still taken. */
    get isOpen(): boolean {
      return arrivals.state._tag === "Open"
    },
    messages,
    /** Adds a message as the newest. */
    add: (message: TypedMessage): void => {
      waiting.push(message)
      Queue.offerUnsafe(arrivals, message)
    },
    /** Takes the messages that need not wait for a prompt. */
    takeTyped: (): ReadonlyArray<TypedMessage> => {
      const taken = waiting.filter(({ waits }) => !waits)
      waiting.splice(0, waiting.length, ...waiting.filter(({ waits }) => waits))
      return taken
    },
    /** Takes all messages back and returns their texts. */
    takeBackAll: (): ReadonlyArray<string> => waiting.splice(0).map(({ text }) => text),
    /** Takes the newest message back and returns its text. */
    takeBackLast: (): string | undefined => waiting.pop()?.text,
    /** Waits for the oldest message that was not taken back. */
    take: Effect.gen(function* () {
      let message = yield* Queue.take(arrivals)
      while (message !== waiting[0]) message = yield* Queue.take(arrivals)
      waiting.shift()
      return message
    }),
    /** Takes no more messages, and fails what waits for one. */
    close: (): void => {
      Queue.failCauseUnsafe(arrivals, Cause.fail(new Closed()))
    }
  }
})
/** The messages that wait for the next prompts. */
export type MessageQueue = Effect.Success<typeof make>
