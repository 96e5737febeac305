import { number } from "../../domain/text/NumberText.ts"
import type { Advance } from "../../services/platform/Progress.ts"

/** The line that shows how far long work is: a bar, what is done of what, the time left, and what the work is. */

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
const barWidth = 20
/** The elapsed time and the share done from which the time left is estimated. */
const guessMillis = 2_000
const guessShare = 0.05

const size = (bytes: number): string =>
  bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`

const amount = (value: number, unit: string): string => (unit === "bytes" ? size(value) : `${number(value)} ${unit}`)

const duration = (millis: number): string => {
  const seconds = Math.max(1, Math.ceil(millis / 1_000))
  return seconds < 100 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`
}

/** The state of the work when a line is drawn. */
export interface ProgressState {
  readonly label: string
  /** The frame of the animation, from 0. */
  readonly frame: number
  /** Milliseconds since the work began. */
  readonly millis: number
  readonly advance: Advance | undefined
}

/** Returns the line. Figures come before the label, because a narrow terminal cuts the end. */
export const progressLine = ({ advance, frame, label, millis }: ProgressState): string => {
  const sign = spinner[frame % spinner.length] ?? ""
  const since = millis < 1_000 ? "" : ` ${Math.floor(millis / 1_000)} s`
  if (advance === undefined) return `${sign} ${label}${since}`
  const { done, total, unit } = advance
  if (total === undefined || total <= 0) return `${sign} ${amount(done, unit)}${since}, ${label}`
  const share = Math.min(1, Math.max(0, done / total))
  const full = Math.floor(share * barWidth)
  const left = ((1 - share) / share) * millis
  const guess = millis >= guessMillis && share >= guessShare && share < 1 ? `, ${duration(left)} left` : ""
  const count =
    unit === "bytes"
      ? `${size(done).replace(/ \w+$/, "")} of ${size(total)}`
      : `${number(done)} of ${amount(total, unit)}`
  return `${sign} ${"█".repeat(full)}${"░".repeat(barWidth - full)} ${Math.floor(share * 100)} %, ${count}${guess}: ${label}`
}
