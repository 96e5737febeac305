import { Effect } from "effect"
import { type Compaction, type Figures, type Measure, sumAnswers } from "../../domain/evaluation/Measure.ts"
import { DroppedText, type Replacement } from "../../domain/evaluation/OneRecall.ts"
import { entryText } from "../../domain/evaluation/RecordedNames.ts"
import { relativeTo, SearchableText } from "../../domain/evaluation/WholeWords.ts"
import { eachItem } from "./Steps.ts"

/** Runs measures step by step, so that they can be interrupted. */

/** A text that replaces a conversation, and what one recall shows from it. */
export interface MeasuredText {
  readonly snapshot: string
  readonly context: string
  readonly recall: Replacement["recall"]
}

/** Prepares measures for a compaction. The result measures one text by all of them. */
export const prepareMeasures = Effect.fnUntraced(function* (measures: ReadonlyArray<Measure>, compaction: Compaction) {
  const dropped = new DroppedText(compaction.roots)
  yield* eachItem(compaction.log, (entry) => dropped.add(entryText(entry)))
  const prepared = yield* Effect.forEach(
    measures,
    Effect.fnUntraced(function* (measure) {
      const { questions, steps = [] } = measure.prepare(compaction, dropped)
      yield* eachItem(steps, (step) => step())
      return { measure, questions }
    })
  )
  const relative = relativeTo(compaction.roots)
  return Effect.fnUntraced(function* ({ context, recall, snapshot }: MeasuredText): Effect.fn.Return<Figures> {
    const replacement: Replacement = {
      snapshot: new SearchableText(snapshot, relative),
      context: new SearchableText(context, relative),
      recall
    }
    const figures = yield* Effect.forEach(prepared, ({ measure, questions }) =>
      eachItem(questions(replacement), (ask) => ask()).pipe(Effect.map((answers) => sumAnswers(measure, answers)))
    )
    return Object.assign({}, ...figures)
  })
})
