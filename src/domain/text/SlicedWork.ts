import { Effect } from "effect"

/**
 * Pure work in slices. A generator does a little work, yields its cost (in characters of plain scanning, about 10 ns each), and
 * continues when resumed; the caller can stop in between. A plan over a long conversation therefore stays pure and can still be
 * interrupted: no slice takes more than 20 ms.
 */
export type SlicedWork<A> = Generator<number, A, void>

/** Characters of scanning between two pauses: about 5 ms. */
const sliceCost = 400_000

/** Runs the work at once, without pauses. *When to use*: in tests and for small inputs. */
export const runSync = <A>(work: SlicedWork<A>): A => {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** Runs the work in slices. Between two slices other fibers can run and the fiber can be interrupted. */
export const run = Effect.fnUntraced(function* <A>(work: SlicedWork<A>): Effect.fn.Return<A> {
  for (;;) {
    let done = 0
    while (done < sliceCost) {
      const step = work.next()
      if (step.done === true) return step.value
      done += step.value
    }
    yield* Effect.yieldNow
  }
})
