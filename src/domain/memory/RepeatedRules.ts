/** Repeats sections of memory files to the model after a compression. */

import { firstUnits } from "../text/Bytes.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import type { MemoryBlock } from "./MemoryText.ts"

/** Which sections are repeated, and how many of their characters. */
export interface RepeatedRulesOptions {
  /** The headings of the sections, in any case. */
  readonly headings: ReadonlyArray<string>
  readonly chars: number
}

const heading = /^(#{1,6})[ \t]+(.*?)[ \t#]*$/
const fence = /^[ \t]*(?:```|~~~)/

/** The sections under these headings, each with its heading, up to the next heading of the same or a higher rank. */
export const sectionsUnder = (text: string, headings: ReadonlyArray<string>): ReadonlyArray<string> => {
  const titles = new Set(headings.map((each) => each.trim().toLowerCase()))
  const sections: Array<Array<string>> = []
  let rank = 0
  let isCode = false
  for (const line of text.split(/\r?\n/)) {
    const [, marks = "", title = ""] = (isCode ? null : heading.exec(line)) ?? []
    if (fence.test(line)) isCode = !isCode
    if (rank > 0 && marks !== "" && marks.length <= rank) rank = 0
    if (rank === 0 && marks !== "" && titles.has(title.toLowerCase())) {
      rank = marks.length
      sections.push([])
    }
    if (rank > 0) sections.at(-1)?.push(line)
  }
  return sections.map((lines) => lines.join("\n").trim())
}

/** Returns the message that repeats the sections. Undefined when no memory file contains any of them. */
export const repeatedRules = (
  blocks: ReadonlyArray<MemoryBlock>,
  { chars, headings }: RepeatedRulesOptions
): string | undefined => {
  const found = blocks.flatMap(({ shown, text }) =>
    sectionsUnder(text, headings).map((section) => `From ${shown}:\n\n${section}`)
  )
  if (found.length === 0) return undefined
  const text = found.join("\n\n")
  const kept = firstUnits(text, chars)
  const left = text.length - kept.length
  const rest = left === 0 ? "" : `\n[${left} more characters are in the memory above]`
  return `${runtimeMark} The conversation was compressed. These rules from the user's memory files still apply:\n\n${kept}${rest}`
}
