import { type Measure, shareOf } from "./Measure.ts"
import { type NeededName, needsOf } from "./NextActions.ts"
import { OneRecall } from "./OneRecall.ts"

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
  prepare(compaction, dropped) {
    const { needs, steps } = needsOf(compaction)
    return {
      steps,
      questions(replacement) {
        const { actions, facts } = needs()
        const recall = new OneRecall(dropped, replacement, compaction.roots)
        const ask = (names: ReadonlyArray<NeededName>, here: string, reachable: string) => () => {
          const missing = names.filter((name) => !replacement.context.has(...name))
          const isHere = missing.length === 0
          return { [here]: shareOf(isHere), [reachable]: shareOf(isHere || recall.shows(missing)) }
        }
        return [
          ...actions.map((names) => ask(names, "actionsGrounded", "actionsReachable")),
          ...facts.map((fact) => ask([fact], "factsKept", "factsReachable"))
        ]
      }
    }
  }
}
