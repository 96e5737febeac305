import type { Lowlight, Tree } from "./Lowlight.mjs"

/** Larger blocks are not coloured: they would be again with each piece that arrives. */
const maxColouredChars = 20_000

/** Colours of the kinds of words that the highlighter names: those that every terminal has. */
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

/**
 * Makes a function that colours the lines of a block of code. The highlighter is loaded with the first block that names a language
 * and `onLoaded` is called when it is there; until then code is shown as it is.
 */
export const make = (onLoaded: () => void): ((code: string, language: string | undefined) => Array<string>) => {
  let lowlight: Lowlight | undefined
  let isLoading = false
  return (code, language) => {
    if (language === undefined || language === "" || code.length > maxColouredChars) return code.split("\n")
    if (lowlight === undefined) {
      if (!isLoading) {
        isLoading = true
        void import("./Lowlight.mjs").then((loaded) => {
          lowlight = loaded.make()
          onLoaded()
        })
      }
      return code.split("\n")
    }
    const name = language.split(/[\s{,]/)[0] ?? ""
    return lowlight.registered(name) ? painted(lowlight.highlight(name, code), undefined).split("\n") : code.split("\n")
  }
}
