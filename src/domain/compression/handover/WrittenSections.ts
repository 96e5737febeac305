import { firstUnits } from "../../text/Bytes.ts"
import type { Evidence } from "../evidence/Evidence.ts"
import {
  changeItem,
  emptySnapshot,
  fileLine,
  type SectionName,
  sectionNames,
  type Snapshot,
  type SnapshotItem,
  userWordsIn
} from "../Snapshot.ts"

/**
 * Merges what a model wrote into the sections that code wrote. The log decides about files, checks and the user's words; the
 * model about intent, reasons and the next step. Nothing is said twice.
 */

/** Sections in which the model's statements come first. */
const byJudgement: ReadonlySet<SectionName> = new Set(["overall_goal", "key_knowledge", "task_state"])
/** Sections about files, in which a statement about a file of the log is the log's. */
const aboutFiles: ReadonlySet<SectionName> = new Set(["artifact_trail", "file_system_state"])

const firstLine = ({ text }: SnapshotItem): string => text.split("\n", 1)[0] ?? ""

const wordsOf = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) ?? [])

/** Two statements say the same when one has this share of the other's words. */
const sameShare = 0.8

const saysNoMore = (words: ReadonlySet<string>, than: ReadonlySet<string>): boolean => {
  if (words.size < 4) return false
  let shared = 0
  for (const word of words) if (than.has(word)) shared += 1
  return shared >= words.size * sameShare
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
  const clipped: Record<SectionName, ReadonlyArray<SnapshotItem>> = { ...written }
  for (const name of sectionNames) {
    clipped[name] = written[name].map((item) =>
      item.text.length <= maxChars || userWordsIn(item.text).length > 0 ? item : changeItem(item, cut)
    )
  }
  return clipped
}

/** Returns the statements of the model that add to those of the log and do not contradict it. */
const usable = (own: Snapshot, written: Snapshot, evidence: Evidence): Snapshot => {
  const ownItems = sectionNames.flatMap((name) => own[name])
  const lines = new Set(ownItems.map(firstLine))
  const texts = ownItems.map(({ text }) => wordsOf(text))
  const keys = new Set(ownItems.map(({ key }) => key))
  const files = new Set([...evidence.files.keys()].map((path) => path.toLowerCase()))
  const kept: Record<SectionName, ReadonlyArray<SnapshotItem>> = { ...emptySnapshot }
  for (const name of sectionNames) {
    kept[name] = written[name].filter((item) => {
      if (fileLine.test(item.text) || lines.has(firstLine(item))) return false
      if (aboutFiles.has(name) && files.has(item.key.toLowerCase())) return false
      if (keys.has(item.key) && !replaced.has(item.key) && !isCarried(item.key, name, evidence)) return false
      const words = wordsOf(item.text)
      return !isRefuted(item.text, evidence) && !texts.some((text) => saysNoMore(words, text))
    })
  }
  return kept
}

/** Keys of statements by code that a model's statement may replace: the next step, which code only quotes from the agent. */
const replaced: ReadonlySet<string> = new Set(["next"])

/** Whether the statement with this key came from an earlier snapshot. */
const isCarried = (key: string, name: SectionName, { previous }: Evidence): boolean =>
  byJudgement.has(name) && previous !== undefined && previous[name].some((item) => item.key === key)

/** Returns the sections of code and model together. */
export const mergeWritten = (own: Snapshot, written: Snapshot, evidence: Evidence): Snapshot => {
  if (sectionNames.every((name) => written[name].length === 0)) return own
  const added = usable(own, written, evidence)
  const merged: Record<SectionName, ReadonlyArray<SnapshotItem>> = { ...emptySnapshot }
  for (const name of sectionNames) {
    const keys = new Set(added[name].map(({ key }) => key))
    const texts = added[name].map(({ text }) => wordsOf(text))
    const known = own[name].filter(({ key, text }) => {
      if (keys.has(key)) return false
      return !isCarried(key, name, evidence) || !texts.some((words) => saysNoMore(wordsOf(text), words))
    })
    merged[name] = byJudgement.has(name) ? [...added[name], ...known] : [...known, ...added[name]]
  }
  return merged
}
