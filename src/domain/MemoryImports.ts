import { runSync, type Work } from "./Work.ts"

/** Where a memory file asks for another one: `@path`, outside of code (spec 7.4). */

/** One `@path` of a text. */
export interface ImportToken {
  /** Without the `@`. */
  readonly path: string
  /** Of the `@` in the text, and behind its last character. */
  readonly start: number
  readonly end: number
}

/** What is found in a text costs about so much, in characters of plain scanning. */
const finding = 30

/** Runs of backticks that open and close code: from where to behind where. A run that none of its length follows is text. */
function* codeRegions(text: string): Work<ReadonlyArray<readonly [from: number, to: number]>> {
  const runs: Array<{ readonly at: number; readonly length: number }> = []
  const next: Array<number> = []
  const last = new Map<number, number>()
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    const before = last.get(run.length)
    if (before !== undefined) next[before] = runs.length
    last.set(run.length, runs.length)
    runs.push({ at: index, length: run.length })
    yield finding
  }
  const regions: Array<readonly [number, number]> = []
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

/** The imports of a text, in order. An `@` counts at the beginning or behind white space, before `.`, `/` or a letter. */
export function* findImports(text: string): Work<ReadonlyArray<ImportToken>> {
  if (!text.includes("@")) return []
  const regions = yield* codeRegions(text)
  yield text.length
  const tokens: Array<ImportToken> = []
  let region = 0
  for (const { 0: token, 1: path = "", index } of text.matchAll(/(?<!\S)@([./A-Za-z]\S*)/g)) {
    yield finding
    while ((regions[region]?.[1] ?? Infinity) <= index) region += 1
    if ((regions[region]?.[0] ?? Infinity) <= index) continue
    tokens.push({ path, start: index, end: index + token.length })
  }
  return tokens
}

/** `findImports`, all at once: for small texts. */
export const importTokens = (text: string): ReadonlyArray<ImportToken> => runSync(findImports(text))

/** Whether an import is an address and no path. */
export const isAddress = (path: string): boolean => /^(?:file|https?):/i.test(path)

/** Behind a path in a sentence; no part of its name. */
const closing = /[.,;:!?)\]}'"]+$/

/**
 * Whether an import is written as a path: from a folder, or to a name with an extension. `@scope/package` and `@somebody` are
 * not, and mean a file only where there is one. A version behind such a name is no extension.
 */
export const isPath = (path: string): boolean =>
  /^\.{0,2}\//.test(path) || isAddress(path) || /[^./]\.[A-Za-z]\w*$/.test(path.replace(closing, ""))

/** What a comment may hold: nothing that ends it. */
const inComment = (text: string): string => text.replace(/--(!?)>/g, "--$1&gt;")

/** What stands around an imported text, in the place of its token. */
export const importedText = (path: string, text: string): string =>
  `<!-- Imported from: ${inComment(path)} -->\n${text}\n<!-- End of import from: ${inComment(path)} -->`

/** What stands in the place of a token that brought nothing: it is kept, and says why. */
export const notImported = (path: string, why: string): string =>
  `<!-- @${inComment(path)} was not imported: ${inComment(why)} -->`

/** What stands in the place of a token whose file has a block of its own, which is shown under this name. */
export const standsAs = (path: string, shown: string): string =>
  `<!-- @${inComment(path)} is not repeated here: it stands in this memory as ${inComment(shown)} -->`

/** A file of the flat format. */
export const flatBlock = (path: string, text: string): string =>
  `--- File: ${path} ---\n${text.trim()}\n--- End of File: ${path} ---`
