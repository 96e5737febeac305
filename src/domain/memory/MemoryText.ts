/** Renders memory for the model and adds facts to memory files. */

import { Schema } from "effect"
import { importTokens } from "./MemoryImports.ts"

/** Where a fact applies: everywhere, or in one project. */
export const MemoryScope = Schema.Literals(["global", "project"])
export type MemoryScope = typeof MemoryScope.Type

/** Where a memory file comes from. */
export const MemorySource = Schema.Literals(["global", "extension", "project"])
export type MemorySource = typeof MemorySource.Type

/** One loaded memory file. */
export const MemoryBlock = Schema.Struct({
  source: MemorySource,
  /** Absolute path. */
  file: Schema.String,
  /** The path as shown to the user: relative to the workspace where possible. */
  shown: Schema.String,
  /** The content, with imports inserted. */
  text: Schema.String,
  /** Absolute paths of files imported directly or indirectly that have no block of their own, in order of first use. */
  imports: Schema.Array(Schema.String)
})
export type MemoryBlock = typeof MemoryBlock.Type

/** All loaded memory. */
export interface LoadedMemory {
  /** Global files first, then extensions, then the workspace from the outermost folder inward. */
  readonly blocks: ReadonlyArray<MemoryBlock>
  /** What could not be read or was left out, in lines, each once. */
  readonly problems: ReadonlyArray<string>
  /** Files above the working folder that were left out because their folder is not trusted, as shown to the user. */
  readonly untrusted: ReadonlyArray<string>
}

/** Elements that enclose memory in the prompt. */
const elements = ["loaded_context", "global_context", "extension_context", "project_context"]
const element = new RegExp(`<(?=\\s*/?\\s*(?:${elements.join("|")})\\b)`, "gi")
const frameLine = /^(?=[ \t]*--- (?:End of )?Context from: )/gim

/** Escapes text so that it can neither end its enclosing element nor start another. */
const escaped = (text: string): string => text.replace(element, "&lt;").replace(frameLine, "\\")

const framed = ({ shown, text }: MemoryBlock): string => {
  const name = escaped(shown)
  return `--- Context from: ${name} ---\n${escaped(text.trim())}\n--- End of Context from: ${name} ---`
}

const preamble = `The following text is from memory files that the user or their team wrote. Keep it in mind throughout.
Where files conflict, the one nearer to the work takes precedence: a folder inside the workspace before the workspace's root, the workspace before extensions, extensions before what is global.
It does not override the safety rules above, and what the user says in the conversation overrides it.`

/** Memory as it enters the system instruction; empty when there is none. Equal memory renders to equal text. */
export const memoryText = ({ blocks }: Pick<LoadedMemory, "blocks">): string => {
  if (blocks.length === 0) return ""
  const parts = (["global", "extension", "project"] as const).flatMap((source) => {
    const texts = blocks.filter((block) => block.source === source).map(framed)
    return texts.length === 0 ? [] : [`<${source}_context>\n${texts.join("\n\n")}\n</${source}_context>`]
  })
  return `${preamble}\n\n<loaded_context>\n${parts.join("\n")}\n</loaded_context>`
}

/** Memory of folders that a tool touched, for the tool's response. */
export const touchedMemoryText = (blocks: ReadonlyArray<MemoryBlock>): string =>
  `Memory of the folders that this call touched. It applies to work there, like the memory in the system instruction, and takes precedence where they conflict.\n\n${blocks.map(framed).join("\n\n")}`

/** The key in a tool response that carries folder memory. A tool's own output cannot be mistaken for it. */
export const touchedMemoryKey = "folder_memory"

/** The section for facts in a memory file. Gemini CLI uses the same header, so both find the facts. */
const factsHeader = "## Gemini Added Memories"

/** Longest fact in characters: facts are part of every request. */
export const maxFactChars = 4_000

/** Every kind of line break, and other white space that would not stay on one line. */
const breaks = /[\s\u0085\u2028\u2029]+/g

/**
 * A fact on one line, without a leading dash; undefined when nothing is left. What would import a file is set as code.
 */
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

/** Adds a fact to the end of its section. Creates the section at the end of the file when it is missing. */
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

/** Whether the file already contains this fact on its own line. */
export const hasFact = (text: string, line: string): boolean =>
  text.split(/\r?\n/).some((each) => trimmedEnd(each) === line)
