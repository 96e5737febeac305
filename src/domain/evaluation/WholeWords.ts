/** Finds names in texts as whole words: `100` is not in `1000`, and a path ends and begins at a slash. */

import { escape as escapeRegExp } from "effect/RegExp"
import type { AnchorKind } from "../compression/Anchors.ts"

const isWord = (char: string): boolean => /[\w]/.test(char)

/** Returns a function that writes paths below these folders relative to them. */
export const relativeTo = (roots: ReadonlyArray<string>): ((text: string) => string) => {
  const folders = [...new Set(roots.map((root) => root.replace(/\/+$/, "")))]
    .filter((root) => root.length > 2)
    .sort((a, b) => b.length - a.length)
    .map((root) => ({ root, form: new RegExp(`(?<![\\w.~/-])${escapeRegExp(root)}(?:/|(?![\\w.-]))`, "g") }))
  return (text) =>
    folders.reduce(
      (left, { form, root }) =>
        left.includes(root) ? left.replace(form, (found) => (found.endsWith("/") ? "" : ".")) : left,
      text
    )
}

const braces = /([\w@.~+/-]*\/)\{([^{}\n]*)\}/g
const maxBraceDepth = 4

/** Splits a text at the commas outside of its parentheses. */
export const listItems = (text: string): ReadonlyArray<string> =>
  (text.match(/(?:\([^()]*\)|[^,(])+/g) ?? []).map((item) => item.trim()).filter((item) => item !== "")

/** Returns a text with the paths that `lib/{a.ts (2 changes), b/{c.ts, d.ts}}` stands for: `lib/a.ts (2 changes), lib/b/c.ts, lib/b/d.ts`. */
export const withoutBraces = (text: string): string => {
  let written = text
  for (let depth = 0; depth < maxBraceDepth && written.includes("/{"); depth += 1) {
    written = written.replace(braces, (_, root: string, list: string) =>
      listItems(list)
        .map((item) => root + item)
        .join(", ")
    )
  }
  return written
}

/** Returns the lines with braces, without them. Only they are searched: the pattern tries each character of a word as the beginning of a path. */
const expandedPaths = (text: string): string =>
  text
    .split("\n")
    .filter((line) => line.includes("/{"))
    .map(withoutBraces)
    .join("\n")

const folderHeading = /^([ \t]*)(?:[-*+•] )?[`*]*((?:~?\/)?(?:[\w@.+-]+\/)+)[`*]*:?[`*]*$/

/** Returns the paths of what is listed below the name of a folder, one a line; empty for a text without such a list. */
const pathsBelowFolders = (text: string): string => {
  const paths: Array<string> = []
  let folder: { readonly name: string; readonly indent: number } | undefined
  for (const line of text.split("\n")) {
    const [, indent = "", name] = line.includes("/") ? (folderHeading.exec(line) ?? []) : []
    if (name !== undefined) {
      folder = { name, indent: indent.length }
      continue
    }
    if (folder === undefined || line.trim() === "") continue
    const [, inner = "", file] = /^([ \t]*)(?:[-*+•] )?[`*]*([\w@.+-][\w@.+/-]*)/.exec(line) ?? []
    if (file === undefined || inner.length <= folder.indent) folder = undefined
    else paths.push(folder.name + file)
  }
  return paths.join("\n")
}

/** Whether the name at this place is a whole word: what stands before and after it does not continue it. */
const isWhole = (text: string, name: string, kind: AnchorKind, at: number): boolean => {
  const before = text.charAt(at - 1)
  const previous = text.charAt(at - 2)
  const after = text.charAt(at + name.length)
  const next = text.charAt(at + name.length + 1)
  const joiners = kind === "number" ? /[.,-]/ : kind === "path" || kind === "url" ? /[.-]/ : /-/
  const continues = (char: string, beyond: string) => isWord(char) || (joiners.test(char) && isWord(beyond))
  if (continues(after, next)) return false
  // The letter of an escape (`\\nName`) belongs to no word.
  if (previous === "\\" && /[nrt]/.test(before)) return true
  if (/^[-/]/.test(name)) return !/[\w-]/.test(before)
  return !isWord(name.charAt(0)) || !continues(before, previous)
}

/** Whether a text, whose paths are relative already, has this name as a whole word. */
export const hasWord = (text: string, name: string, kind: AnchorKind): boolean => wordAt(text, name, kind, 0) >= 0

/** Returns the place of a name as a whole word, from `from` on; -1 when there is none. */
export const wordAt = (text: string, name: string, kind: AnchorKind, from: number): number => {
  if (name === "") return -1
  for (let at = text.indexOf(name, from); at >= 0; at = text.indexOf(name, at + 1)) {
    if (isWhole(text, name, kind, at)) return at
  }
  return -1
}

/** Returns the form in which a path is compared: relative, without `./` before it and a slash after it. */
export const comparable = (name: string, relative: (text: string) => string): string =>
  relative(name)
    .replace(/^(?:\.\/)+(?=.)/, "")
    .replace(/(?<=.)\/+$/, "")

/** A text in which names are searched, with paths below `roots` in relative form and those of groups in full. */
export class SearchableText {
  readonly original: string
  /** The text with relative paths, and below it the paths that braces and lists below a folder stand for. */
  readonly text: string
  private readonly found = new Map<string, boolean>()

  constructor(original: string, relative: (text: string) => string) {
    this.original = original
    const written = relative(original)
    this.text = [written, expandedPaths(written), pathsBelowFolders(written)].filter((text) => text !== "").join("\n")
  }

  /** Whether the text has a name, in comparable form, as a whole word. */
  has(name: string, kind: AnchorKind): boolean {
    const key = `${kind} ${name}`
    const cached = this.found.get(key)
    if (cached !== undefined) return cached
    const isFound = hasWord(this.text, name, kind)
    this.found.set(key, isFound)
    return isFound
  }
}
