import { type MarkdownBlock, markdownBlocks, markdownSpans } from "../../domain/text/MarkdownBlocks.ts"
import { escape, type Html, markup, none, trusted } from "./Markup.ts"

/**
 * Renders texts of a conversation: Markdown is laid out, and lines of diffs are coloured. Everything is escaped, no
 * text becomes a link, and `<pre>` contains exact texts only.
 */

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
export const diffBlock = (diff: string): Html => markup`<div class="code diff">${diffLines(diff)}</div>`

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
