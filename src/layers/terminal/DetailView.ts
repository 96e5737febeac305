import { matchesKey } from "@earendil-works/pi-tui"
import type { Detail } from "../../services/terminal/ChatTerminal.ts"
import type { Theme } from "./Theme.ts"
import { detailRows } from "./TranscriptRows.ts"

/** Shows the detail of a question between its heading and the answers. It scrolls when it is longer than the screen. */

/** Rows that are shown however small the screen is. */
const minShownRows = 3

const number = (value: number) => value.toLocaleString("en-US")

/** A scrolled detail. */
export type DetailView = ReturnType<typeof make>

/** Makes the view, which begins at the first row. */
export const make = (detail: Detail, theme: Theme) => {
  let top = 0
  let shown = minShownRows
  let rows: { readonly width: number; readonly parts: ReturnType<typeof detailRows> } | undefined
  const partsFor = (width: number) => {
    rows = rows?.width === width ? rows : { width, parts: detailRows(detail, theme, width) }
    return rows.parts
  }
  return {
    detail,
    invalidate: () => {
      rows = undefined
    },
    /** Returns the rows: at most `height`, unless that is less than the minimum. */
    render: (width: number, height: number): Array<string> => {
      const { foot, head, rows: all } = partsFor(width)
      const rest = height - head.length - foot.length
      if (all.length <= rest) return [...head, ...all, ...foot]
      shown = Math.max(minShownRows, rest - 1)
      top = Math.max(0, Math.min(top, all.length - shown))
      const place = `rows ${number(top + 1)} to ${number(Math.min(top + shown, all.length))} of ${number(all.length)} · ↑ ↓ PgUp PgDn`
      return [...head, ...all.slice(top, top + shown), theme.dim(place), ...foot]
    },
    /** Takes a key that scrolls. Returns whether it was one. */
    takes: (key: string): boolean => {
      const page = Math.max(1, shown - 1)
      if (matchesKey(key, "up")) top -= 1
      else if (matchesKey(key, "down")) top += 1
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
