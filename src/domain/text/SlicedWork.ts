import { Effect } from "effect"

/**
 * Pure work in slices: a generator that yields where it can pause. A plan over a long conversation therefore stays pure and can
 * still be interrupted: no slice takes more than 20 ms. Between two places to pause, work is bounded to a few milliseconds.
 */
export type SlicedWork<A> = Generator<void, A, void>

/** The milliseconds after which a slice ends at the next place to pause. */
export const sliceMillis = 5

/** Works until the time of a slice is over, or the work is done. */
export const slice = <A>(work: SlicedWork<A>): IteratorResult<void, A> => {
  const end = performance.now() + sliceMillis
  for (;;) {
    const step = work.next()
    if (step.done === true || performance.now() >= end) return step
  }
}

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
    const step = slice(work)
    if (step.done === true) return step.value
    yield* Effect.yieldNow
  }
})
