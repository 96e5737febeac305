import { Cause, Clock, Duration, Effect, Exit, Fiber, Option, type PlatformError, type Scope, Stream } from "effect"
import type { ChildProcessSpawner } from "effect/process"
import { type HeadAndTail, headAndTail } from "../domain/HeadAndTail.ts"

/** What a process prints, of which so much is kept. It is added to while the process runs. */
export interface ChildOutput {
  out: HeadAndTail
  err: HeadAndTail
  /** When it printed last. */
  last: number
  /** How often it printed. */
  pieces: number
  /** Ends when nobody can print any more. */
  pumps: Effect.Effect<void>
}

/** How long a pipe that somebody else holds open is listened to after the last it brought, and how often that begins anew. */
const drain = Duration.millis(100)
const drainRounds = 10

/** Output of which nothing is there yet. Bytes are kept of either stream. */
export const noOutput = (bytes: number): Effect.Effect<ChildOutput> =>
  Clock.clockWith((clock) =>
    Effect.sync(() => ({
      out: headAndTail(bytes),
      err: headAndTail(bytes),
      last: clock.currentTimeMillisUnsafe(),
      pieces: 0,
      pumps: Effect.void
    }))
  )

/**
 * Processes that lead a group and run now, by their number, which is the group's. A program that ends at once, without its
 * finalizers, has to end them itself.
 */
export const leaders: Set<number> = new Set()

/** Takes what a process prints, for as long as somebody holds its pipes open: who cannot write would stand still. */
export const takeOutput = Effect.fnUntraced(function* (
  handle: ChildProcessSpawner.ChildProcessHandle,
  output: ChildOutput,
  scope: Scope.Scope
): Effect.fn.Return<void> {
  leaders.add(handle.pid)
  yield* Effect.forkDetach(
    Effect.onExit(handle.exitCode, () => Effect.sync(() => leaders.delete(handle.pid))).pipe(Effect.ignore)
  )
  const clock = yield* Clock.Clock
  const take = (from: Stream.Stream<Uint8Array, PlatformError.PlatformError>, into: "out" | "err") =>
    Stream.runForEachArray(from, (pieces) =>
      Effect.sync(() => {
        for (const piece of pieces) output[into].add(piece)
        output.last = clock.currentTimeMillisUnsafe()
        output.pieces += 1
      })
    ).pipe(Effect.ignore, Effect.forkIn(scope))
  const pumps = [yield* take(handle.stdout, "out"), yield* take(handle.stderr, "err")]
  output.pumps = Effect.asVoid(Fiber.awaitAll(pumps))
})

/** Waits for what was printed to arrive: to the end of the pipes, or until one that others hold open brings no more. */
export const drained = (output: ChildOutput): Effect.Effect<void> =>
  Effect.raceFirst(
    output.pumps,
    Effect.gen(function* () {
      for (let round = 0; round < drainRounds; round += 1) {
        const before = output.pieces
        yield* Effect.sleep(drain)
        if (output.pieces === before) return
      }
    })
  )

/** The signal that ended a process: effect's spawner tells it in words alone. */
export const signalOf = (exit: Exit.Exit<unknown, PlatformError.PlatformError>): string | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  const cause = error?.reason.cause
  return cause instanceof Error ? /signal: '(SIG[A-Z0-9]+)'$/.exec(cause.message)?.[1] : undefined
}
