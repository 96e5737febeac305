/** The parts of a message on the page: their exact texts, and rendered forms of Markdown and edits. */

import { Predicate } from "effect"
import { isCall, isMedia, isResponse, outputText, type Part } from "../../domain/content/Content.ts"
import { type Entry, type ShortenedPart, sourceOf } from "../../domain/conversation/Conversation.ts"
import { partKindOf } from "../../domain/evaluation/PartKind.ts"
import { clipped, firstUnits } from "../../domain/text/Bytes.ts"
import { type MarkdownBlock, markdownBlocks, markdownSpans } from "../../domain/text/MarkdownBlocks.ts"
import { fileDiff } from "../../domain/tools/FileDiff.ts"
import { kindNames } from "../output/InspectReport.ts"
import { number, plural } from "../output/Output.ts"
import { escape, type Html, markup, none, preformatted, trusted } from "./Markup.ts"
import { swatch } from "./ReportPage.ts"

// Renders texts of a conversation: Markdown is laid out, and lines of diffs are coloured. Everything is escaped, no
// text becomes a link, and `<pre>` contains exact texts only.

const inline = (text: string): Html =>
  markup`${markdownSpans(text).map(({ style, text: run }) => {
    switch (style) {
      case "code":
        return markup`<code>${run}</code>`
      case "strong":
        return markup`<strong>${run}</strong>`
      case "emphasis":
        return markup`<em>${run}</em>`
      case "gone":
        return markup`<s>${run}</s>`
      case "plain":
        return markup`${run}`
    }
  })}`

const isPatch = (text: string): boolean =>
  /^(?:diff --git |@@ -\d|--- \S|\*\*\* (?:Begin Patch|Update File))/m.test(text) && /^[+-]/m.test(text)

const lineClass = (line: string): string =>
  /^(?:\+\+\+|---|diff |index |@@|\*\*\*)/.test(line)
    ? "hunk"
    : line.startsWith("+")
      ? "added"
      : line.startsWith("-")
        ? "removed"
        : ""

/** Each line of a diff in a span of its kind. The text stays the same. */
const diffLines = (text: string): Html =>
  trusted(
    text
      .split(/(?<=\n)/)
      .map((line) => {
        const kind = lineClass(line)
        const shown = line.endsWith("\r\n") ? `${escape(line.slice(0, -2))}&#13;\n` : escape(line)
        return kind === "" ? shown : `<span class="${kind}">${shown}</span>`
      })
      .join("")
  )

/** An exact text that is a diff, in a preformatted block with coloured lines; undefined for other texts. */
export const preformattedDiff = (text: string): Html | undefined =>
  isPatch(text) ? markup`<pre class="diff">${trusted("\n")}${diffLines(text)}</pre>` : undefined

/** A diff that was computed from two texts. */
const diffBlock = (diff: string): Html => markup`<div class="code diff">${diffLines(diff)}</div>`

const blockMarkup = (block: MarkdownBlock): Html => {
  switch (block._tag) {
    case "Heading":
      return markup`<p class="title l${Math.min(4, block.level)}">${inline(block.text)}</p>`
    case "Code":
      return isPatch(block.text) || block.language === "diff"
        ? diffBlock(block.text)
        : markup`<div class="code">${block.text}</div>`
    case "Rule":
      return markup`<hr>`
    case "Item": {
      const task = block.done === undefined ? "" : block.done ? "☑ " : "☐ "
      return markup`<p class="item d${block.depth}"><span>${block.marker}</span> ${task}${inline(block.text)}</p>`
    }
    case "Table":
      return markup`<div class="wrap"><table><thead><tr>${block.head.map((cell) => markup`<th scope="col">${inline(cell)}</th>`)}</tr></thead><tbody>${block.rows.map(
        (row) => markup`<tr>${block.head.map((_, at) => markup`<td>${inline(row[at] ?? "")}</td>`)}</tr>`
      )}</tbody></table></div>`
    case "Paragraph":
      return markup`<p>${inline(block.text)}</p>`
  }
}

/** Whether the text has any Markdown to render. */
const isRich = (blocks: ReadonlyArray<MarkdownBlock>): boolean =>
  blocks.some(
    (block) =>
      block._tag !== "Paragraph" || block.quote > 0 || markdownSpans(block.text).some(({ style }) => style !== "plain")
  )

/** A text laid out as Markdown; `none` when it has no Markdown to render. */
export const markdown = (text: string): Html => {
  const blocks = markdownBlocks(text)
  if (!isRich(blocks)) return none
  return markup`<div class="md">${blocks.map((block) =>
    block.quote === 0 ? blockMarkup(block) : markup`<div class="quote q${block.quote}">${blockMarkup(block)}</div>`
  )}</div>`
}

/** How parts are shown. */
export interface PartLook {
  /** The command that prints a full text when a handle is appended. */
  readonly recall: string
  /** Whether texts are left out, and their sizes shown instead. */
  readonly hidesTexts: boolean
  /** Whether texts are laid out. */
  readonly laysOut: boolean
}

/** A message, and its parts that the view shortens. */
interface ShownEntry {
  readonly entry: Entry
  readonly shortened: ReadonlyMap<number, ShortenedPart> | undefined
}

/** One text of a part. `name` says what it is; it is empty for plain text. */
export interface PartText {
  readonly name: string
  readonly text: string
}

const json = (value: unknown): string => JSON.stringify(value, undefined, 2) ?? ""

const callTexts = (args: unknown, source: string | undefined): ReadonlyArray<PartText> => {
  if (source !== undefined) return [{ name: "as it was read", text: source }]
  if (!Predicate.isObject(args)) return args === undefined ? [] : [{ name: "", text: json(args) }]
  return Object.entries(args).map(([name, value]) => ({ name, text: typeof value === "string" ? value : json(value) }))
}

const mediaText = (part: Part): string => {
  const { fileData, inlineData } = part
  return inlineData === undefined
    ? `${fileData?.mimeType ?? ""} ${fileData?.fileUri ?? ""}`.trim()
    : `${inlineData.mimeType ?? "bytes"}, ${number(inlineData.data?.length ?? 0)} characters of base64 that are not shown here`
}

/** Returns the texts of a part. Text is kept exactly; arguments are listed one by one, other content as JSON. */
export const partTexts = (entry: Entry, index: number, part: Part): ReadonlyArray<PartText> => {
  const source = sourceOf(entry, index)
  if (isCall(part)) return callTexts(part.functionCall.args, source)
  if (isResponse(part)) {
    const text = outputText(part)
    return text === undefined
      ? [
          {
            name: source === undefined ? "" : "as it was read",
            text: source ?? json(part.functionResponse.response ?? part)
          }
        ]
      : [{ name: "", text }]
  }
  if (isMedia(part)) return [{ name: "", text: mediaText(part) }]
  if (part.text !== undefined) return [{ name: "", text: part.text }]
  return [{ name: "", text: source ?? json(part) }]
}

/** Names of the old and the new text in the arguments of edit calls of different agents. */
const replacementNames = [
  ["old_string", "new_string"],
  ["old_str", "new_str"],
  ["oldText", "newText"]
] as const
/** Longer texts are not compared. */
const maxComparedUnits = 20_000

/** Adds a final line break: agents pass parts of lines, whose missing line break means nothing. */
const ended = (text: string): string => (text === "" || text.endsWith("\n") ? text : `${text}\n`)

/** The change that a call makes, as a diff; `none` for other calls. */
const change = (part: Part): Html => {
  const args = part.functionCall?.args
  if (!Predicate.isObject(args)) return none
  const texts: Readonly<Record<string, unknown>> = { ...args }
  for (const [before, after] of replacementNames) {
    const [old, fresh] = [texts[before], texts[after]]
    if (typeof old !== "string" || typeof fresh !== "string") continue
    if (old.length + fresh.length > maxComparedUnits || old.includes("\0") || fresh.includes("\0")) return none
    const path = texts["file_path"] ?? texts["path"]
    const name = typeof path === "string" ? path.replace(/^.*[\\/]/, "") : "text"
    const { diff } = fileDiff(name, ended(old), ended(fresh))
    return diff === "" ? none : diffBlock(diff)
  }
  return none
}

/** A rendered text with the exact text folded below it; the exact text alone where there is nothing to render. */
const laidOut = (shown: Html, exact: Html, name: string): Html =>
  shown === none
    ? exact
    : markup`${shown}<details class="exact"><summary class="plainly">${name}</summary>${exact}</details>`

/** Characters that a text uses of its part's limit, including the markup of its name. */
export const roomOf = ({ name, text }: PartText): number => text.length + (name === "" ? 0 : 20 + name.length)
const lengthOf = (all: ReadonlyArray<PartText>): number => all.reduce((total, { text }) => total + text.length, 0)

const textBlock = ({ name, text }: PartText): Html =>
  markup`${name === "" ? none : markup`<p>${clipped(name, 200)}</p>`}${preformattedDiff(text) ?? preformatted(text)}`

/** Markup for a part, with at most `limit` characters of text. */
export const partMarkup = (
  { entry, shortened }: ShownEntry,
  index: number,
  part: Part,
  limit: number,
  { hidesTexts, laysOut, recall }: PartLook
): Html => {
  const kind = partKindOf(entry, part)
  const tool = part.functionCall?.name ?? part.functionResponse?.name
  const handle = entry.handles[index]
  const all = partTexts(entry, index, part)
  let room = limit
  let more = lengthOf(all)
  const shown = all.flatMap((each) => {
    if (room <= 0) return []
    const text = firstUnits(each.text, room)
    room -= roomOf(each)
    more -= text.length
    return [textBlock({ name: each.name, text })]
  })
  const exact = markup`${shown}`
  const texts = !laysOut
    ? exact
    : isCall(part)
      ? laidOut(more > 0 ? none : change(part), exact, "exact arguments")
      : part.text === undefined
        ? exact
        : laidOut(markdown(firstUnits(part.text, limit)), exact, "exact text")
  const replaced = shortened?.get(index)
  const size = plural(entry.tokens[index] ?? 0, "token")
  const shortly = replaced === undefined ? "" : `, shortened to ${number(replaced.tokens)} in the view`
  const handleTag = handle === undefined ? none : markup` · <code>${handle}</code>`
  const called = tool === undefined ? "" : ` ${clipped(tool, 200)}`
  const rest = handle === undefined ? none : markup`: <code>${recall} ${handle}</code>`
  return markup`<div class="part">
<p>${swatch(kind)}<b>${kindNames[kind]}${called}</b>, ${size}${shortly}${handleTag}</p>
${
  hidesTexts
    ? markup`<p>${plural(lengthOf(all), "character")}, not shown</p>`
    : markup`${texts}${more > 0 ? markup`<p>… ${plural(more, "more character")}${rest}</p>` : none}`
}</div>
`
}
