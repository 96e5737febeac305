import { isCall, isMedia, isResponse, isText, outputText, type Part } from "../content/Content.ts"
import { type Author, type Conversation, entries, type Entry } from "../conversation/Conversation.ts"
import { firstUnits } from "../text/Bytes.ts"
import { visibleBlock } from "../text/InvisibleCharacters.ts"

/**
 * Writes a conversation as Markdown, for reading only; it cannot be read back. Environment messages, thoughts, and the bytes
 * of pictures and files are left out.
 */

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

const named = (name: string | undefined): string => `\`${plain(name ?? "a tool").replace(/[`\n]/g, "")}\``

/** The headings of sections. */
const names = {
  summary: "Summary of earlier messages",
  program: "Program",
  model: "Model",
  tools: "Tools",
  user: "User"
}
const sectionLine = new RegExp(`^ {0,3}##?[ \\t]+(?:${Object.values(names).join("|")})[ \\t]*#*[ \\t]*$`)

/**
 * Returns the text of a section without headings, so that no line looks like the section of another author. In code, where
 * "#" begins comments, only lines that look like one of our headings are changed. Unclosed code ends with the text.
 */
const withoutHeadings = (text: string): string => {
  let fence: string | undefined
  let isBelowText = false
  const lines = text.split("\n").map((line) => {
    const below = isBelowText
    isBelowText = line.trim() !== ""
    const [, run = "", info = ""] = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line) ?? []
    if (fence === undefined) {
      if (run !== "" && !(run.startsWith("`") && info.includes("`"))) fence = run
      else if (/^ {0,3}#{1,6}(?:[ \t]|$)/.test(line)) return line.replace("#", "\\#")
      // A line of "=" or "-" makes the text above it a heading.
      else if (below && /^ {0,3}(?:=+|-+)[ \t]*$/.test(line)) return line.replace(/[=-]/, "\\$&")
    } else if (run.startsWith(fence) && info.trim() === "") fence = undefined
    else if (sectionLine.test(line)) return line.replace("#", "\\#")
    return line
  })
  return [...lines, ...(fence === undefined ? [] : [fence])].join("\n")
}

const partText = (part: Part, author: Author | undefined): string | undefined => {
  if (isText(part)) {
    if (part.text.trim() === "") return undefined
    const text = plain(part.text)
    return author === "program" ? fenced(text, "") : withoutHeadings(text)
  }
  if (isCall(part)) {
    const { args, name } = part.functionCall
    return `Calls ${named(name)}:\n\n${shortened(json(args ?? {}), "json")}`
  }
  if (isResponse(part)) {
    const { name, response } = part.functionResponse
    const output = outputText(part)
    return `${named(name)} answered:\n\n${output === undefined ? shortened(json(response ?? {}), "json") : shortened(output)}`
  }
  if (isMedia(part)) return `_${part.inlineData?.mimeType ?? part.fileData?.mimeType ?? "A file"}_`
  return undefined
}

const heading = ({ author, content }: Entry): string => {
  if (author === "summary") return names.summary
  if (author === "program") return names.program
  if (content.role === "model") return names.model
  return content.parts.every(isResponse) ? names.tools : names.user
}

const sectionOf = ({ author, content }: Entry): string | undefined => {
  const parts = content.parts.flatMap((part) => partText(part, author) ?? [])
  return parts.length === 0 ? undefined : parts.join("\n\n")
}

/** Writes every message of the log under the name of its author. Long tool outputs are shown by their beginning. */
export const writeMarkdown = (conversation: Conversation, title: string): string => {
  const sections = entries(conversation).flatMap((entry) => {
    const text = entry.author === "environment" ? undefined : sectionOf(entry)
    return text === undefined ? [] : [`## ${heading(entry)}\n\n${text}`]
  })
  return `${[`# ${plain(title).replaceAll("\n", " ")}`, ...sections].join("\n\n")}\n`
}
