import { Effect, type Exit, Fiber, Scheduler } from "effect"
import { isUnitTier, strideOf } from "./runs.ts"

/** Interrupts one fiber at the k-th opportunity to yield, anywhere in its tree. */
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
    // Yield once only: yielding every time would make no progress.
    if (this.seen !== this.k) return false
    this.hit = true
    // The first slice runs before the fiber is known here.
    queueMicrotask(() => this.root?.interruptUnsafe())
    return true
  }
}

/**
 * Runs a program repeatedly, interrupted at its first suspension point, its second, and so on, until none is left. `check`
 * receives the exit of each run, the last of which was not interrupted. The same program has the same points in every run.
 * Returns the number of points.
 */
export const interruptSweep = Effect.fnUntraced(function* <A, E, R, E2, R2>(
  /** A fresh program for each run: new folders, new stores. */
  program: (k: number) => Effect.Effect<A, E, R>,
  check: (exit: Exit.Exit<A, E>, k: number) => Effect.Effect<void, E2, R2>,
  /** Tries only every n-th point, and few in the unit tier. All points are tried in the laws tier, unless a program starts processes. */
  stride = isUnitTier ? 307 : strideOf(29),
  /** The first point that is tried. */
  first = 1
): Effect.fn.Return<number, E2, R | R2> {
  const context = yield* Effect.context<R>()
  for (let k = first; ; k += stride) {
    const scheduler = new InterruptAt(k)
    const fiber = Effect.runForkWith(context)(Effect.provideService(program(k), Scheduler.Scheduler, scheduler))
    scheduler.root = fiber
    yield* check(yield* Fiber.await(fiber), k)
    if (!scheduler.hit) return k - 1
  }
})
