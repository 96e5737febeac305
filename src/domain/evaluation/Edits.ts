import { pathsIn, replacementsIn } from "../actions/AgentTools.ts"
import { isCall } from "../content/Content.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import type { Compaction, Measure } from "./Measure.ts"
import { DroppedText, OneRecall, withoutLineNumbers } from "./OneRecall.ts"
import { entryText } from "./RecordedNames.ts"
import { comparable, relativeTo, SearchableText } from "./WholeWords.ts"

/** An edit of the agent whose text to be replaced stood before the compaction, and in no message since. */
export interface NeededEdit {
  readonly path: string
  readonly replaced: string
}

const maxEdits = 40

/** Returns each text that a call replaces, with its file. */
const editsOf = (args: unknown): ReadonlyArray<NeededEdit> => {
  const [path] = pathsIn(args)
  if (path === undefined) return []
  return replacementsIn(args).flatMap(([before]) => (before.trim() === "" ? [] : [{ path, replaced: before.trim() }]))
}

/** Returns the edits after a compaction that needed a text from before it. */
function* neededEdits({ after, before, roots }: Compaction): SlicedWork<ReadonlyArray<NeededEdit>> {
  const relative = relativeTo(roots)
  const comparableText = (text: string) => withoutLineNumbers(relative(text))
  const textsBefore = before.map((entry) => comparableText(entryText(entry)))
  yield textsBefore.reduce((sum, text) => sum + text.length, 0) * 2
  const since: Array<string> = []
  const edits: Array<NeededEdit> = []
  for (const entry of after) {
    for (const part of entry.content.parts.filter(isCall)) {
      for (const { path, replaced } of editsOf(part.functionCall.args)) {
        const searched = relative(replaced)
        yield [...textsBefore, ...since].reduce((sum, text) => sum + text.length, 0) / 8
        if (since.some((text) => text.includes(searched)) || !textsBefore.some((text) => text.includes(searched)))
          continue
        edits.push({ path: comparable(path, relative), replaced: searched })
        if (edits.length >= maxEdits) return edits
      }
    }
    since.push(comparableText(entryText(entry)))
  }
  return edits
}

/** Edits: whether the file's path and the text to be replaced stand in the context, or one recall away. */
export const groundedEdits: Measure = {
  name: "edits",
  figures: [{ key: "editsReachable", title: "edits", unit: "share" }],
  *prepare(compaction) {
    const edits = yield* neededEdits(compaction)
    const dropped = DroppedText.when(compaction)
    return function* (replacement) {
      if (edits.length === 0) return { editsReachable: { part: 0, whole: 0 } }
      const recall = new OneRecall(dropped, replacement, compaction.roots)
      const text = new SearchableText(withoutLineNumbers(replacement.context.text), (own) => own)
      let reachable = 0
      for (const { path, replaced } of edits) {
        yield text.text.length / 8
        if (!text.has(path, "path") && !(yield* recall.shows([[path, "path"]]))) continue
        if (text.text.includes(replaced) || (yield* recall.showsText(replaced))) reachable += 1
      }
      return { editsReachable: { part: reachable, whole: edits.length } }
    }
  }
}
