/**
 * Adds what a model wrote to the sections that code writes. The log decides about files, checks and the user's words; the
 * model about intent, reasons and the next step. Nothing is said twice.
 */

import { firstUnits } from "../../text/Bytes.ts"
import type { Evidence } from "../evidence/Evidence.ts"
import {
  changeItem,
  fileLine,
  type SectionName,
  sectionNames,
  type Snapshot,
  type SnapshotItem,
  snapshotOf,
  userWordsIn
} from "../Snapshot.ts"
import { partOf, type SectionPart } from "./Budget.ts"

/** Sections in which the model's statements come first. */
const byJudgement: ReadonlySet<SectionName> = new Set(["overall_goal", "key_knowledge", "task_state"])
/** Sections about files, in which a statement about a file of the log is the log's. */
const aboutFiles: ReadonlySet<SectionName> = new Set(["artifact_trail", "file_system_state"])

const firstLine = ({ text }: SnapshotItem): string => text.split("\n", 1)[0] ?? ""

const wordsOf = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) ?? [])

/** Two statements say the same when one has this share of the other's words. */
const sameShare = 0.8

/** Returns a function that tells whether a statement says no more than one of these. */
export const repeating = (items: ReadonlyArray<SnapshotItem>): ((item: SnapshotItem) => boolean) => {
  const said = items.map(({ text }) => wordsOf(text))
  return ({ text }) => {
    const words = [...wordsOf(text)]
    const isIn = (other: ReadonlySet<string>) =>
      words.filter((word) => other.has(word)).length >= words.length * sameShare
    return words.length >= 4 && said.some(isIn)
  }
}

const success = /\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|clean)\b/i
const trouble = /\b(?:not?|never|fail\w*|broken|red|until|should|must|make|get)\b|n't\b/i
const checkNames = { tests: /\btests?\b/i, types: /\btypes?\b|type-?check/i, lint: /\blint/i, build: /\bbuilds?\b/i }

/** Whether a statement claims that a check passes whose last run in the log failed. */
const isRefuted = (text: string, { checks }: Evidence): boolean =>
  success.test(text) &&
  !trouble.test(text) &&
  [...checks].some(([kind, { ok }]) => ok === false && checkNames[kind].test(text))

/** Returns the snapshot with long statements cut at the end of a line or a word. Words of the user stay whole. */
export const clippedStatements = (written: Snapshot, maxTokens: number): Snapshot => {
  // A token has about 3.5 characters of prose.
  const maxChars = Math.floor(maxTokens * 3.5)
  const cut = (text: string): string => {
    const start = firstUnits(text, maxChars)
    const end = Math.max(start.lastIndexOf("\n"), start.lastIndexOf(" "))
    return `${start.slice(0, end < maxChars / 2 ? start.length : end)} …`
  }
  return snapshotOf((name) =>
    written[name].map((item) =>
      item.text.length <= maxChars || userWordsIn(item.text).length > 0 ? item : changeItem(item, cut)
    )
  )
}

/** Returns the parts with the statements of a model that add to those of the log and do not contradict it. */
export const writtenParts = (written: Snapshot, evidence: Evidence): ReadonlyArray<SectionPart> => {
  const files = new Set([...evidence.files.keys()].map((path) => path.toLowerCase()))
  return sectionNames.map((section) => {
    const usable = written[section].filter(
      (item) =>
        !fileLine.test(item.text) &&
        !(aboutFiles.has(section) && files.has(item.key.toLowerCase())) &&
        !isRefuted(item.text, evidence)
    )
    const part = partOf(section, "written", (_, before) => {
      if (usable.length === 0) return []
      const own = sectionNames.flatMap(before)
      const lines = new Set(own.map(firstLine))
      const keys = new Set(own.map(({ key }) => key))
      const isRepeated = repeating(own)
      return usable.filter((item) => !lines.has(firstLine(item)) && !keys.has(item.key) && !isRepeated(item))
    })
    return { ...part, isFirst: byJudgement.has(section) }
  })
}
