import type { Measure } from "./Measure.ts"
import { needsOf } from "./NextActions.ts"
import { DroppedText, OneRecall } from "./OneRecall.ts"

/**
 * Grounded actions and facts: whether what the agent needed for its next actions, and could only know from before, stands in
 * the context as whole words, or one recall away.
 */
export const groundedActions: Measure = {
  name: "grounded actions and facts",
  figures: [
    { key: "actionsGrounded", title: "actions", unit: "share" },
    { key: "actionsReachable", title: "+recall", unit: "share" },
    { key: "factsKept", title: "facts", unit: "share" },
    { key: "factsReachable", title: "+recall", unit: "share" }
  ],
  *prepare(compaction) {
    const { actions, facts } = yield* needsOf(compaction)
    const dropped = DroppedText.when(compaction)
    return function* (replacement) {
      const { context } = replacement
      const recall = new OneRecall(dropped, replacement, compaction.roots)
      const counts = { grounded: 0, reachable: 0, kept: 0, found: 0 }
      for (const names of actions) {
        const missing = names.filter(([name, kind]) => !context.has(name, kind))
        yield context.text.length / 4
        if (missing.length === 0) counts.grounded += 1
        else if (yield* recall.shows(missing)) counts.reachable += 1
      }
      for (const fact of facts) {
        yield context.text.length / 8
        if (context.has(...fact)) counts.kept += 1
        else if (yield* recall.shows([fact])) counts.found += 1
      }
      return {
        actionsGrounded: { part: counts.grounded, whole: actions.length },
        actionsReachable: { part: counts.grounded + counts.reachable, whole: actions.length },
        factsKept: { part: counts.kept, whole: facts.length },
        factsReachable: { part: counts.kept + counts.found, whole: facts.length }
      }
    }
  }
}
