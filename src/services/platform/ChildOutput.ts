import { Cause, Clock, Duration, Effect, Exit, Fiber, Option, type PlatformError, type Scope, Stream } from "effect"
import type { ChildProcessSpawner } from "effect/process"
import { HeadAndTail } from "../../domain/text/HeadAndTail.ts"

/** The output of a process, of which a bounded part is kept. Grows while the process runs. */
export interface ChildOutput {
  out: HeadAndTail
  err: HeadAndTail
  /** The time of the last output. */
  last: number
  /** The number of pieces printed. */
  pieces: number
  /** Ends when all pipes are closed. */
  pumps: Effect.Effect<void>
}

/** How long to wait for more output on a pipe that another process holds open, and how many times. */
const drainPause = Duration.millis(100)
const drainRounds = 10

/** Empty output that keeps `bytes` of each stream. */
export const emptyOutput = (bytes: number): Effect.Effect<ChildOutput> =>
  Clock.clockWith((clock) =>
    Effect.sync(() => ({
      out: new HeadAndTail(bytes),
      err: new HeadAndTail(bytes),
      last: clock.currentTimeMillisUnsafe(),
      pieces: 0,
      pumps: Effect.void
    }))
  )

/** The running process groups, by number. A program that exits without its finalizers has to end them itself. */
export const runningGroups: Set<number> = new Set()

/** Captures the output of a process until its pipes are closed: a process whose pipe is not read would block. */
export const captureOutput = Effect.fnUntraced(function* (
  handle: ChildProcessSpawner.ChildProcessHandle,
  output: ChildOutput,
  scope: Scope.Scope
) {
  runningGroups.add(handle.pid)
  yield* Effect.forkDetach(
    Effect.onExit(handle.exitCode, () => Effect.sync(() => runningGroups.delete(handle.pid))).pipe(Effect.ignore)
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

/** Waits for all output: to the end of the pipes, or until a pipe that others hold open brings no more. */
export const awaitOutput = (output: ChildOutput): Effect.Effect<void> =>
  Effect.raceFirst(
    output.pumps,
    Effect.gen(function* () {
      for (let round = 0; round < drainRounds; round += 1) {
        const before = output.pieces
        yield* Effect.sleep(drainPause)
        if (output.pieces === before) return
      }
    })
  )

/** The signal that ended a process. Effect's spawner has it only in an error message. */
export const signalOf = (exit: Exit.Exit<unknown, PlatformError.PlatformError>): string | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  const cause = error?.reason.cause
  return cause instanceof Error ? /signal: '(SIG[A-Z0-9]+)'$/.exec(cause.message)?.[1] : undefined
}
