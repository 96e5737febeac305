import { Clock, Effect } from "effect"

/**
 * Pure work in slices: a generator that yields where it can pause. A plan over a long conversation therefore stays pure and can
 * still be interrupted. Between two places to pause, work takes a few milliseconds; docs/performance.md has the longest ones.
 */
export type SlicedWork<A> = Generator<void, A, void>

/** The milliseconds after which a slice ends at the next place to pause. */
export const sliceMillis = 5

/**
 * Works until the time of a slice is over, or the work is done. By a clock that stands still, as in tests, all of it is one slice: no
 * test depends on how fast its machine is.
 */
export const slice = <A>(work: SlicedWork<A>, clock: Clock.Clock): IteratorResult<void, A> => {
  const began = clock.currentTimeMillisUnsafe()
  for (;;) {
    const step = work.next()
    // A clock can be set back.
    if (step.done === true || Math.abs(clock.currentTimeMillisUnsafe() - began) >= sliceMillis) return step
  }
}

/** Work on one item after another, with a place to pause after each. Returns the results. */
export function* eachItem<A, B>(items: Iterable<A>, work: (item: A) => B): SlicedWork<ReadonlyArray<B>> {
  const results: Array<B> = []
  for (const item of items) {
    results.push(work(item))
    yield
  }
  return results
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
  const clock = yield* Clock.Clock
  for (;;) {
    const step = slice(work, clock)
    if (step.done === true) return step.value
    yield* Effect.yieldNow
  }
})
