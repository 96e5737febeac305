/** Selects the statements of an earlier snapshot that the next one carries on. */

import type { Evidence } from "../evidence/Evidence.ts"
import {
  emptySnapshot,
  fileLine,
  isUnconfirmed,
  type SectionName,
  type SnapshotItem,
  userWordsIn
} from "../Snapshot.ts"
import { newestFirst, withinBudget } from "./Budget.ts"
import { isIndex } from "./NameIndex.ts"
import { repeating } from "./WrittenSections.ts"

/** Lines of an earlier snapshot that code writes anew each time, from the log or from the snapshot with which it begins. */
const rewritten =
  /^- (?:changed(?:, too)?:|other files that were named|seen, but not read|last written to |commands, latest first|read, but not changed|now \(|before that \(|next:|last action \(|(?:tests|types|lint|build) (?:passed|failed): |since (?:tests|types|lint|build)[ ,]|read, newest first|working directory|\[[^\]]+\] |… |names(?::| used|, by)|messages (?:left out|of the user)|\d+ messages of the user|unresolved failure of [^\n]*\(e\d|refused by (?:the user|a rule): )/

/** Lines that tell of one entry, which code writes anew where the log has it. */
const logged =
  /^- (?:commit [0-9a-f]+: |with message e\d+ came |task text, [^\n]*\(e\d|the user said [^\n]*\(e\d+\) to: |another agent reported \(e|the agent \(e|[^\n]* failed \(e\d+\): )/

/** Matches what is said of a summary by another program, with its entry. */
const ofSummary = /^- (?:the goal, as an earlier summary has it|an earlier summary) \((e\d+)/

/**
 * Returns a function that selects, within a budget, the statements of an earlier snapshot's section that the log does not have: what a
 * model wrote, and what it said of a summary by another program, without those that a model repeats now (`written`) or whose keys the new
 * items (`taken`) have. The snapshot with which the log begins is in the log.
 */
export const carriedTo = (
  { begun = emptySnapshot, previous = emptySnapshot, summaries }: Evidence,
  name: SectionName,
  written: ReadonlyArray<SnapshotItem>
): ((taken: ReadonlyArray<SnapshotItem>, budget: number) => ReadonlyArray<SnapshotItem>) => {
  const known = new Set(begun[name].map(({ text }) => text))
  const isRepeated = repeating(written)
  const earlier = previous[name].filter(
    (item) =>
      !isIndex(item) &&
      !isRepeated(item) &&
      !rewritten.test(item.text) &&
      !summaries.some(({ entry }) => entry === ofSummary.exec(item.text)?.[1]) &&
      (known.has(item.text) || !(logged.test(item.text) || fileLine.test(item.text))) &&
      userWordsIn(item.text).length === 0
  )
  // Requests stand oldest first: the first say what the work is for and the latest where it is.
  const [first, ...words] = name === "overall_goal" ? earlier.filter(isUnconfirmed) : []
  const byWorth = new Set([
    ...earlier.filter((item) => item !== first && !words.includes(item)),
    ...(first === undefined ? [] : [first]),
    ...newestFirst(words)
  ])
  return (taken, budget) => {
    const keys = new Set(taken.map(({ key }) => key))
    // Words of another log have the keys of its messages.
    const left = [...byWorth].filter((item) => isUnconfirmed(item) || !keys.has(item.key))
    const kept = new Set(withinBudget(left, budget))
    return earlier.filter((item) => kept.has(item))
  }
}
