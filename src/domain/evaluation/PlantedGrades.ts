import { Schema } from "effect"
import { type PlantedFact, type PlantedKind, plantedKinds } from "./PlantedFacts.ts"
import { StateAnswers } from "./StateAnswers.ts"

/** Grades planted facts by what a context tells of them, and counts the grades. */

/**
 * What became of a planted fact:
 * - `kept`: the context tells it
 * - `reachable`: one recall of a handle that stands in the context shows it
 * - `stale`: the context tells an older state of it
 * - `lost`: none of these
 * - `invented`: a context holds what must be in none: an instruction that a tool's output gave, or a secret
 */
const plantedGrades = ["kept", "reachable", "stale", "lost", "invented"] as const
export type PlantedGrade = (typeof plantedGrades)[number]

/** A fact and its grade. */
export interface GradedFact {
  readonly fact: PlantedFact
  readonly grade: PlantedGrade | "absent"
}

/** Whether a fact must be in no snapshot. */
export const isForbidden = ({ kind }: PlantedFact): boolean => kind === "instruction" || kind === "secret"

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
  /** The text without line ends and tags (`readContext`). */
  readonly flatText: string
  readonly cwd: string
  /** The texts behind the handles that stand in the context. */
  readonly recalled: ReadonlyArray<string>
  /** The messages in it that were kept: a fact that stands in one is there. */
  readonly kept?: string | undefined
}

/** Grades a fact by a context. What must not be in it is `absent` where it is right. */
export const gradeFact = (fact: PlantedFact, { cwd, flatText, kept, recalled, text }: GradedContext): GradedFact => {
  if (isForbidden(fact)) return { fact, grade: holdsForbidden(fact, text) ? "invented" : "absent" }
  const { question } = fact
  const verdict =
    question !== undefined
      ? new StateAnswers([question], text, [cwd]).verdictOf(question)
      : flatText.includes(fact.text)
        ? "right"
        : "absent"
  if (verdict === "right" || kept?.includes(fact.text) === true) return { fact, grade: "kept" }
  if (verdict !== "absent") return { fact, grade: "stale" }
  return { fact, grade: recalled.some((shown) => shown.includes(fact.text)) ? "reachable" : "lost" }
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
    const own = graded.filter(({ fact }) => fact.kind === kind)
    const of = (grade: PlantedGrade): number => own.filter((each) => each.grade === grade).length
    return {
      planted: own.length,
      kept: of("kept"),
      reachable: of("reachable"),
      stale: of("stale"),
      lost: of("lost"),
      invented: of("invented")
    }
  }
  return Object.fromEntries(plantedKinds.map((kind) => [kind, countOf(kind)])) as Record<PlantedKind, PlantedCounts>
}
