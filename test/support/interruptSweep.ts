import { Effect, type Exit, Fiber, Scheduler } from "effect"

/** Interrupts one fiber when the k-th opportunity to yield comes, wherever in its tree that is. */
class InterruptAt extends Scheduler.MixedScheduler {
  private seen = 0
  hit = false
  root: Fiber.Fiber<unknown, unknown> | undefined
  readonly k: number

  constructor(k: number) {
    super()
    this.k = k
  }

  override shouldYield(): boolean {
    this.seen += 1
    // Yielding once is enough; yielding always would never get on.
    if (this.seen !== this.k) return false
    this.hit = true
    // The first slice runs before the fiber is known here, hence later.
    queueMicrotask(() => this.root?.interruptUnsafe())
    return true
  }
}

/**
 * Runs a program again and again, interrupted at its first suspension point, its second, and so on, until it has none left;
 * `check` is given the exit of each run, the last of which was not interrupted. The same program has the same points every
 * time. Answers how many there were.
 */
export const interruptSweep = Effect.fnUntraced(function* <A, E, R, E2, R2>(
  /** A fresh program for each run: new folders, new stores. */
  program: (k: number) => Effect.Effect<A, E, R>,
  check: (exit: Exit.Exit<A, E>, k: number) => Effect.Effect<void, E2, R2>,
  /** Only every so manieth point is tried: for programs that start processes. */
  stride = 1
): Effect.fn.Return<number, E2, R | R2> {
  const context = yield* Effect.context<R>()
  for (let k = 1; ; k += stride) {
    const scheduler = new InterruptAt(k)
    const fiber = Effect.runForkWith(context)(Effect.provideService(program(k), Scheduler.Scheduler, scheduler))
    scheduler.root = fiber
    yield* check(yield* Fiber.await(fiber), k)
    if (!scheduler.hit) return k - 1
  }
})
