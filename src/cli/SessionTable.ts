import { Clock, Effect } from "effect"
import { printable } from "../domain/Inspection.ts"
import type { SessionSummary } from "../services/SessionStore.ts"
import { cut } from "./Columns.ts"
import * as Output from "./Output.ts"
import { ago } from "./When.ts"

/** Sessions as a person reads them. */

/** Bytes, as a person says them. */
export const sizeText = (bytes: number): string =>
  bytes < 1_000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`

/** What a session is called: its title, else the first words of its user. */
export const headingOf = ({ firstPrompt, title }: Pick<SessionSummary, "firstPrompt" | "title">): string =>
  printable(title ?? firstPrompt ?? "") || "(nothing was said)"

/** Columns of a title at most, and at least. */
const widestTitle = 48
const narrowestTitle = 12
/** From so many columns on there is room for all. */
const wide = 110
/** In fewer, what is not needed to choose one is left out. */
const narrow = 60

const stateOf = ({ holder, id, problem }: SessionSummary, current: string | undefined, isNarrow: boolean): string => {
  if (problem !== undefined) return isNarrow ? "broken" : "cannot be opened"
  if (id === current) return isNarrow ? "this" : "this one"
  return holder === undefined ? "" : isNarrow ? "in use" : `in use by ${holder.pid}`
}

/**
 * A table with a head, numbered from 1 as `--resume` takes it; in few columns without what matters least. `current` is
 * the session that it is shown in, if any.
 */
export const sessionTable = Effect.fnUntraced(function* (
  sessions: ReadonlyArray<SessionSummary>,
  columns: number,
  style: Output.Style = Output.plain,
  current?: string
): Effect.fn.Return<string> {
  const now = yield* Clock.currentTimeMillis
  const isWide = columns >= wide
  const isNarrow = columns < narrow
  const rowsWith = (title: number) => [
    ["#", "Title", ...(isWide ? ["Model"] : []), "Written", ...(isWide ? ["Size", "Id"] : []), ""],
    ...sessions.map((session, index) => [
      String(index + 1),
      cut(headingOf(session), title),
      ...(isWide ? [cut(printable(session.model ?? ""), 24)] : []),
      ago(session.updatedAt, now),
      ...(isWide ? [sizeText(session.bytes), session.id] : []),
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
      .reduce((most, line) => Math.max(most, Output.columnsOf(line)), 0)
  const title = isWide ? widestTitle : Math.max(narrowestTitle, Math.min(widestTitle, columns - besides() - 2))
  const [first = "", ...body] = Output.table(rowsWith(title), align).split("\n")
  return [style.bold(first), ...body].join("\n")
})
