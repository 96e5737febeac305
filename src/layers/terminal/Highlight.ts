/** Colours code in answers by its language. */

import { stripTerminalSequences } from "@earendil-works/pi-tui"
import type { Lowlight, Tree } from "./Lowlight.mjs"

/** Larger blocks are not coloured, because they would be coloured again with each piece that arrives. */
const maxColouredChars = 20_000

/** Colours for the highlighter's token classes, from those that every terminal has. */
const colours: Readonly<Record<string, number>> = {
  keyword: 35,
  built_in: 36,
  type: 36,
  class: 36,
  title: 34,
  function: 34,
  string: 32,
  regexp: 32,
  number: 33,
  literal: 33,
  symbol: 33,
  comment: 2,
  quote: 2,
  meta: 2,
  attr: 34,
  attribute: 34,
  name: 35,
  tag: 35,
  variable: 31,
  addition: 32,
  deletion: 31,
  section: 1
}

const styleOf = ({ properties }: Tree): number | undefined => {
  const names = properties?.className
  if (!Array.isArray(names)) return undefined
  for (const name of names) {
    const colour = typeof name === "string" ? colours[name.replace(/^hljs-/, "").replace(/_$/, "")] : undefined
    if (colour !== undefined) return colour
  }
  return undefined
}

/** The text of a syntax tree with styles, which end with each line and begin again with the next. */
const painted = (node: Tree, style: number | undefined): string => {
  if (node.type === "text") {
    const text = node.value ?? ""
    if (style === undefined) return text
    return text
      .split("\n")
      .map((line) => (line === "" ? "" : `\u001b[${style}m${line}\u001b[0m`))
      .join("\n")
  }
  const own = styleOf(node) ?? style
  return (node.children ?? []).map((child) => painted(child, own)).join("")
}

/** Lines of code, which may contain text styles, with the colours of their language; undefined where it is unknown. */
export interface Highlight {
  /** Colours the lines of a block of code. */
  readonly code: (code: string, language: string | undefined) => Array<string>
  /** Colours the lines of a diff: added and unchanged code by its language, the rest by its signs. */
  readonly diff: (lines: ReadonlyArray<string>, language: string | undefined) => ReadonlyArray<string>
}

const reset = "\u001b[0m"
const added = `\u001b[${colours.addition}m`

/**
 * Makes the highlighter. It is loaded with the first code that names a language and `onLoaded` is called when it is there; until
 * then code is shown as it is.
 */
export const make = (onLoaded: () => void): Highlight => {
  let lowlight: Lowlight | undefined
  let isLoading = false
  /** The highlighter, if it is there and knows the language of a text that is not too long. */
  const forLanguage = (language: string | undefined, length: number) => {
    const name = language?.split(/[\s{,]/)[0] ?? ""
    if (name === "" || length > maxColouredChars) return undefined
    if (lowlight === undefined && !isLoading) {
      isLoading = true
      void import("./Lowlight.mjs").then((loaded) => {
        lowlight = loaded.make()
        onLoaded()
      })
    }
    const loaded = lowlight
    if (loaded?.registered(name) !== true) return undefined
    return (code: string) => painted(loaded.highlight(name, code), undefined).split("\n")
  }
  const code: Highlight["code"] = (text, language) => forLanguage(language, text.length)?.(text) ?? text.split("\n")
  const diff: Highlight["diff"] = (lines, language) => {
    const plain = lines.map(stripTerminalSequences)
    const colour = forLanguage(language, plain.join("\n").length)
    if (colour === undefined) return lines
    const rows = [...lines]
    let hunk: Array<{ readonly at: number; readonly code: string }> = []
    // What a hunk leaves open, such as a comment, ends with it.
    const endHunk = () => {
      const coloured = colour(hunk.map((line) => line.code).join("\n"))
      for (const [index, { at }] of hunk.entries()) {
        const row = coloured[index] ?? ""
        rows[at] =
          plain[at]?.startsWith("+") === true ? `${added}+${row.replaceAll(reset, reset + added)}${reset}` : ` ${row}`
      }
      hunk = []
    }
    for (const [at, line] of plain.entries()) {
      if (line.startsWith("@@ ")) endHunk()
      else if (/^[+ ]/.test(line) && !line.startsWith("+++ ")) hunk.push({ at, code: line.slice(1) })
    }
    endHunk()
    return rows
  }
  return { code, diff }
}
