/** Tables of sessions for the user. */

import { Clock, Effect } from "effect"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { promptHeading } from "../../domain/transcripts/PromptTitle.ts"
import type { SessionSummary } from "../../services/session/SessionStore.ts"
import { truncate } from "./Columns.ts"
import * as Output from "./Output.ts"
import { ago } from "./TimeText.ts"

/** The heading of a session: its title, else the first words of the user. */
export const headingOf = ({ firstPrompt, title }: Pick<SessionSummary, "firstPrompt" | "title">): string =>
  printableLine(title ?? promptHeading(firstPrompt ?? "")) || "(empty)"

/** Maximum and minimum columns of a title. */
const maxTitleColumns = 48
const minTitleColumns = 12
/** From this width on, all columns fit. */
const wideTableColumns = 124
/** Below this width, columns that are not needed to choose a session are left out. */
const narrowTableColumns = 60

const stateOf = ({ holder, id, problem }: SessionSummary, current: string | undefined, isNarrow: boolean): string => {
  if (problem !== undefined) return isNarrow ? "broken" : "cannot be opened"
  if (id === current) return isNarrow ? "this" : "this one"
  return holder === undefined ? "" : isNarrow ? "in use" : `in use by ${holder.pid}`
}

/**
 * Makes a table of sessions with a heading, numbered from 1 as `--resume` accepts it. A narrow table leaves out the least
 * important columns. `current` is the session in which it is shown, if any.
 */
export const sessionTable = Effect.fnUntraced(function* (
  sessions: ReadonlyArray<SessionSummary>,
  columns: number,
  style: Output.Style = Output.plain,
  current?: string
) {
  const now = yield* Clock.currentTimeMillis
  const isWide = columns >= wideTableColumns
  const isNarrow = columns < narrowTableColumns
  const rowsWith = (title: number) => [
    ["#", "Title", ...(isWide ? ["Model"] : []), "Updated", ...(isWide ? ["Size", "Id"] : []), ""],
    ...sessions.map((session, index) => [
      String(index + 1),
      truncate(headingOf(session), title),
      ...(isWide ? [truncate(printableLine(session.model ?? ""), 24)] : []),
      ago(session.updatedAt, now),
      ...(isWide ? [Output.sizeText(session.bytes), session.id] : []),
      stateOf(session, current, isNarrow)
    ])
  ]
  const align = isWide ? "rlllrl" : "rll"
  const besides = () =>
    Output.table(
      rowsWith(1).map(([number = "", , ...rest]) => [number, ...rest]),
      align
    )
      .split("\n")
      .reduce((max, line) => Math.max(max, Output.columnsOf(line)), 0)
  const title = Math.max(minTitleColumns, Math.min(maxTitleColumns, columns - besides() - 2))
  const [first = "", ...body] = Output.table(rowsWith(title), align).split("\n")
  return [style.bold(first), ...body].join("\n")
})
