/** The contract of identifying processes, and names of temporary files that tell which process made them. */

import { Context, Effect, Random } from "effect"
import { type ProcessOwner, temporaryName, whereabouts } from "../../domain/platform/ProcessOwner.ts"

/**
 * Identifies processes, so that locks and temporary files name their owner, and those of an ended process can be removed. On a
 * platform without it they name no owner and expire by age.
 */
export const Processes = Context.Reference<{
  /** This process; undefined when it cannot be identified. */
  readonly self: Effect.Effect<ProcessOwner | undefined>
  /** The process with this number, and its start if that is known; undefined when none runs here. */
  readonly find: (pid: number) => Effect.Effect<{ readonly start: string | undefined } | undefined>
  /** Unique letters and digits. */
  readonly unique: Effect.Effect<string>
}>("palimpsest/services/platform/Processes", {
  defaultValue: () => ({
    self: Effect.undefined,
    find: () => Effect.undefined,
    unique: Effect.map(Random.nextIntBetween(0, 2 ** 48), (random) => random.toString(36))
  })
})

/** Whether a process runs; `unknown` when this machine cannot tell. */
export const processStatus = Effect.fnUntraced(function* (owner: ProcessOwner) {
  const processes = yield* Processes
  const self = yield* processes.self
  if (self === undefined) return "unknown"
  const where = whereabouts(owner, self)
  if (where !== "here") return where === "before" ? "gone" : "unknown"
  const found = yield* processes.find(owner.pid)
  if (found === undefined) return "gone"
  return owner.start === undefined || found.start === undefined || found.start === owner.start ? "running" : "gone"
})

/** A name for a temporary file of this process. */
export const newTemporaryName: Effect.Effect<string> = Effect.gen(function* () {
  const { self, unique } = yield* Processes
  return temporaryName(yield* self, yield* unique)
})
