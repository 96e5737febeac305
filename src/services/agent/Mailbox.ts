import { Effect, Exit, Latch } from "effect"

/** A message of the program in a conversation: it has the user's role and is marked as not the user's. */
export interface MailboxMessage {
  /** The text; starts with the runtime mark. */
  readonly text: string
  readonly author: "program"
}

/** Messages of the program for a running agent. They are kept until the agent reads them between two of its turns. */
export interface Mailbox {
  /** Adds a message; the text must start with the runtime mark. */
  readonly put: (text: string) => Effect.Effect<void>
  /** Takes all messages, in order of arrival. */
  readonly pending: Effect.Effect<ReadonlyArray<MailboxMessage>>
  /** Like `pending`, but the messages stay in the mailbox if `use` fails or is interrupted. */
  readonly deliver: <A, E, R>(
    use: (queue: ReadonlyArray<MailboxMessage>) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** Whether the mailbox has messages. */
  readonly hasMail: Effect.Effect<boolean>
  /** Waits until the mailbox has a message. For an agent whose turn has ended. */
  readonly arrival: Effect.Effect<void>
}

/** Makes an empty mailbox. */
export const make: Effect.Effect<Mailbox> = Effect.gen(function* () {
  const filled = yield* Latch.make(false)
  // The queue and the latch change together, so that no message arrives between the two.
  let queue: ReadonlyArray<MailboxMessage> = []
  const change = (next: ReadonlyArray<MailboxMessage>): ReadonlyArray<MailboxMessage> => {
    const before = queue
    queue = next
    if (next.length > 0) filled.openUnsafe()
    else filled.closeUnsafe()
    return before
  }
  const take = Effect.sync(() => change([]))
  return {
    put: (text) => Effect.sync(() => void change([...queue, { text, author: "program" }])),
    pending: take,
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
