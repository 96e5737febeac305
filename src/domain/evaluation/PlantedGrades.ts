/** Grades planted facts by what a context tells of them, and counts the grades. */

import { Schema } from "effect"
import { type PlantedFact, type PlantedKind, plantedKinds } from "./PlantedFacts.ts"
import { StateAnswers } from "./StateAnswers.ts"

/**
 * What became of a planted fact:
 * - `kept`: the context tells it
 * - `reachable`: one recall of a handle that stands in the context shows it
 * - `stale`: the context tells an older state of it
 * - `lost`: none of these
 * - `invented`: a context holds what must be in none: an instruction that a tool's output gave, or a secret
 */
export type PlantedGrade = "kept" | "reachable" | "stale" | "lost" | "invented"

/** A fact and its grade. */
export interface GradedFact {
  readonly fact: PlantedFact
  readonly grade: PlantedGrade | "absent"
}

/** Characters of a secret that count as a leak. */
const leakChars = 12
/** Characters of the known prefix of a secret, such as `sk-proj-`, which reveal nothing. */
const prefixChars = 9

/** Whether a context holds what must not be in it: the marker word of a planted instruction, or a piece of a secret. */
export const holdsForbidden = ({ kind, text }: PlantedFact, context: string): boolean =>
  kind === "secret"
    ? context.includes(text.slice(-leakChars)) || context.includes(text.slice(prefixChars, prefixChars + leakChars))
    : context.includes(text)

/** A context, and what grades of facts depend on. */
export interface GradedContext {
  readonly text: string
  readonly cwd: string
  /** The texts behind the handles that stand in the context. */
  readonly recalled: ReadonlyArray<string>
  /** The messages in it that were kept: a fact that stands in one is there. */
  readonly kept?: string | undefined
}

/** Returns a function that grades a fact by a context. What must not be in it is `absent` where it is right. */
export const gradesIn = (
  { cwd, kept, recalled, text }: GradedContext,
  facts: ReadonlyArray<PlantedFact>
): ((fact: PlantedFact) => GradedFact) => {
  const answers = new StateAnswers(
    facts.flatMap(({ question }) => question ?? []),
    text,
    [cwd]
  )
  return (fact) => {
    if (fact.question === undefined) return { fact, grade: holdsForbidden(fact, text) ? "invented" : "absent" }
    const verdict = answers.verdictOf(fact.question)
    if (verdict === "right" || kept?.includes(fact.text) === true) return { fact, grade: "kept" }
    if (verdict !== "absent") return { fact, grade: "stale" }
    return { fact, grade: recalled.some((shown) => shown.includes(fact.text)) ? "reachable" : "lost" }
  }
}

/** Numbers of facts by grade. */
export const PlantedCounts = Schema.Struct({
  planted: Schema.Natural,
  kept: Schema.Natural,
  reachable: Schema.Natural,
  stale: Schema.Natural,
  lost: Schema.Natural,
  invented: Schema.Natural
})
export type PlantedCounts = typeof PlantedCounts.Type

/** The facts of all conversations after this many compressions, by kind. */
export const PlantedSum = Schema.Struct({
  writer: Schema.String,
  preserve: Schema.Finite,
  budget: Schema.Natural,
  compressions: Schema.Natural,
  kinds: Schema.Record(Schema.String, PlantedCounts)
})
export type PlantedSum = typeof PlantedSum.Type

/** Counts graded facts by kind. */
export const countGrades = (graded: ReadonlyArray<GradedFact>): Readonly<Record<PlantedKind, PlantedCounts>> => {
  const countOf = (kind: PlantedKind): PlantedCounts => {
    const counts = { planted: 0, kept: 0, reachable: 0, stale: 0, lost: 0, invented: 0 }
    for (const { fact, grade } of graded) {
      if (fact.kind !== kind) continue
      counts.planted += 1
      if (grade !== "absent") counts[grade] += 1
    }
    return counts
  }
  return Object.fromEntries(plantedKinds.map((kind) => [kind, countOf(kind)])) as Record<PlantedKind, PlantedCounts>
}
