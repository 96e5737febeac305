import { Context, Effect, Random } from "effect"
import { type ProcessOwner, temporaryName, whereabouts } from "../domain/ProcessOwner.ts"

/**
 * What can be told of processes, so that locks and temporary files name their owner, and those of one that is gone are nobody's.
 * Without it (a platform that has no such thing) they name none, and go by their age.
 */
export const Processes = Context.Reference<{
  /** This process; undefined: it cannot be told. */
  readonly self: Effect.Effect<ProcessOwner | undefined>
  /** The process of a number, with its start where that can be told; undefined: none runs here. */
  readonly find: (pid: number) => Effect.Effect<{ readonly start: string | undefined } | undefined>
  /** Letters and digits that nobody else gets. */
  readonly unique: Effect.Effect<string>
}>("palimpsest/services/Processes", {
  defaultValue: () => ({
    self: Effect.undefined,
    find: () => Effect.undefined,
    unique: Effect.map(Random.nextIntBetween(0, 2 ** 48), (random) => random.toString(36))
  })
})

/** Whether a process runs; `unknown`: nobody here can tell. */
export const standingOf = Effect.fnUntraced(function* (
  owner: ProcessOwner
): Effect.fn.Return<"running" | "gone" | "unknown"> {
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
export const freshTemporaryName: Effect.Effect<string> = Effect.gen(function* () {
  const { self, unique } = yield* Processes
  return temporaryName(yield* self, yield* unique)
})
