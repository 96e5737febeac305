/** The work that goes on, and how it is shown below the conversation. */

import { Deferred, Effect } from "effect"
import { CliOutput } from "effect/cli"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { Card } from "../../services/terminal/ChatTerminal.ts"
import type { TypedMessage } from "./MessageQueue.ts"
import type { Theme } from "./Theme.ts"
import { cardRows, fitted } from "./TranscriptRows.ts"

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
/** Rows of the panel that are shown at once. */
const maxPanelRows = 6

/** Work that can be cancelled. */
export interface CancellableWork {
  /** Completed when the user cancels it. */
  readonly interrupted: Deferred.Deferred<void>
  /** When it began, in milliseconds. */
  readonly since: number
}

/** The work that goes on, innermost, and what is shown of it. */
export class WorkProgress {
  /** The innermost work. */
  current: CancellableWork | undefined
  label = ""
  /** When what the label says ends, in milliseconds; undefined: nobody knows. */
  until: number | undefined
  /** Cards of calls that run, by their keys. */
  readonly cards = new Map<string, Card>()
  /** The lines above the status line. */
  panel: ReadonlyArray<string> = []
  /** The frame of the spinner. */
  frame = 0
  /** Whether the user cancelled the work: a command may take seconds to end. */
  isStopping = false

  /** Begins work. Returns it and the work around it. */
  begin(label: string, since: number): { readonly work: CancellableWork; readonly outer: CancellableWork | undefined } {
    const outer = this.current
    const work: CancellableWork = { interrupted: Deferred.makeUnsafe<void>(), since }
    this.label = printableLine(label)
    this.until = undefined
    this.current = work
    this.isStopping = false
    return { work, outer }
  }

  /** Ends work, and returns to the work around it. */
  end(outer: CancellableWork | undefined) {
    this.current = outer
    this.isStopping = false
    this.cards.clear()
  }

  /** Tells the innermost work that the user cancels it. */
  cancel() {
    if (this.current === undefined) return
    this.isStopping = true
    Deferred.doneUnsafe(this.current.interrupted, Effect.void)
  }
}

/** What is drawn between the conversation and the status line. */
export interface ProgressState {
  /** The work that goes on, if any. */
  readonly work:
    | {
        readonly label: string
        readonly seconds: number
        readonly left?: number | undefined
        readonly frame: number
        readonly isStopping: boolean
      }
    | undefined
  /** Cards of calls that run. */
  readonly cards: ReadonlyArray<Card>
  readonly areCardsOpen: boolean
  /** Messages that wait for the next prompt. */
  readonly queued: ReadonlyArray<Pick<TypedMessage, "text" | "waits">>
  readonly panel: ReadonlyArray<string>
  /** Whether the conversation is still empty. */
  readonly isFirst: boolean
}

const cut = (text: string, columns: number): string =>
  CliOutput.displayWidth(text) <= columns ? text : `${[...text].slice(0, Math.max(0, columns - 1)).join("")}…`

/** The rows between the conversation and the status line. */
export const progressRows = (state: ProgressState, theme: Theme, width: number): Array<string> => {
  const { isFirst, panel, queued, work } = state
  const lines = panel.length > maxPanelRows ? [...panel.slice(0, maxPanelRows - 1), theme.dim("…")] : panel
  const steps = lines.map((line) => fitted(line, width))
  if (work === undefined) return isFirst ? steps : ["", ...steps]
  const { frame, isStopping, seconds } = work
  const label = isStopping ? "stopping" : work.label
  const sign = spinner[frame % spinner.length] ?? ""
  const time = work.left === undefined || isStopping ? (seconds < 1 ? "" : ` · ${seconds} s`) : ` · ${work.left} s left`
  const hint = theme.dim(`${time}${isStopping ? "" : " · Esc cancels"}`)
  const room = Math.max(1, width - CliOutput.displayWidth(hint) - 2)
  return [
    "",
    ...state.cards.flatMap((card) => cardRows(card, state.areCardsOpen, theme, width, `${sign} `)),
    cut(`${sign} ${cut(label, room)}${hint}`, width),
    ...queued.map(({ text, waits }) =>
      theme.dim(cut(`${waits ? "after this" : "at the next step"}: ${printableLine(text)}`, width))
    ),
    ...(queued.length === 0 ? [] : [theme.dim(cut("↑ takes back", width))]),
    "",
    ...steps
  ]
}

/** How long work took. */
export const durationText = (seconds: number): string =>
  seconds < 100 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`

/** What the terminal gets at the end of work that the user may have turned away from: the bell, and a notification. */
export const endOfWorkSignal = (seconds: number, bellAfter: number): string =>
  bellAfter === 0 || seconds < bellAfter ? "" : `\u0007\u001b]9;palimpsest: done after ${durationText(seconds)}\u0007`
