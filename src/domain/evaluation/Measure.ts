/**
 * The measures of `eval`. Each takes one compaction of a recording and a text that replaces the conversation before it, and
 * measures how much of what the agent needs is in that text.
 */

import { Schema } from "effect"
import type { Entry } from "../conversation/Conversation.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import type { DroppedText, Replacement } from "./OneRecall.ts"

/** One compaction of a recorded session. */
export interface Compaction {
  /** Everything recorded so far, including what earlier compactions dropped. */
  readonly log: ReadonlyArray<Entry>
  /** What the agent had in its window, with an earlier summary in the place of what it stands for. */
  readonly before: ReadonlyArray<Entry>
  /** What followed, until the next compaction. */
  readonly after: ReadonlyArray<Entry>
  /** The working directories of the session: paths below them are compared in relative form. */
  readonly roots: ReadonlyArray<string>
}

/** A part of a whole. Sums over compactions add parts and wholes; a whole of 0 says that there was nothing to measure. */
export const Ratio = Schema.Struct({ part: Schema.Finite, whole: Schema.Finite })
export type Ratio = typeof Ratio.Type

/** Nothing was measured. */
export const noRatio: Ratio = { part: 0, whole: 0 }

/** One column of the report. */
export interface Figure {
  /** The key in `--json`, unique among all measures. */
  readonly key: string
  readonly title: string
  /** `share`: 0 to 1. `mean`: the parts are amounts, such as tokens. */
  readonly unit: "share" | "mean"
}

/** The ratios of a measure, by the key of the figure. */
export const Figures = Schema.Record(Schema.String, Ratio)
export type Figures = typeof Figures.Type

/** Asks a replacement the questions of a measure. Each answer is what it adds to the figures. */
export type AskQuestions = (replacement: Replacement) => SlicedWork<ReadonlyArray<Figures>>

/** A measure. To add one, write a value of this type and add it to `measures` in `Measures.ts`. */
export interface Measure {
  readonly figures: ReadonlyArray<Figure>
  /** Reads one compaction, and returns what asks about it. `dropped` has all of its log. */
  readonly prepare: (compaction: Compaction, dropped: DroppedText) => SlicedWork<AskQuestions>
}

/** The ratio of one question: whether it is answered so. */
export const shareOf = (isSo: boolean): Ratio => ({ part: isSo ? 1 : 0, whole: 1 })

/** Returns the sum of ratios. */
export const sumRatios = (ratios: Iterable<Ratio>): Ratio => {
  let part = 0
  let whole = 0
  for (const ratio of ratios) {
    part += ratio.part
    whole += ratio.whole
  }
  return { part, whole }
}

/** Returns the sums of figures, by their keys. */
export const sumFigures = (all: ReadonlyArray<Figures>): Figures =>
  Object.fromEntries(
    [...new Set(all.flatMap(Object.keys))].map((key) => [key, sumRatios(all.flatMap((one) => one[key] ?? []))])
  )

/** Returns the figures of a measure: the sums of the answers. Where no answer adds to one of its figures, nothing was measured. */
export const sumAnswers = ({ figures }: Measure, answers: ReadonlyArray<Figures>): Figures =>
  sumFigures([...figures.map(({ key }) => ({ [key]: noRatio })), ...answers])

/** Returns part by whole; undefined for a whole of 0. */
export const valueOf = ({ part, whole }: Ratio): number | undefined => (whole === 0 ? undefined : part / whole)
