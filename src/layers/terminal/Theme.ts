/** The colours of the terminal UI: those that every terminal has, so that they fit its own theme, and the codes that a theme puts in their place. */

import type { EditorTheme, MarkdownTheme, SelectListTheme } from "@earendil-works/pi-tui"
import type { TerminalSettings } from "../../domain/settings/Settings.ts"
import type { Highlight } from "./Highlight.ts"

type Paint = (text: string) => string

/** The styles of everything that the terminal UI draws. */
export interface Theme {
  readonly dim: Paint
  readonly bold: Paint
  readonly accent: Paint
  readonly markdown: MarkdownTheme
  /** Colours the lines of a diff by the language of its code. */
  readonly diff: Highlight["diff"]
  /** What begins the background of an added and of a removed line; empty without colours. */
  readonly addedRow: string
  readonly removedRow: string
  /** What begins the background of a message of the user; empty without colours. */
  readonly messageRow: string
  readonly list: SelectListTheme
  readonly editor: EditorTheme
}

const unchanged: Paint = (text) => text
const sgr =
  (on: number, off: number): Paint =>
  (text) =>
    `\u001b[${on}m${text}\u001b[${off}m`

/** Makes the theme. Without colours only the marks of Markdown remain. */
export const make = (canColor: boolean, highlight: Highlight): Theme => {
  const style = (on: number, off: number) => (canColor ? sgr(on, off) : unchanged)
  const dim = style(2, 22)
  const bold = style(1, 22)
  const accent = style(36, 39)
  const list: SelectListTheme = {
    selectedPrefix: accent,
    selectedText: accent,
    description: dim,
    scrollInfo: dim,
    noMatch: dim
  }
  return {
    dim,
    bold,
    accent,
    list,
    addedRow: canColor ? "\u001b[42m" : "",
    removedRow: canColor ? "\u001b[41m" : "",
    messageRow: canColor ? "\u001b[40m" : "",
    diff: canColor ? highlight.diff : (lines) => lines,
    editor: { borderColor: dim, selectList: list },
    markdown: {
      heading: unchanged,
      link: style(4, 24),
      linkUrl: dim,
      code: canColor ? accent : (text) => `\`${text}\``,
      codeBlock: accent,
      codeBlockBorder: dim,
      quote: unchanged,
      quoteBorder: dim,
      hr: dim,
      listBullet: (text) => text.replace(/^-/, "•"),
      bold,
      italic: style(3, 23),
      strikethrough: style(9, 29),
      underline: style(4, 24),
      codeBlockIndent: "",
      ...(canColor ? { highlightCode: highlight.code } : {})
    }
  }
}

/** The background of the terminal. */
export type Background = "dark" | "light"

type Codes = Readonly<Record<string, string>>

/** The backgrounds of removed and added lines are dark, so that the colours of their code can be read. */
const dark: Codes = { 40: "48;5;237", 41: "48;5;52", 42: "48;5;22" }
/** Dim text and bright colours are hard to read on white. */
const light: Codes = {
  40: "48;5;254",
  41: "48;5;224",
  42: "48;5;194",
  2: "90",
  32: "38;5;28",
  33: "38;5;94",
  36: "38;5;25",
  22: "22;39"
}
/** Nothing is dimmed, and each colour is the brightest that the background allows. */
const brightest: Codes = { ...dark, 2: "22", 31: "91", 32: "92", 33: "93", 34: "94", 35: "95", 36: "96" }
const darkest: Codes = {
  40: "48;5;254",
  41: "48;5;224",
  42: "48;5;194",
  2: "22",
  31: "38;5;88",
  32: "38;5;22",
  33: "38;5;94",
  34: "38;5;18",
  35: "38;5;54",
  36: "38;5;24"
}

const codesOf = (theme: TerminalSettings["theme"], background: Background): Codes => {
  switch (theme) {
    case "dark":
      return dark
    case "light":
      return light
    case "contrast":
      return background === "light" ? darkest : brightest
    case "auto":
      return background === "light" ? light : dark
  }
}

/** Whether a colour is a dark or a light background. Components are 0 to 255. */
export const backgroundOf = ({ b, g, r }: { readonly r: number; readonly g: number; readonly b: number }): Background =>
  0.299 * r + 0.587 * g + 0.114 * b > 127 ? "light" : "dark"

const painterOf = (codes: Codes) => (row: string) =>
  // oxlint-disable-next-line no-control-regex
  row.replace(/\u001b\[(\d{1,2})m/g, (whole, code: string) => {
    const other = codes[code]
    return other === undefined ? whole : `\u001b[${other}m`
  })

/** Darker backgrounds of removed and added lines, which only terminals with 24-bit colours have. */
const darkRows: Codes = { 41: "48;2;61;1;0", 42: "48;2;2;40;0" }
const trueColours = new Map([dark, brightest].map((codes) => [codes, { ...codes, ...darkRows }]))

const painters = new Map(
  [dark, light, brightest, darkest, ...trueColours.values()].map((codes) => [codes, painterOf(codes)])
)

/** Returns what puts the colours of a theme into a row: the same function for the same colours. */
export const painter = (
  theme: TerminalSettings["theme"],
  background: Background,
  hasTrueColour = false
): ((row: string) => string) | undefined => {
  const codes = codesOf(theme, background)
  return painters.get(hasTrueColour ? (trueColours.get(codes) ?? codes) : codes)
}
