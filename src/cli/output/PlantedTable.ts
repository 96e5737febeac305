import { plantedKinds } from "../../domain/evaluation/PlantedFacts.ts"
import type { PlantedSum } from "../../domain/evaluation/PlantedGrades.ts"
import * as Output from "./Output.ts"

/** The table of planted facts: a row for each kind, with its grades after each number of compressions. */

/** Returns the sums as text, one table for each writer and share that was kept. */
export const describePlanted = (sums: ReadonlyArray<PlantedSum>): string => {
  const rows: Array<ReadonlyArray<string>> = []
  for (const { budget, compressions, kinds, preserve, writer } of sums) {
    const title = `planted: ${writer} ${preserve === 0 ? "alone" : `keep ${preserve}`} ${Output.number(budget)}`
    const times = Output.plural(compressions, "compression")
    rows.push([`${title}, ${times}`, "planted", "kept", "reachable", "stale", "lost", "invented"])
    for (const kind of plantedKinds) {
      const counts = kinds[kind]
      if (counts === undefined) continue
      const { invented, kept, lost, planted, reachable, stale } = counts
      rows.push([`  ${kind}`, ...[planted, kept, reachable, stale, lost, invented].map(Output.number)])
    }
  }
  return Output.table(rows, "lrrrrrr")
}
