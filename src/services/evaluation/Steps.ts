import { Clock, Effect } from "effect"

/** Nanoseconds of work between two pauses. */
const maxWork = 5_000_000n

/**
 * Does plain work on one item after another, and returns the results. Between two items other fibers can run and the fiber can
 * be interrupted, whenever it worked for some milliseconds.
 */
export const eachItem = Effect.fnUntraced(function* <A, B>(
  items: Iterable<A>,
  work: (item: A) => B
): Effect.fn.Return<ReadonlyArray<B>> {
  const clock = yield* Clock.Clock
  const results: Array<B> = []
  let since = clock.monotonicTimeNanosUnsafe()
  for (const item of items) {
    results.push(work(item))
    if (clock.monotonicTimeNanosUnsafe() - since < maxWork) continue
    yield* Effect.yieldNow
    since = clock.monotonicTimeNanosUnsafe()
  }
  return results
})
