import type { EditorTheme, MarkdownTheme, SelectListTheme } from "@earendil-works/pi-tui"
import type { Highlight } from "./Highlight.ts"

/** The colours of the terminal UI: those that every terminal has, so that they fit its own theme. */

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
