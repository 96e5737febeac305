/**
 * Writes a conversation as Markdown, for reading only; it cannot be read back. Environment messages, thoughts, and the bytes
 * of pictures and files are left out.
 */

import { isCall, isMedia, isResponse, isText, outputText, type Part } from "../content/Content.ts"
import { responseContent } from "../content/MediaBlocks.ts"
import { type Author, type Conversation, entries, type Entry } from "../conversation/Conversation.ts"
import { firstUnits } from "../text/Bytes.ts"
import { visibleBlock } from "../text/InvisibleCharacters.ts"

/** Maximum lines and characters shown of one tool output or one call's arguments. */
const maxLines = 40
const maxCharacters = 8_000

/** Makes control characters visible, because a terminal would act on them when it prints the file. */
const plain = visibleBlock

/** Returns a fenced block. The fence is longer than any run of backticks in the text. */
const fenced = (text: string, language: string): string => {
  const longestRun = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2)
  const fence = "`".repeat(longestRun + 1)
  return `${fence}${language}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`
}

/** Returns a block with the beginning of a long text, and a line with the size of the omitted rest. */
const shortened = (text: string, language = ""): string => {
  const whole = plain(text)
  const lines = whole.split("\n")
  const shown = firstUnits(lines.slice(0, maxLines).join("\n"), maxCharacters)
  const left = whole.length - shown.length
  return left === 0
    ? fenced(whole, language)
    : `${fenced(shown, language)}\n\n_${left.toLocaleString("en-US")} more characters are left out here._`
}

const json = (value: unknown): string => JSON.stringify(value, undefined, 2) ?? "null"

const toolName = (name: string | undefined): string => `\`${plain(name ?? "").replace(/[`\n]/g, "") || "a tool"}\``

/** The headings of sections. */
const names = {
  summary: "Summary of earlier messages",
  program: "Program",
  model: "Model",
  tools: "Tools",
  user: "User"
}
const sectionLine = new RegExp(`^ {0,3}##?[ \\t]+(?:${Object.values(names).join("|")})[ \\t]*#*[ \\t]*$`)

/** Characters that begin markup, code, a link or a picture. */
const active = /[\\<[@`]|:(?=\/\/)|(?<=mailto|xmpp):|(?<=www)\.|~{3,}/gi

const escaped = (text: string): string => text.replace(active, (found) => [...found].map((one) => `\\${one}`).join(""))

/** A backtick that is escaped, or code within a line. The cells of a table may cut code in pieces, so it may have none of their borders. */
const codeSpan = /\\`|(?<!`)(`{1,2})(?!`)[^`|]+\1(?!`)/g

/** Returns a line in which nothing is markup but emphasis, lists, tables and code. */
const inertLine = (line: string): string => {
  let text = ""
  let from = 0
  for (const { 0: code, index } of line.matchAll(codeSpan)) {
    text += escaped(line.slice(from, index)) + (code === "\\`" ? "\\\\\\`" : code)
    from = index + code.length
  }
  return text + escaped(line.slice(from))
}

/** Languages of code that a viewer would draw as something else. */
const drawn = /^(?:mermaid|math|geojson|topojson|stl)$/i

/**
 * Returns the text of a section as text: HTML, links and pictures in it are shown, not carried out, and no line looks like the section of
 * another author. Headings are escaped. In code, where "#" begins comments, only lines that look like one of our headings are changed. Only code
 * that begins at the margin counts as code, because a list would end indented code earlier. Unclosed code ends with the text.
 */
const inert = (text: string): string => {
  let fence: string | undefined
  let isBelowText = false
  const lines = text.split("\n").map((line) => {
    const below = isBelowText
    isBelowText = line.trim() !== ""
    if (fence !== undefined) {
      const [, run = "", info = ""] = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line) ?? []
      if (run.startsWith(fence) && info.trim() === "") fence = undefined
      return sectionLine.test(line) ? line.replace("#", "\\#") : line
    }
    const [, opening, language = ""] = /^(`{3,}|~{3,})[ \t]*([\w+#.-]{0,20})[ \t]*$/.exec(line) ?? []
    if (opening !== undefined) {
      fence = opening
      return drawn.test(language) ? opening : line
    }
    const shown = inertLine(line)
    if (/^ {0,3}#{1,6}(?:[ \t]|$)/.test(line)) return shown.replace("#", "\\#")
    // A line of "=" or "-" makes the text above it a heading.
    return below && /^ {0,3}(?:=+|-+)[ \t]*$/.test(line) ? shown.replace(/[=-]/, "\\$&") : shown
  })
  return [...lines, ...(fence === undefined ? [] : [fence])].join("\n")
}

const mediaLine = ({ fileData, inlineData }: Part): string =>
  `_${inertLine(plain(inlineData?.mimeType ?? fileData?.mimeType ?? "A file").replaceAll("\n", " "))}_`

const partText = (part: Part, author: Author | undefined): string | undefined => {
  if (isText(part)) {
    if (part.text.trim() === "") return undefined
    const text = plain(part.text)
    return author === "program" ? fenced(text, "") : inert(text)
  }
  if (isCall(part)) {
    const { args, name } = part.functionCall
    return `Calls ${toolName(name)}:\n\n${shortened(json(args ?? {}), "json")}`
  }
  if (isResponse(part)) {
    const { name, response } = part.functionResponse
    const output = outputText(part)
    const { media, text } = responseContent(part)
    const words = media.length > 0 ? text : output
    const shown = words === undefined ? shortened(json(response ?? {}), "json") : shortened(words)
    const isShown = media.length === 0 || text !== ""
    return [`${toolName(name)} answered:`, ...(isShown ? [shown] : []), ...media.map(mediaLine)].join("\n\n")
  }
  return isMedia(part) ? mediaLine(part) : undefined
}

const heading = ({ author, content }: Entry): string => {
  if (author === "summary") return names.summary
  if (author === "program") return names.program
  if (content.role === "model") return names.model
  const isAnswer = content.parts.some(isResponse)
  return content.parts.every((part) => isResponse(part) || (isAnswer && isMedia(part))) ? names.tools : names.user
}

/** Writes every message of the log under the name of its author. Long tool outputs are shown by their beginning. */
export const writeMarkdown = (conversation: Conversation, title: string): string => {
  const sections = entries(conversation).flatMap((entry) => {
    const { author, content } = entry
    const texts = author === "environment" ? [] : content.parts.flatMap((part) => partText(part, author) ?? [])
    return texts.length === 0 ? [] : [[`## ${heading(entry)}`, ...texts].join("\n\n")]
  })
  return `${[`# ${inertLine(plain(title).replaceAll("\n", " "))}`, ...sections].join("\n\n")}\n`
}
