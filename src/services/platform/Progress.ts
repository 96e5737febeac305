import { Context } from "effect"

/** How far a piece of work is. */
export interface Advance {
  /** Units that are done. */
  readonly done: number
  /** All units; undefined when that is not known. */
  readonly total: number | undefined
  /** What is counted, in the plural: `sessions`, `turns`. `bytes` are shown as a size. */
  readonly unit: string
}

/**
 * Takes how far long work is. It is called as often as the work likes, so it only stores the value.
 *
 * *Default*: does nothing. The command line shows the last value on a terminal.
 */
export const ReportProgress = Context.Reference<(advance: Advance) => void>(
  "palimpsest/services/platform/Progress/ReportProgress",
  { defaultValue: () => () => {} }
)
