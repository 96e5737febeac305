import { Runtime, Schema } from "effect"

/**
 * The unsuccessful end of a command: one line for the user, which says what to do, and the status for the shell. With an empty
 * message nothing is printed: the cause was shown already, or the reader of the output is gone.
 */
export class ExitError extends Schema.TaggedError<ExitError>()("ExitError", {
  message: Schema.String,
  status: Schema.Natural
}) {
  /** The exit status, read by `Runtime.getErrorExitCode`. */
  override readonly [Runtime.errorExitCode] = this.status
}

/** Bad usage or bad input: status 2. */
export const badInput = (message: string): ExitError => new ExitError({ message, status: 2 })

/** The operation ran and failed: status 1. */
export const failed = (message: string): ExitError => new ExitError({ message, status: 1 })
