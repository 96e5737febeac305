/** Compresses a conversation with planted facts repeatedly, and grades which facts survive. Calls no model. */

import { Effect } from "effect"
import { defaultPolicy } from "../../domain/compression/strategies/Policy.ts"
import type { StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import { mentions } from "../../domain/content/Handle.ts"
import { view } from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { shownText } from "../../domain/evaluation/CompactionPoints.ts"
import { maxRecallChars } from "../../domain/evaluation/OneRecall.ts"
import { plantFacts } from "../../domain/evaluation/PlantedFacts.ts"
import { type GradedFact, countGrades, gradesIn, holdsForbidden } from "../../domain/evaluation/PlantedGrades.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { compress, entriesOf, knownConversation, textBehind, withEntries } from "../conversation/KnownConversation.ts"

/** Options of a run. */
export interface PlantedOptions {
  readonly seed: number
  readonly strategy: StrategyName
  /** Tokens of a snapshot. */
  readonly budget: number
  /** The share of the conversation's end that is kept. */
  readonly preserve: number
}

/** The facts that were planted so far, graded after this many compressions. */
export interface PlantedCheck {
  readonly compressions: number
  readonly graded: ReadonlyArray<GradedFact>
  /** The context after the latest compression. */
  readonly context: string
}

/** The facts are graded after this many compressions. */
export const plantedChecks: ReadonlyArray<number> = [1, 3, 10, 20]

/** Runs one conversation. A fact that no snapshot may contain counts from the first snapshot that contains it. */
export const runPlanted = Effect.fn("PlantedRun.run")(function* ({ budget, preserve, seed, strategy }: PlantedOptions) {
  const { cwd, facts, rounds } = plantFacts(seed)
  const policy = {
    ...defaultPolicy,
    strategy,
    preserve,
    minGain: 0,
    ladder: false,
    snapshotBudget: TokenCount.make(budget)
  }
  const invented = new Set<(typeof facts)[number]>()
  const checks: Array<PlantedCheck> = []
  let known = knownConversation()
  for (const [round, drafts] of rounds.entries()) {
    known = withEntries(known, yield* entriesOf(known, drafts))
    const { after, outcome } = yield* compress(known, { policy, forced: true, cwd })
    known = { ...after, memory: freshMemory }
    const snapshot = outcome._tag === "Compressed" ? outcome.snapshot : ""
    const planted = facts.filter(({ from, until = rounds.length }) => from <= round && round < until)
    for (const fact of planted) if (fact.question === undefined && holdsForbidden(fact, snapshot)) invented.add(fact)
    if (!plantedChecks.includes(round + 1)) continue
    const shown = view(known.conversation)
    const context = shownText(shown)
    const recalled = [...new Set(mentions(context))].flatMap(
      (handle) => textBehind(known, handle)?.slice(0, maxRecallChars) ?? []
    )
    const kept = shownText(shown.filter(({ entry }) => entry.author !== "summary"))
    const gradeOf = gradesIn({ text: context, cwd, recalled, kept }, planted)
    const graded = yield* Work.run(
      Work.eachItem(planted, (fact): GradedFact =>
        // A kept message may contain what a snapshot must not.
        fact.question === undefined ? { fact, grade: invented.has(fact) ? "invented" : "absent" } : gradeOf(fact)
      )
    )
    checks.push({ compressions: round + 1, graded, context })
  }
  return checks
})

/** Runs this many conversations, from the seed on, and sums the grades. */
export const sumPlanted = Effect.fn("PlantedRun.sum")(function* (count: number, options: PlantedOptions) {
  const seeds = Array.from({ length: count }, (_, index) => options.seed + index)
  const runs = yield* Effect.forEach(seeds, (seed) => runPlanted({ ...options, seed }))
  const { budget, preserve, strategy: writer } = options
  return plantedChecks.map((compressions) => {
    const graded = runs.flat().flatMap((check) => (check.compressions === compressions ? check.graded : []))
    return { writer, preserve, budget, compressions, kinds: countGrades(graded) }
  })
})
