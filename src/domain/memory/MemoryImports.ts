/** Finds imports in memory files: `@path`, outside of code and comments. */

import { runSync, type SlicedWork } from "../text/SlicedWork.ts"

/** One `@path` in a text. */
export interface ImportToken {
  /** The path without the `@`. */
  readonly path: string
  /** Offset of the `@`, and the offset after the last character. */
  readonly start: number
  readonly end: number
}

/** Characters `from` to `to` of a text. */
type Region = readonly [from: number, to: number]

/** A line that begins an item of a list: what is indented below it belongs to the item, and is no code. */
const listItem = /^\s*(?:[-*+]|\d{1,9}[.)])\s/

/** Blocks of indented code: after an empty line, where no list goes on. */
function* indentedRegions(text: string): SlicedWork<ReadonlyArray<Region>> {
  if (!/^(?: {4}|\t)/m.test(text)) return []
  const regions: Array<Region> = []
  let at = 0
  let isOpen = true
  let isList = false
  for (const line of text.split("\n")) {
    yield
    const isIndented = /^(?: {4}|\t)/.test(line)
    const isEmpty = line.trim() === ""
    if (isIndented && isOpen && !isList && !isEmpty) regions.push([at, at + line.length])
    else if (!isEmpty) {
      isOpen = false
      isList = listItem.test(line) || (isList && /^\s/.test(line))
    }
    if (isEmpty) isOpen = true
    at += line.length + 1
  }
  return regions
}

/** Comments of HTML. One that is not closed is text. */
function* commentRegions(text: string): SlicedWork<ReadonlyArray<Region>> {
  const regions: Array<Region> = []
  for (let from = text.indexOf("<!--"); from >= 0;) {
    yield
    const end = text.indexOf("-->", from + 4)
    if (end < 0) break
    regions.push([from, end + 3])
    from = text.indexOf("<!--", end + 3)
  }
  return regions
}

/** Ranges of code and comments: those that begin within another do not count. */
function* codeRegions(text: string): SlicedWork<ReadonlyArray<Region>> {
  const fenced = yield* fencedRegions(text)
  const all = [
    ...fenced,
    ...(yield* inlineRegions(text, fenced)),
    ...(yield* indentedRegions(text)),
    ...(yield* commentRegions(text))
  ]
  const regions: Array<Region> = []
  for (const region of all.sort(([one], [other]) => one - other)) {
    if (region[0] >= (regions.at(-1)?.[1] ?? 0)) regions.push(region)
  }
  return regions
}

/** What may stand before a fence in its line: quotes and items of lists. */
const fencePrefix = /^(?:[\s>]|[-*+]\s|\d{1,9}[.)]\s)*/

/** Fenced code. A fence that is not closed goes to the end of the text. */
function* fencedRegions(text: string): SlicedWork<ReadonlyArray<Region>> {
  if (!/`{3}|~{3}/.test(text)) return []
  const regions: Array<Region> = []
  let open: { readonly at: number; readonly fence: string } | undefined
  let at = 0
  for (const line of text.split("\n")) {
    yield
    const [, fence = "", info = ""] = /^(`{3,}|~{3,})(.*)$/.exec(line.replace(fencePrefix, "")) ?? []
    if (open === undefined) {
      if (fence !== "" && !(fence.startsWith("`") && info.includes("`"))) open = { at, fence }
    } else if (fence.startsWith(open.fence) && info.trim() === "") {
      regions.push([open.at, at + line.length])
      open = undefined
    }
    at += line.length + 1
  }
  return open === undefined ? regions : [...regions, [open.at, text.length]]
}

/** Inline code: between two runs of as many backticks in one paragraph. A run without a second one is text. */
function* inlineRegions(text: string, fenced: ReadonlyArray<Region>): SlicedWork<ReadonlyArray<Region>> {
  const runs: Array<{ readonly at: number; readonly length: number }> = []
  const next: Array<number> = []
  const last = new Map<string, number>()
  let fence = 0
  for (const { 0: run, index } of text.matchAll(/`+|\n\s*?(?=\n)/g)) {
    yield
    const before = fence
    while ((fenced[fence]?.[1] ?? Infinity) <= index) fence += 1
    if (fence > before || run.startsWith("\n")) last.clear()
    if (run.startsWith("\n") || (fenced[fence]?.[0] ?? Infinity) <= index) continue
    const opening = last.get(run)
    if (opening !== undefined) next[opening] = runs.length
    last.set(run, runs.length)
    runs.push({ at: index, length: run.length })
  }
  const regions: Array<Region> = []
  for (let i = 0; i < runs.length; i += 1) {
    const opens = runs[i]
    const close = next[i]
    const closes = close === undefined ? undefined : runs[close]
    if (opens === undefined || close === undefined || closes === undefined) continue
    regions.push([opens.at, closes.at + closes.length])
    i = close
  }
  return regions
}

/** The imports of a text, in order. An `@` counts at the start or after white space, before `.`, `/` or a letter. */
export function* findImports(text: string): SlicedWork<ReadonlyArray<ImportToken>> {
  if (!text.includes("@")) return []
  const regions = yield* codeRegions(text)
  yield
  const tokens: Array<ImportToken> = []
  let region = 0
  for (const { 0: token, 1: path = "", index } of text.matchAll(/(?<!\S)@([./A-Za-z]\S*)/g)) {
    yield
    while ((regions[region]?.[1] ?? Infinity) <= index) region += 1
    if ((regions[region]?.[0] ?? Infinity) <= index) continue
    tokens.push({ path, start: index, end: index + token.length })
  }
  return tokens
}

/** `findImports` in one step, for small texts. */
export const importTokens = (text: string): ReadonlyArray<ImportToken> => runSync(findImports(text))

/** Whether an import is a URL. */
export const isAddress = (path: string): boolean => /^(?:file|https?):/i.test(path)

/** Punctuation after a path in a sentence; not part of the name. */
const trailingPunctuation = /[.,;:!?)\]}'"。，、；：！？）」』】”’…]+$/

/** An import without the punctuation after it. */
export const withoutPunctuation = ({ end, path, start }: ImportToken): ImportToken => {
  const shorter = path.replace(trailingPunctuation, "")
  return { path: shorter, start, end: end - (path.length - shorter.length) }
}

/**
 * Whether an import is written as a path: with a folder, or with a file extension. `@scope/package` and `@somebody` are
 * not; they import a file only when it exists. A version after such a name is not an extension.
 */
export const isPath = (path: string): boolean =>
  /^\.{0,2}\//.test(path) || isAddress(path) || /[^./]\.[A-Za-z]\w*$/.test(path.replace(trailingPunctuation, ""))

/** Text that cannot end an HTML comment. */
const inComment = (text: string): string => text.replace(/--(!?)>/g, "--$1&gt;")

/** An imported text with markers, in place of its token. */
export const importedText = (path: string, text: string): string =>
  `<!-- Imported from: ${inComment(path)} -->\n${text}\n<!-- End of import from: ${inComment(path)} -->`

/** A token that imported nothing: the token stays, with the reason. */
export const skippedImport = (path: string, why: string): string =>
  `<!-- @${inComment(path)} was not imported: ${inComment(why)} -->`

/** A reference to a file that has its own block, shown under that name. */
export const importedBlock = (path: string, shown: string): string =>
  `<!-- @${inComment(path)} is not repeated here: this memory already contains it as ${inComment(shown)} -->`

/** One file in the flat format. */
export const flatBlock = (path: string, text: string): string =>
  `--- File: ${path} ---\n${text.trim()}\n--- End of File: ${path} ---`

/** Whether a text begins with another that ends at the end of a line. */
export const beginsWith = (text: string, other: string): boolean => {
  const [whole, part] = [text.trim(), other.trim()]
  return whole.startsWith(part) && /^[ \t\r]*(?:\n|$)/.test(whole.slice(part.length))
}
