import { Context, type Effect, type Schema } from "effect"
import { Decision } from "../../../domain/compression/Compression.ts"

/** The steps of a compression: a program may store the result of each, so that another process can go on after it. */

/** One step: what asks hooks, decides, has a model write, has it check, or commits. */
export interface CompressionStep<A> {
  readonly name: "hook" | "plan" | "generate" | "verify" | "prefix" | "stage" | "merge" | "branch" | "commit"
  /** The result, as it is stored. */
  readonly result: Schema.Codec<A, unknown>
  /** What the step is about, where a compression may have several of one name: a stored result counts for the same only. */
  readonly about?: unknown
}

/** How compressions and their steps are carried out. */
export interface Steps {
  /** Carries out the compression of a conversation at this version, from the question to hooks to the commit. */
  readonly compression: <A, E, R>(version: number, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Carries out one step. It may be done again where its process died before the result was stored. */
  readonly step: <A, E, R>(step: CompressionStep<A>, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Compressions and steps just run. */
export const inProcess: Steps = { compression: (_version, work) => work, step: (_step, work) => work }

/**
 * Carries out compressions and their steps. In process (the default) both just run. A server with a cluster makes a compression
 * a durable workflow and each step an activity of it: what a step returned is stored, and is not done again by the process that
 * goes on after another one died. A step that fails is not stored.
 */
export const CompressionSteps = Context.Reference<Steps>("palimpsest/services/compression/summary/CompressionSteps", {
  defaultValue: () => inProcess
})

/** Decides as a step. `rung`: that of the plan, where there are several. */
export const planStep = <R>(decide: Effect.Effect<Decision, never, R>, rung = 0): Effect.Effect<Decision, never, R> =>
  CompressionSteps.use(({ step }) => step({ name: "plan", result: Decision, about: rung }, decide))
