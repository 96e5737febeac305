/** The status line of the chat: its values, and how they are fitted into one line. */

import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { ApprovalMode } from "../../domain/tools/Approval.ts"
import { truncate } from "../output/Columns.ts"
import { columnsOf, number, plain, share, type Style, tokensText } from "../output/Output.ts"

/** The values of the status line. */
export interface Status {
  readonly model: string
  /** Tokens of the conversation and of the model's window. */
  readonly tokens: number
  readonly limit: number
  /** What runs without asking. */
  readonly mode: ApprovalMode
  /** The title of the session, or its id. */
  readonly session: string
  /** The snapshot that is prepared for the next compression, if any. */
  readonly preparation?: "running" | "ready" | undefined
  /** What the answers cost so far; empty: nothing. */
  readonly cost?: string | undefined
  readonly folder?: string | undefined
}

/** How a prepared snapshot is named. */
export const preparationText = { running: "preparing a snapshot", ready: "snapshot ready" } as const

const modeText: Readonly<Record<ApprovalMode, string>> = {
  none: "asks first",
  edits: "edits run",
  all: "everything runs",
  plan: "planning"
}

const modeStyle = (mode: ApprovalMode, style: Style): ((text: string) => string) =>
  mode === "all" ? style.bad : mode === "edits" ? style.warn : style.good

const separator = " · "
/** Minimum columns of a cut name. */
const minModelColumns = 6
const minTitleColumns = 10
/** Columns that a title gets before the tokens are written out and the bar is drawn. */
const comfortableTitleColumns = 30
/** From this share of the window on, the tokens are shown as a warning. */
const warningShare = 0.8

const barColumns = 10

/** How much of the window is used, as a bar. */
const bar = (tokens: number, limit: number): string => {
  const filled = Math.min(barColumns, Math.ceil((tokens / Math.max(1, limit)) * barColumns))
  return `${"█".repeat(filled)}${"░".repeat(barColumns - filled)}`
}

/**
 * Returns the status in one line of at most `columns` columns: bar, model, tokens, approval mode, title, snapshot, cost, folder.
 *
 * The approval mode is always shown, and cut last. When space is short, the bar goes first, then the exact tokens, the folder,
 * most of the title, the snapshot, the cost, and the rounded tokens; then the model is cut. From 80 % of the window on the tokens are
 * a warning.
 */
export const statusLine = (status: Status, columns: number, style: Style = plain): string => {
  const { limit, mode, preparation, tokens } = status
  const percent = share(tokens, limit)
  const wanted = {
    model: printableLine(status.model),
    title: printableLine(status.session),
    preparation: preparation === undefined ? "" : preparationText[preparation],
    cost: printableLine(status.cost ?? ""),
    folder: printableLine(status.folder ?? "")
  }
  const shown = { model: "", count: "", mode: "", title: "", preparation: "", cost: "", folder: "" }
  /** Columns for one more text. */
  const room = () =>
    Object.values(shown).reduce(
      (rest, text) => (text === "" ? rest : rest - columnsOf(text) - separator.length),
      columns
    )
  /** Shows a text in place of another where it fits, or as much of it as fits. */
  const put = (name: keyof typeof shown, text: string, least = columnsOf(text), most = columnsOf(text)) => {
    const before = shown[name]
    shown[name] = ""
    const width = Math.min(room(), most)
    shown[name] = text !== "" && width >= Math.min(least, columnsOf(text)) ? truncate(text, width) : before
  }
  put("mode", modeText[mode], 1)
  put("count", percent)
  put("model", wanted.model, minModelColumns)
  put("count", `${tokensText(tokens)} of ${tokensText(limit)} (${percent})`)
  put("cost", wanted.cost)
  put("preparation", wanted.preparation)
  put("title", wanted.title, minTitleColumns, minTitleColumns)
  put("folder", wanted.folder)
  put("title", wanted.title, minTitleColumns, comfortableTitleColumns)
  put("count", `${number(tokens)} of ${number(limit)} tokens (${percent})`)
  const hasBar = room() + separator.length > barColumns
  put(
    "title",
    wanted.title,
    minTitleColumns,
    columnsOf(shown.title) + room() + separator.length - (hasBar ? barColumns + 1 : 0)
  )
  const paint = tokens >= warningShare * limit ? style.warn : style.dim
  const { count, mode: modeName, model, ...rest } = shown
  const parts = [
    model === "" ? "" : style.dim(model),
    count === "" ? "" : paint(count),
    modeStyle(mode, style)(modeName),
    ...Object.values(rest).map((text) => (text === "" ? "" : style.dim(text)))
  ]
  return `${hasBar ? `${style.dim(bar(tokens, limit))} ` : ""}${parts.filter((text) => text !== "").join(style.dim(separator))}`
}
