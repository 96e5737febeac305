import { Runtime, Schema } from "effect"

/**
 * How a command ends when it does not succeed: one line for the person, which says what to do, and the status for the
 * shell. An empty message says nothing: it has been said, or whoever read our output has gone.
 */
export class ExitError extends Schema.TaggedError<ExitError>()("ExitError", {
  message: Schema.String,
  status: Schema.Natural
}) {
  /** Read by whoever runs the program as its main fiber. */
  override readonly [Runtime.errorExitCode] = this.status
}

/** Bad usage or bad input: status 2. */
export const badInput = (message: string): ExitError => new ExitError({ message, status: 2 })

/** The operation ran and failed: status 1. */
export const failed = (message: string): ExitError => new ExitError({ message, status: 1 })
