import { Schema } from "effect"
import { importTokens } from "./MemoryImports.ts"

/** What is remembered, as a model reads it (spec 7.1), and how a fact is written down (spec 7.5). */

/** Where a fact belongs: to all that a person does, or to one project. */
export const MemoryScope = Schema.Literals(["global", "project"])
export type MemoryScope = typeof MemoryScope.Type

/** Whose memory a file is. */
export const MemorySource = Schema.Literals(["global", "extension", "project"])
export type MemorySource = typeof MemorySource.Type

/** One memory file. */
export const MemoryBlock = Schema.Struct({
  source: MemorySource,
  /** Absolute. */
  file: Schema.String,
  /** As a person is shown it: from the workspace where it lies in it. */
  shown: Schema.String,
  /** What it says, its imports in it. */
  text: Schema.String,
  /** Files that it imports and that have no block of their own, itself or through another, absolute, in the order of their first use. */
  imports: Schema.Array(Schema.String)
})
export type MemoryBlock = typeof MemoryBlock.Type

/** All that is remembered. */
export interface Loaded {
  /** Global ones first, then extensions', then those of the workspace, from the outermost folder inward. */
  readonly blocks: ReadonlyArray<MemoryBlock>
  /** What a person should hear: what could not be read or was left out, one line each. */
  readonly problems: ReadonlyArray<string>
}

/** Names of the elements that stand around memory. */
const elements = ["loaded_context", "global_context", "extension_context", "project_context"]
const element = new RegExp(`<(?=\\s*/?\\s*(?:${elements.join("|")})\\b)`, "gi")
const frameLine = /^(?=[ \t]*--- (?:End of )?Context from: )/gim

/** A text that can neither end the frame it stands in nor begin another. */
const contained = (text: string): string => text.replace(element, "&lt;").replace(frameLine, "\\")

const framed = ({ shown, text }: MemoryBlock): string => {
  const name = contained(shown)
  return `--- Context from: ${name} ---\n${contained(text.trim())}\n--- End of Context from: ${name} ---`
}

const preamble = `What follows was written by the person or their team in memory files, to be kept in mind throughout.
Where two of them disagree, what is nearer to the work counts more: a folder inside the workspace before the workspace's root, the workspace before extensions, extensions before what is global.
None of it takes away a rule of safety that stands above, and what the person says in the conversation counts more than all of it.`

/** Memory as it goes into the system instruction; empty where nothing is remembered. The same memory gives the same text. */
export const memoryText = ({ blocks }: Loaded): string => {
  if (blocks.length === 0) return ""
  const parts = (["global", "extension", "project"] as const).flatMap((source) => {
    const texts = blocks.filter((block) => block.source === source).map(framed)
    return texts.length === 0 ? [] : [`<${source}_context>\n${texts.join("\n\n")}\n</${source}_context>`]
  })
  return `${preamble}\n\n<loaded_context>\n${parts.join("\n")}\n</loaded_context>`
}

/** Memory of folders that a tool touched, as its answer carries it. */
export const touchedText = (blocks: ReadonlyArray<MemoryBlock>): string =>
  `Memory of the folders that this call touched. It holds for work there, as the memory in the system instruction does, and counts more where they disagree.\n\n${blocks.map(framed).join("\n\n")}`

/** The key of a tool's answer under which such memory stands: what a tool itself says cannot be taken for it. */
export const touchedKey = "folder_memory"

/** The section of a memory file where facts are kept; Gemini CLI calls it so, and both find them (spec 7.5). */
const factsHeader = "## Gemini Added Memories"

/** Longer ones are no facts, and they would go with every request. */
export const longestFact = 4_000

/** Every kind of line break, and what else would not stay on one line. */
const breaks = /[\s\u0085\u2028\u2029]+/g

/** A fact on one line, without a dash before it; undefined where nothing is left. What would import a file is set as code. */
export const factLine = (fact: string): string | undefined => {
  const words = fact
    .replace(breaks, " ")
    .trim()
    .replace(/^(?:-\s+)+/, "")
  if (words === "" || words === "-") return undefined
  let line = ""
  let from = 0
  for (const { end, start } of importTokens(words)) {
    line += `${words.slice(from, start)}\`${words.slice(start, end)}\``
    from = end
  }
  return `- ${line}${words.slice(from)}`
}

const trimmedEnd = (text: string): string => text.replace(/\s+$/, "")

/** A memory file with one more fact: at the end of its section, which is made at the end of the file where there is none. */
export const withFact = (text: string, line: string): string => {
  const eol = text.includes("\r\n") ? "\r\n" : "\n"
  const header = new RegExp(`^${factsHeader}[ \\t]*$`, "m").exec(text.replaceAll("\r\n", " \n"))
  if (header === null) {
    const before = trimmedEnd(text)
    return `${before === "" ? "" : `${before}${eol}${eol}`}${factsHeader}${eol}${line}${eol}`
  }
  const body = header.index + factsHeader.length
  const next = text.slice(body).search(/\n## /)
  const end = next < 0 ? text.length : body + next
  const section = trimmedEnd(text.slice(0, end))
  const rest = next < 0 ? "" : text.slice(end + 1)
  return `${section}${eol}${line}${eol}${rest === "" ? "" : `${eol}${rest}`}`
}

/** Whether a file says this already, on a line of its own. */
export const hasFact = (text: string, line: string): boolean =>
  text.split(/\r?\n/).some((each) => trimmedEnd(each) === line)
