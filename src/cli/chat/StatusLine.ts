import { printable } from "../../domain/Inspection.ts"
import { cut } from "../Columns.ts"
import { columnsOf, number, plain, share, type Style } from "../Output.ts"

/** Where a chat stands. */
export interface Status {
  readonly model: string
  /** Tokens of the conversation, and of the model's window. */
  readonly tokens: number
  readonly limit: number
  /** The title of the session, or its id. */
  readonly session: string
}

const separator = " · "
/** A name that is cut shorter than this says nothing, and one of the other length enough. */
const leastName = 6
const goodName = 10
/** The share of the window from which on there is little left. */
const warned = 0.8

/** Thousands and millions rounded: `12k`, `1M`. */
const round = (value: number): string =>
  value < 1_000
    ? String(value)
    : value < 999_500
      ? `${Math.round(value / 1_000)}k`
      : `${Math.round(value / 100_000) / 10}M`

/**
 * Where a chat stands, in one line of at most `columns` columns: the model, its tokens, the session. Where room is short the
 * tokens are rounded, then the session is cut, then of the tokens their share alone is told, then no session; the model
 * is cut last. From 80 % of the window on the tokens are a warning.
 */
export const statusLine = (status: Status, columns: number, style: Style = plain): string => {
  const { limit, tokens } = status
  const model = printable(status.model)
  const session = printable(status.session)
  const percent = share(tokens, limit)
  const full = `${number(tokens)} of ${number(limit)} tokens (${percent})`
  const rounded = `${round(tokens)} of ${round(limit)} (${percent})`
  /** What is left for a text beside others. */
  const beside = (...others: ReadonlyArray<string>) =>
    others.reduce((room, other) => (other === "" ? room : room - columnsOf(other) - separator.length), columns)
  const cutBeside = (text: string, least: number, ...others: ReadonlyArray<string>) => {
    const room = beside(...others)
    return room >= Math.min(least, columnsOf(text)) ? cut(text, room) : undefined
  }

  const attempts: ReadonlyArray<readonly [model: string, count: string, session: string | undefined]> = [
    [model, full, session],
    [model, rounded, cutBeside(session, goodName, model, rounded)],
    [model, percent, cutBeside(session, leastName, model, percent)],
    [model, percent, ""],
    [cutBeside(model, leastName, percent) ?? "", percent, ""]
  ]
  const fitting = attempts.find(
    ([model, count, session]) => session !== undefined && beside(model, count, session) >= -separator.length
  )
  const [shownModel, count, shownSession = ""] = fitting ?? ["", cut(percent, columns), ""]
  const paint = tokens >= warned * limit ? style.warn : style.dim
  return [style.dim(shownModel), paint(count), style.dim(shownSession)]
    .filter((_, index) => [shownModel, count, shownSession][index] !== "")
    .join(style.dim(separator))
}
