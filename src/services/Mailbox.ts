import { Effect, Exit, Latch } from "effect"

/** A message that a program puts into a conversation: in the user's role, and marked as not the user's (law 6). */
export interface Letter {
  /** Opens with the runtime's mark. */
  readonly text: string
  readonly author: "program"
}

/** What a program has to say to an agent at work: kept until the agent looks, between two of its turns. */
export interface Mailbox {
  /** Leaves a letter; the text opens with the runtime's mark. */
  readonly put: (text: string) => Effect.Effect<void>
  /** Takes out all that is there, in the order in which it came. */
  readonly pending: Effect.Effect<ReadonlyArray<Letter>>
  /** As `pending`, for as long as `use` succeeds: if it fails or is interrupted, the letters lie there as before. */
  readonly deliver: <A, E, R>(use: (letters: ReadonlyArray<Letter>) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Whether something lies there. */
  readonly hasMail: Effect.Effect<boolean>
  /** Waits until something lies there: for who ended its turn to be told. */
  readonly arrival: Effect.Effect<void>
}

/** An empty mailbox. */
export const make: Effect.Effect<Mailbox> = Effect.gen(function* () {
  const filled = yield* Latch.make(false)
  // The letters and the latch change at once, so that no letter comes between the two.
  let letters: ReadonlyArray<Letter> = []
  const change = (next: ReadonlyArray<Letter>): ReadonlyArray<Letter> => {
    const before = letters
    letters = next
    if (next.length > 0) filled.openUnsafe()
    else filled.closeUnsafe()
    return before
  }
  const take = Effect.sync(() => change([]))
  return {
    put: (text) => Effect.sync(() => void change([...letters, { text, author: "program" }])),
    pending: take,
    deliver: (use) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(take, (taken) =>
          Effect.onExit(restore(use(taken)), (exit) =>
            Effect.sync(() => {
              if (Exit.isFailure(exit)) change([...taken, ...letters])
            })
          )
        )
      ),
    hasMail: Effect.sync(() => letters.length > 0),
    arrival: filled.await
  }
})
