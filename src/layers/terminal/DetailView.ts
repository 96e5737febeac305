import { matchesKey } from "@earendil-works/pi-tui"
import type { Detail } from "../../services/terminal/ChatTerminal.ts"
import type { Theme } from "./Theme.ts"
import { detailRows } from "./TranscriptRows.ts"

/**
 * Shows the detail of a question between its heading and the answers. It scrolls when it is longer than the screen; below its last row, the
 * arrows go on to the answers.
 */

/** Rows that are shown however small the screen is. */
const minShownRows = 3

const number = (value: number) => value.toLocaleString("en-US")

/** A scrolled detail. */
export type DetailView = ReturnType<typeof make>

/** Makes the view, which begins at the first row. `canMark`: the arrows go on to the answers. */
export const make = (detail: Detail, theme: Theme, canMark: boolean) => {
  let top = 0
  let shown = minShownRows
  /** The first row of the last page. */
  let lastTop = 0
  /** Whether the screen shows all answers: none is marked out of sight. */
  let areInView = false
  /** The answer that Enter gives: none until the arrows reach the answers. */
  let mark: number | undefined
  let rows: { readonly width: number; readonly parts: ReturnType<typeof detailRows> } | undefined
  const partsFor = (width: number) => {
    rows = rows?.width === width ? rows : { width, parts: detailRows(detail, theme, width, mark) }
    return rows.parts
  }
  const step = (by: number) => {
    const isAtAnswers = canMark && areInView && (mark !== undefined || (by > 0 && top >= lastTop))
    if (!isAtAnswers) {
      top += by
      return
    }
    const next = (mark ?? -1) + by
    mark = next < 0 ? undefined : Math.min(next, detail.options.length - 1)
    rows = undefined
  }
  return {
    detail,
    /** Returns the letter of the marked answer, and takes the mark away: another Enter answers what comes next. */
    takeMarked: (): string | undefined => {
      const letter = mark === undefined ? undefined : detail.options[mark]?.[0]
      mark = undefined
      return letter
    },
    invalidate: () => {
      rows = undefined
    },
    /** Returns the rows: at most `height`, unless that is less than the minimum. */
    render: (width: number, height: number): Array<string> => {
      const { foot, head, rows: all } = partsFor(width)
      const rest = height - head.length - foot.length
      const fits = all.length <= rest
      areInView = foot.length <= height
      shown = fits ? all.length : Math.max(minShownRows, rest - 1)
      lastTop = Math.max(0, all.length - shown)
      top = Math.max(0, Math.min(top, lastTop))
      if (fits) return [...head, ...all, ...foot]
      const place = `rows ${number(top + 1)} to ${number(Math.min(top + shown, all.length))} of ${number(all.length)} · ↑ ↓ PgUp PgDn`
      return [...head, ...all.slice(top, top + shown), theme.dim(place), ...foot]
    },
    /** Takes a key that scrolls or marks an answer. Returns whether it was one. */
    takes: (key: string): boolean => {
      const page = Math.max(1, shown - 1)
      if (matchesKey(key, "up")) step(-1)
      else if (matchesKey(key, "down")) step(1)
      else if (matchesKey(key, "pageUp")) top -= page
      else if (matchesKey(key, "pageDown") || key === " ") top += page
      else if (matchesKey(key, "home")) top = 0
      else if (matchesKey(key, "end")) top = Number.MAX_SAFE_INTEGER
      else return false
      top = Math.max(0, top)
      return true
    }
  }
}
