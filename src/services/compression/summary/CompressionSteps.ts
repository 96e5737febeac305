/**
 * The steps of a compression. A program may store the result of each, so that another process can continue after it.
 */

import { Context, type Effect, type Schema } from "effect"
import { Decision } from "../../../domain/compression/Compression.ts"

/** One step, such as asking hooks, planning, summarizing, verifying or committing. */
export interface CompressionStep<A> {
  readonly name: "hook" | "plan" | "generate" | "verify" | "prefix" | "stage" | "merge" | "branch" | "commit"
  /** The stored form of the result. */
  readonly result: Schema.Codec<A, unknown>
  /** Distinguishes several steps of one name in a compression: a stored result is used only for an equal value. */
  readonly about?: unknown
}

/** How compressions and their steps are run. */
export interface Steps {
  /** Runs the compression of a conversation at this version, from the hooks to the commit. */
  readonly compression: <A, E, R>(version: number, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Runs one step. It may run again if its process ends before the result is stored. */
  readonly step: <A, E, R>(step: CompressionStep<A>, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Runs compressions and steps directly. */
export const inProcess: Steps = { compression: (_version, work) => work, step: (_step, work) => work }

/**
 * Runs compressions and their steps. By default both run directly, in this process. A server with a cluster makes
 * each compression a durable workflow and each step one of its activities: the result of a step is stored, and a
 * process that continues after a crash does not repeat the step. A failed step is not stored.
 */
export const CompressionSteps = Context.Reference<Steps>("palimpsest/services/compression/summary/CompressionSteps", {
  defaultValue: () => inProcess
})

/** Runs a decision as a step. `rung` is that of the plan, if there are several. */
export const planStep = <R>(decide: Effect.Effect<Decision, never, R>, rung = 0): Effect.Effect<Decision, never, R> =>
  CompressionSteps.use(({ step }) => step({ name: "plan", result: Decision, about: rung }, decide))
