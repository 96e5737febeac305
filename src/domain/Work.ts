import { Effect } from "effect"

/**
 * Pure work in slices. A generator does a little, yields how much that was (in characters of plain scanning, about 10 ns
 * each), and goes on when asked; whoever runs it can stop in between. So a plan over a long conversation stays pure
 * and can still be interrupted (law 2: no slice over 20 ms).
 */
export type Work<A> = Generator<number, A, void>

/** Characters of scanning between two pauses: some 5 ms. */
const slice = 400_000

/** All at once: for tests and for small inputs. */
export const runSync = <A>(work: Work<A>): A => {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** In slices, with a chance for other fibers, and for an interruption, between any two. */
export const run = Effect.fnUntraced(function* <A>(work: Work<A>): Effect.fn.Return<A> {
  for (;;) {
    let done = 0
    while (done < slice) {
      const step = work.next()
      if (step.done === true) return step.value
      done += step.value
    }
    yield* Effect.yieldNow
  }
})
