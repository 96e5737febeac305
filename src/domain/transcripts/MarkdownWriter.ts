import { firstUnits } from "../Bytes.ts"
import { type Content, isCall, isMedia, isResponse, isText, outputText, type Part } from "../Content.ts"
import { type Conversation, entries, type Entry } from "../Conversation.ts"

/** A conversation as Markdown, for reading. It cannot be read back: the formats in `Transcript.ts` can. */

/** Lines and characters that are shown of one tool output or one call's arguments. */
const maxLines = 40
const maxCharacters = 8_000

/** Text without the characters a terminal would act on when the file is printed there. */
const plain = (text: string): string =>
  text.replace(/\r\n?/g, "\n").replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu, "")

/** A fenced block. The fence is longer than any run of backticks in the text. */
const fenced = (text: string, language: string): string => {
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2)
  const fence = "`".repeat(longest + 1)
  return `${fence}${language}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`
}

/** A block with the beginning of a long text, and a line that says how much is missing. */
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

const partText = (part: Part): string | undefined => {
  if (isText(part)) return part.text.trim() === "" ? undefined : plain(part.text)
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
  if (author === "summary") return "Summary of earlier messages"
  if (author === "program") return "Program"
  if (content.role === "model") return "Model"
  return content.parts.every(isResponse) ? "Tools" : "User"
}

const sectionOf = (content: Content): string | undefined => {
  const parts = content.parts.flatMap((part) => partText(part) ?? [])
  return parts.length === 0 ? undefined : parts.join("\n\n")
}

/** Writes every message of the log under the name of its author; long tool outputs are shown by their beginning. */
export const writeMarkdown = (conversation: Conversation, title: string): string => {
  const sections = entries(conversation).flatMap((entry) => {
    const text = entry.author === "environment" ? undefined : sectionOf(entry.content)
    return text === undefined ? [] : [`## ${heading(entry)}\n\n${text}`]
  })
  return `${[`# ${plain(title).replaceAll("\n", " ")}`, ...sections].join("\n\n")}\n`
}
