import { failureLine } from "../evidence/CommandHistory.ts"
import type { Evidence } from "../evidence/Evidence.ts"
import { fileLine, type SectionName, type SnapshotItem } from "../Snapshot.ts"
import { isIndex } from "./NameIndex.ts"

/** Selects the statements of an earlier snapshot that the next one carries on. */

/** Lines of an earlier snapshot that code writes anew each time. */
const rewritten =
  /^- (?:changed(?:, too)?:|other files that were named|seen, but not read|last written to |commands, latest first|read, but not changed|now \(|before that \(|next|last action|tests |types |lint |build |since (?:tests|types|lint|build)[ ,]|read, newest first|working directory|\[[^\]]+\] |… |names|messages of|\d+ messages of the user)/

/**
 * Returns a function that selects the statements of an earlier snapshot's section whose keys the new items do not have, newest
 * first. Files and failures are left out, because the evidence has them; so are lines that code writes anew each time.
 */
export const carriedTo = (
  evidence: Evidence,
  name: SectionName
): ((taken: ReadonlyArray<SnapshotItem>) => ReadonlyArray<SnapshotItem>) => {
  const earlier = (evidence.previous?.[name] ?? []).filter(
    (item) => !isIndex(item) && !rewritten.test(item.text) && !fileLine.test(item.text) && !failureLine.test(item.text)
  )
  return (taken) => {
    const keys = new Set(taken.map((known) => known.key))
    return earlier.filter(({ key }) => !keys.has(key))
  }
}
