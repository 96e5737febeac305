/** The menu of completions below the editor. */

import type { AutocompleteProvider, AutocompleteSuggestions } from "@earendil-works/pi-tui"
import { Effect } from "effect"
import type { Completer, Completion } from "../../services/terminal/ChatTerminal.ts"

/** A completion that takes longer is given up. */
const completionDeadline = "2 seconds"

const nothing: Completion = { candidates: [], replaced: "" }

/** The menu for a completion; null for one without items. */
export const menuOf = ({ about = {}, candidates, replaced }: Completion): AutocompleteSuggestions | null => {
  const items = candidates
    // File names can contain control characters.
    .filter((candidate) => !/\p{C}/u.test(candidate))
    .map((value) => ({
      value,
      label: value.trim(),
      ...(about[value] === undefined ? {} : { description: about[value] })
    }))
  return items.length === 0 ? null : { items, prefix: replaced }
}

/** Replaces `prefix`, which ends at the cursor, by a candidate. */
export const applyCompletion: AutocompleteProvider["applyCompletion"] = (lines, row, column, { value }, prefix) => {
  const line = lines[row] ?? ""
  const start = line.slice(0, column).endsWith(prefix) ? column - prefix.length : column
  return {
    lines: lines.with(row, line.slice(0, start) + value + line.slice(column)),
    cursorLine: row,
    cursorCol: start + value.length
  }
}

/** What the menu needs. */
export interface MenuSource {
  /** The completer of the open prompt; undefined where nothing is completed. */
  readonly completer: () => Completer | undefined
  /** Called with the whole text before its menu opens. */
  readonly onMenu: (text: string) => void
  /** Called when the editor has the menu. */
  readonly onOpened: () => void
  /** Runs an effect until the terminal closes. */
  readonly run: <A>(effect: Effect.Effect<A>) => Promise<A>
}

/** Looks up completions for the editor. */
export const provider = ({ completer, onMenu, onOpened, run }: MenuSource): AutocompleteProvider => ({
  getSuggestions: (lines, row, column) => {
    const complete = completer()
    if (complete === undefined) return Promise.resolve(null)
    const before = [...lines.slice(0, row), (lines[row] ?? "").slice(0, column)].join("\n")
    const menu = run(
      complete(before).pipe(
        Effect.timeoutOrElse({ duration: completionDeadline, orElse: () => Effect.succeed(nothing) }),
        Effect.catchCause(() => Effect.succeed(nothing)),
        Effect.map((completion) => {
          onMenu(lines.join("\n"))
          return menuOf(completion)
        })
      )
    )
    // The editor continues in a microtask.
    menu.then(
      () => setImmediate(onOpened),
      () => {}
    )
    return menu
  },
  applyCompletion
})
