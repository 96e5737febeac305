/**
 * Reads Markdown into a flat list of blocks, to show the texts of models. It takes any text, in linear time and without
 * recursion: nested quotes and lists become depths, and what is no Markdown is a paragraph.
 */

/** A block. `quote` is the depth of the quotation that it stands in. */
export type MarkdownBlock = { readonly quote: number } & (
  | { readonly _tag: "Heading"; readonly level: number; readonly text: string }
  | { readonly _tag: "Code"; readonly language: string; readonly text: string }
  | { readonly _tag: "Rule" }
  | {
      readonly _tag: "Item"
      readonly depth: number
      /** A bullet, or the number as it is written. */
      readonly marker: string
      /** Whether a task is done; undefined for an item that is no task. */
      readonly done: boolean | undefined
      readonly text: string
    }
  | {
      readonly _tag: "Table"
      readonly head: ReadonlyArray<string>
      readonly rows: ReadonlyArray<ReadonlyArray<string>>
    }
  | { readonly _tag: "Paragraph"; readonly text: string }
)

/** A run of characters within a line. */
interface MarkdownSpan {
  readonly style: "plain" | "code" | "strong" | "emphasis" | "gone"
  readonly text: string
}

const maxDepth = 5
const maxCells = 20

const fence = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/
const rule = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/
const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(?:\[([ xX])\]\s+)?(.*)$/
const divider = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/

const cellsOf = (line: string): ReadonlyArray<string> =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .slice(0, maxCells)
    .map((cell) => cell.trim().replaceAll("\\|", "|"))

/** A line: the depth of its quotation, and the rest. */
type Line = readonly [quote: number, rest: string]

/** Takes the marks of quotations off a line. */
const unquoted = (line: string): Line => {
  let quote = 0
  let at = 0
  while (quote < maxDepth) {
    const mark = /^ {0,3}> ?/.exec(line.slice(at, at + 5))
    if (mark === null) break
    at += mark[0].length
    quote += 1
  }
  return [quote, line.slice(at)]
}

/** Returns the block that a line is by itself. */
const blockIn = (quote: number, line: string): MarkdownBlock | undefined => {
  const [, hashes = "", title = ""] = heading.exec(line) ?? []
  if (hashes !== "") return { _tag: "Heading", quote, level: hashes.length, text: title }
  if (rule.test(line)) return { _tag: "Rule", quote }
  const [, indent = "", marker = "", done, text = ""] = item.exec(line) ?? []
  if (marker === "") return undefined
  return {
    _tag: "Item",
    quote,
    depth: Math.min(maxDepth, Math.floor(indent.replaceAll("\t", "    ").length / 2)),
    marker: /\d/.test(marker) ? marker : "•",
    done: done === undefined ? undefined : done !== " ",
    text
  }
}

/** Returns the lines of code from `at` on, up to the fence that closes them. */
const codeFrom = (lines: ReadonlyArray<Line>, at: number, ticks: string): ReadonlyArray<string> => {
  const code: Array<string> = []
  for (let next = at; next < lines.length; next += 1) {
    const inner = lines[next]?.[1] ?? ""
    if (inner.trim().startsWith(ticks) && /^[`~]+$/.test(inner.trim())) break
    code.push(inner)
  }
  return code
}

/** Returns the rows of a table from `at` on. */
const rowsFrom = (lines: ReadonlyArray<Line>, at: number): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<ReadonlyArray<string>> = []
  for (let next = at; lines[next]?.[1].includes("|") === true; next += 1) rows.push(cellsOf(lines[next]?.[1] ?? ""))
  return rows
}

/** Returns the blocks of a text. */
export const markdownBlocks = (text: string): ReadonlyArray<MarkdownBlock> => {
  const blocks: Array<MarkdownBlock> = []
  const lines = text.split(/\r?\n/).map(unquoted)
  let open: Array<string> = []
  let openQuote = 0
  const close = () => {
    if (open.length > 0) blocks.push({ _tag: "Paragraph", quote: openQuote, text: open.join("\n") })
    open = []
  }
  for (let at = 0; at < lines.length; at += 1) {
    const [quote, line] = lines[at] ?? [0, ""]
    if (line.trim() === "" || quote !== openQuote) close()
    openQuote = quote
    if (line.trim() === "") continue
    const [, ticks = "", language = ""] = fence.exec(line) ?? []
    const own = ticks === "" ? blockIn(quote, line) : undefined
    const previous = blocks.at(-1)
    if (ticks !== "") {
      close()
      const code = codeFrom(lines, at + 1, ticks)
      blocks.push({ _tag: "Code", quote, language, text: code.join("\n") })
      at += code.length + 1
    } else if (own !== undefined) {
      close()
      blocks.push(own)
    } else if (open.length === 0 && line.includes("|") && divider.test(lines[at + 1]?.[1] ?? "")) {
      const rows = rowsFrom(lines, at + 2)
      blocks.push({ _tag: "Table", quote, head: cellsOf(line), rows })
      at += rows.length + 1
    } else if (open.length === 0 && previous?._tag === "Item" && /^\s/.test(line) && lines[at - 1]?.[1].trim() !== "") {
      // A line below an item, indented, belongs to it.
      blocks[blocks.length - 1] = { ...previous, text: `${previous.text}\n${line.trim()}` }
    } else open.push(line)
  }
  close()
  return blocks
}

const spans =
  /(`{1,3})([^`][^\n]{0,500}?)\1(?!`)|\*\*([^\s*][^*\n]{0,500})\*\*|(?<!\w)__([^\s_][^_\n]{0,500})__(?!\w)|(?<![\w*])\*([^\s*][^*\n]{0,500})\*(?![\w*])|(?<![\w_])_([^\s_][^_\n]{0,500})_(?![\w_])|~~([^\s~][^~\n]{0,500})~~/g

/** Returns the runs of a line or paragraph. Together their texts are the text without its marks. */
export const markdownSpans = (text: string): ReadonlyArray<MarkdownSpan> => {
  const found: Array<MarkdownSpan> = []
  let at = 0
  for (const match of text.matchAll(spans)) {
    const [whole, , code, strong, strongToo, emphasis, emphasisToo, gone] = match
    if (match.index > at) found.push({ style: "plain", text: text.slice(at, match.index) })
    const bold = strong ?? strongToo
    const slanted = emphasis ?? emphasisToo
    if (code !== undefined) found.push({ style: "code", text: code.trim() === "" ? code : code.trim() })
    else if (bold !== undefined) found.push({ style: "strong", text: bold })
    else if (slanted !== undefined) found.push({ style: "emphasis", text: slanted })
    else found.push({ style: "gone", text: gone ?? "" })
    at = match.index + whole.length
  }
  if (at < text.length) found.push({ style: "plain", text: text.slice(at) })
  return found
}
