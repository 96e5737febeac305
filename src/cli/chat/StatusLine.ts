import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { truncate } from "../output/Columns.ts"
import { columnsOf, number, plain, share, type Style } from "../output/Output.ts"

/** The values of the status line. */
export interface Status {
  readonly model: string
  /** Tokens of the conversation and of the model's window. */
  readonly tokens: number
  readonly limit: number
  /** The title of the session, or its id. */
  readonly session: string
  /** The snapshot that is prepared for the next compression, if any. */
  readonly preparation?: "running" | "ready" | undefined
  /** Further facts for a wide line, most important first: the approval mode, the cost, the folder. */
  readonly extras?: ReadonlyArray<string> | undefined
  /** Whether the tokens are rounded. */
  readonly isRounded?: boolean | undefined
}

/** How a prepared snapshot is named. */
export const preparationText = { running: "preparing a snapshot", ready: "snapshot ready" } as const

const separator = " · "
/** Minimum width of a cut name. Below the comfortable width, the tokens are first reduced to their share. */
const minNameColumns = 6
const comfortableNameColumns = 10
/** Columns that a note leaves to the rest of the line. */
const minColumnsBesideNote = 40
/** From this share of the window on, the tokens are shown as a warning. */
const warningShare = 0.8

const barColumns = 10

/** How much of the window is used, as a bar. */
const bar = (tokens: number, limit: number): string => {
  const filled = Math.min(barColumns, Math.ceil((tokens / Math.max(1, limit)) * barColumns))
  return `${"█".repeat(filled)}${"░".repeat(barColumns - filled)}`
}

/** Thousands and millions rounded: `12k`, `1M`. */
const roundedTokens = (value: number): string =>
  value < 1_000
    ? String(value)
    : value < 999_500
      ? `${Math.round(value / 1_000)}k`
      : `${Math.round(value / 100_000) / 10}M`

/** Adds the bar and the further facts to a line that has room for them. Returns the line and how many facts it has. */
const withExtras = (status: Status, extras: ReadonlyArray<string>, columns: number, style: Style) => {
  const line = statusLine(status, columns, style)
  // A line that had to be shortened has no room for extras.
  let room = columns - columnsOf(statusLine(status, Number.MAX_SAFE_INTEGER))
  const isBarShown = room > barColumns
  if (isBarShown) room -= barColumns + 1
  const shown = extras.map(printableLine).filter((extra) => {
    const needed = columnsOf(extra) + separator.length
    if (extra === "" || needed > room) return false
    room -= needed
    return true
  })
  const drawn = isBarShown ? `${style.dim(bar(status.tokens, status.limit))} ${line}` : line
  return { line: [drawn, ...shown.map(style.dim)].join(style.dim(separator)), count: shown.length }
}

/**
 * Returns the status in one line of at most `columns` columns: model, tokens, session.
 *
 * When space is short, the tokens are rounded, then the session is cut, then only the share of the tokens is shown, then the
 * session is omitted; the model is cut last. From 80 % of the window on the tokens are a warning. A prepared snapshot is named
 * where the line has room for it beside a cut session. The bar and the further facts are added where they fit; the tokens are rounded
 * to make room for them.
 */
export const statusLine = (status: Status, columns: number, style: Style = plain): string => {
  const { extras, limit, preparation, tokens } = status
  if (extras !== undefined) {
    const bare = { ...status, extras: undefined }
    const full = withExtras(bare, extras, columns, style)
    const rounded = withExtras({ ...bare, isRounded: true }, extras, columns, style)
    return rounded.count > full.count ? rounded.line : full.line
  }
  if (preparation !== undefined) {
    const note = preparationText[preparation]
    const room = columns - note.length - separator.length
    return room < minColumnsBesideNote
      ? statusLine({ ...status, preparation: undefined }, columns, style)
      : `${statusLine({ ...status, preparation: undefined }, room, style)}${style.dim(`${separator}${note}`)}`
  }
  const model = printableLine(status.model)
  const session = printableLine(status.session)
  const percent = share(tokens, limit)
  const full = `${number(tokens)} of ${number(limit)} tokens (${percent})`
  const rounded = `${roundedTokens(tokens)} of ${roundedTokens(limit)} (${percent})`
  /** Columns left for a text next to the others. */
  const columnsBeside = (...others: ReadonlyArray<string>) =>
    others.reduce((room, other) => (other === "" ? room : room - columnsOf(other) - separator.length), columns)
  const cutBeside = (text: string, least: number, ...others: ReadonlyArray<string>) => {
    const room = columnsBeside(...others)
    return room >= Math.min(least, columnsOf(text)) ? truncate(text, room) : undefined
  }

  const attempts: ReadonlyArray<readonly [model: string, count: string, session: string | undefined]> = [
    ...(status.isRounded === true ? [] : [[model, full, session] as const]),
    [model, rounded, cutBeside(session, comfortableNameColumns, model, rounded)],
    [model, percent, cutBeside(session, minNameColumns, model, percent)],
    [model, percent, ""],
    [cutBeside(model, minNameColumns, percent) ?? "", percent, ""]
  ]
  const fitting = attempts.find(
    ([model, count, session]) => session !== undefined && columnsBeside(model, count, session) >= -separator.length
  )
  const [shownModel, count, shownSession = ""] = fitting ?? ["", truncate(percent, columns), ""]
  const paint = tokens >= warningShare * limit ? style.warn : style.dim
  return [style.dim(shownModel), paint(count), style.dim(shownSession)]
    .filter((_, index) => [shownModel, count, shownSession][index] !== "")
    .join(style.dim(separator))
}
