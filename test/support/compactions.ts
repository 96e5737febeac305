import { entryText } from "../../src/domain/compression/Anchors.ts"
import { call, type Content, model, response, text, user } from "../../src/domain/content/Content.ts"
import { type Entry, entryId } from "../../src/domain/conversation/Conversation.ts"
import { type Compaction, type Figures, type Measure, sumAnswers } from "../../src/domain/evaluation/Measure.ts"
import { DroppedText, type Replacement } from "../../src/domain/evaluation/OneRecall.ts"
import { relativeTo, SearchableText } from "../../src/domain/evaluation/WholeWords.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"

/** Small compactions for tests of measures. */

export const asks = (words: string): Content => user(text(words))
export const says = (words: string): Content => model(text(words))

/** A call and its response. */
export const ran = (name: string, args: unknown, output: string): ReadonlyArray<Content> => [
  model(call(name, args)),
  user(response(name, { output }))
]

const entriesFrom = (contents: ReadonlyArray<Content>, first: number): ReadonlyArray<Entry> =>
  contents.map((content, index) => ({ id: entryId(first + index), content, tokens: [], handles: [] }))

/** A compaction between two runs of messages. */
export const compactionOf = (
  before: ReadonlyArray<Content>,
  after: ReadonlyArray<Content>,
  roots: ReadonlyArray<string> = ["/work/project"]
): Compaction => {
  const own = entriesFrom(before, 1)
  return { log: own, before: own, after: entriesFrom(after, before.length + 1), roots }
}

/** A replacement whose summary is the whole context. */
export const replacementOf = (
  context: string,
  recall: Replacement["recall"] = () => undefined,
  roots: ReadonlyArray<string> = ["/work/project"]
): Replacement => {
  const searchable = new SearchableText(context, relativeTo(roots))
  return { snapshot: searchable, context: searchable, recall }
}

/** Measures one replacement. */
export const measured = (measure: Measure, compaction: Compaction, replacement: Replacement): Figures => {
  const dropped = new DroppedText(compaction.roots)
  for (const entry of compaction.log) dropped.add(entryText(entry))
  return sumAnswers(measure, Work.runSync(Work.runSync(measure.prepare(compaction, dropped))(replacement)))
}
