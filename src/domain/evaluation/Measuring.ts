/** Measures texts by all measures. */

import { entryText } from "../compression/Anchors.ts"
import { eachItem, type SlicedWork } from "../text/SlicedWork.ts"
import { type AskQuestions, type Compaction, type Figures, type Measure, sumAnswers } from "./Measure.ts"
import { DroppedText, type Replacement } from "./OneRecall.ts"
import { relativeTo, SearchableText } from "./WholeWords.ts"

/** A text that replaces a conversation, and what one recall shows from it. */
export interface MeasuredText {
  readonly snapshot: string
  readonly context: string
  readonly recall: Replacement["recall"]
}

/** Prepares measures for a compaction. The result measures one text by all of them. */
export function* prepareMeasures(
  measures: ReadonlyArray<Measure>,
  compaction: Compaction
): SlicedWork<(text: MeasuredText) => SlicedWork<Figures>> {
  const dropped = new DroppedText(compaction.roots)
  yield* eachItem(compaction.log, (entry) => dropped.add(entryText(entry)))
  const prepared: Array<readonly [Measure, AskQuestions]> = []
  for (const measure of measures) prepared.push([measure, yield* measure.prepare(compaction, dropped)])
  const relative = relativeTo(compaction.roots)
  return function* ({ context, recall, snapshot }) {
    const replacement: Replacement = {
      snapshot: new SearchableText(snapshot, relative),
      context: new SearchableText(context, relative),
      recall
    }
    const figures: Array<Figures> = []
    for (const [measure, ask] of prepared) figures.push(sumAnswers(measure, yield* ask(replacement)))
    return Object.assign({}, ...figures)
  }
}
