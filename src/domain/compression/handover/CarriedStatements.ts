import type { Evidence } from "../evidence/Evidence.ts"
import { fileLine, type SectionName, type SnapshotItem, userWordsIn } from "../Snapshot.ts"
import { isIndex } from "./NameIndex.ts"

/** Selects the statements of an earlier snapshot that the next one carries on. */

/** Lines of an earlier snapshot that code writes anew each time, from the log. */
const rewritten =
  /^- (?:changed(?:, too)?:|other files that were named|seen, but not read|last written to |commands, latest first|read, but not changed|now \(|before that \(|next|last action|tests |types |lint |build |since (?:tests|types|lint|build)[ ,]|read, newest first|working directory|\[[^\]]+\] |… |names|messages of|\d+ messages of the user|unresolved failure of |refused by |commit \w+: |with message e\d+ came |task text, |the user said |another agent reported \(|the agent \(e|.* failed \(e\d+\): )/

/**
 * Returns a function that selects the statements of an earlier snapshot's section that the log does not have: what a model wrote, and
 * what it said of a summary by another program, without those whose keys the new items have.
 */
export const carriedTo = (
  { previous }: Evidence,
  name: SectionName
): ((taken: ReadonlyArray<SnapshotItem>) => ReadonlyArray<SnapshotItem>) => {
  const earlier = (previous?.[name] ?? []).filter(
    (item) =>
      !isIndex(item) && !rewritten.test(item.text) && !fileLine.test(item.text) && userWordsIn(item.text).length === 0
  )
  return (taken) => {
    const keys = new Set(taken.map((known) => known.key))
    return earlier.filter(({ key }) => !keys.has(key))
  }
}
