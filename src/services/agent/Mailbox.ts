import { Effect, Stream, SubscriptionRef } from "effect"

/** Texts of the program for a running agent. They are kept until the agent reads them between two of its turns. */
export interface Mailbox {
  /** Adds a text, which must start with the runtime mark. */
  readonly put: (text: string) => Effect.Effect<void>
  /** Passes all texts to `use`, in order of arrival. They stay in the mailbox if `use` fails or is interrupted. One delivery at a time, and no `withdraw` meanwhile. */
  readonly deliver: <A, E, R>(use: (texts: ReadonlyArray<string>) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Removes a text. Returns whether it was still there. */
  readonly withdraw: (text: string) => Effect.Effect<boolean>
  /** Whether the mailbox has messages. */
  readonly hasMail: Effect.Effect<boolean>
  /** Waits until the mailbox has a message. For an agent whose turn has ended. */
  readonly arrival: Effect.Effect<void>
}

/** Makes an empty mailbox. */
export const make: Effect.Effect<Mailbox> = Effect.gen(function* () {
  const queue = yield* SubscriptionRef.make<ReadonlyArray<string>>([])
  return {
    put: (text) => SubscriptionRef.update(queue, (texts) => [...texts, text]),
    deliver: (use) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(SubscriptionRef.get(queue), (texts) =>
          Effect.tap(restore(use(texts)), () => SubscriptionRef.update(queue, (now) => now.slice(texts.length)))
        )
      ),
    withdraw: (text) =>
      SubscriptionRef.modify(queue, (texts) => {
        const at = texts.indexOf(text)
        return [at >= 0, at < 0 ? texts : texts.toSpliced(at, 1)]
      }),
    hasMail: Effect.map(SubscriptionRef.get(queue), (texts) => texts.length > 0),
    arrival: SubscriptionRef.changes(queue).pipe(
      Stream.takeUntil((texts) => texts.length > 0),
      Stream.runDrain
    )
  }
})
