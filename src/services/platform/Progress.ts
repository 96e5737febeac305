/** Passes the progress of long work to whoever shows it. */

import { Context } from "effect"

/** The progress of a piece of work. */
export interface Advance {
  /** Units done. */
  readonly done: number
  /** All units. Undefined when the number is unknown. */
  readonly total: number | undefined
  /** What is counted, in the plural: `sessions`, `turns`. `bytes` are shown as a size. */
  readonly unit: string
}

/**
 * Receives the progress of long work. It may be called very often, so it should only store the value.
 *
 * *Default*: does nothing. The command line shows the latest value on a terminal.
 */
export const ReportProgress = Context.Reference<(advance: Advance) => void>(
  "palimpsest/services/platform/Progress/ReportProgress",
  { defaultValue: () => () => {} }
)
