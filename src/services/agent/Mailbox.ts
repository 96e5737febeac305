import { Effect, Exit, Latch } from "effect"

/** Texts of the program for a running agent. They are kept until the agent reads them between two of its turns. */
export interface Mailbox {
  /** Adds a text, which must start with the runtime mark. */
  readonly put: (text: string) => Effect.Effect<void>
  /** Takes all texts, in order of arrival. They stay in the mailbox if `use` fails or is interrupted. */
  readonly deliver: <A, E, R>(use: (texts: ReadonlyArray<string>) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Whether the mailbox has messages. */
  readonly hasMail: Effect.Effect<boolean>
  /** Waits until the mailbox has a message. For an agent whose turn has ended. */
  readonly arrival: Effect.Effect<void>
}

/** Makes an empty mailbox. */
export const make: Effect.Effect<Mailbox> = Effect.gen(function* () {
  const filled = yield* Latch.make(false)
  // The queue and the latch change together, so that no message arrives between the two.
  let queue: ReadonlyArray<string> = []
  const change = (next: ReadonlyArray<string>): ReadonlyArray<string> => {
    const before = queue
    queue = next
    if (next.length > 0) filled.openUnsafe()
    else filled.closeUnsafe()
    return before
  }
  const take = Effect.sync(() => change([]))
  return {
    put: (text) => Effect.sync(() => void change([...queue, text])),
    deliver: (use) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(take, (messages) =>
          Effect.onExit(restore(use(messages)), (exit) =>
            Effect.sync(() => {
              if (Exit.isFailure(exit)) change([...messages, ...queue])
            })
          )
        )
      ),
    hasMail: Effect.sync(() => queue.length > 0),
    arrival: filled.await
  }
})
