/** The measure of edits: whether the text that an edit replaced can still be found after a compaction. */

import { pathsIn, replacementsIn } from "../actions/AgentTools.ts"
import { withoutLineNumbers } from "../actions/ToolResults.ts"
import { entryText } from "../compression/Anchors.ts"
import { isCall } from "../content/Content.ts"
import type { Entry } from "../conversation/Conversation.ts"
import { eachItem, type SlicedWork } from "../text/SlicedWork.ts"
import { type Compaction, type Measure, shareOf } from "./Measure.ts"
import { oneRecall } from "./OneRecall.ts"
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

/** Finds the edits after a compaction that needed a text from before it. */
function* neededEdits({ after, before, roots }: Compaction): SlicedWork<ReadonlyArray<NeededEdit>> {
  const relative = relativeTo(roots)
  const textOf = (entry: Entry) => withoutLineNumbers(relative(entryText(entry)))
  const since: Array<string> = []
  const edits: Array<NeededEdit> = []
  const textsBefore = yield* eachItem(before, textOf)
  for (const entry of after) {
    for (const part of entry.content.parts.filter(isCall)) {
      for (const { path, replaced } of editsOf(part.functionCall.args)) {
        if (edits.length >= maxEdits) return edits
        const searched = relative(replaced)
        const isThere = (text: string) => text.includes(searched)
        if (!since.some(isThere) && textsBefore.some(isThere)) {
          edits.push({ path: comparable(path, relative), replaced: searched })
        }
      }
    }
    since.push(textOf(entry))
    yield
  }
  return edits
}

/** Edits: whether the file's path and the text to be replaced stand in the context, or one recall away. */
export const groundedEdits: Measure = {
  figures: [{ key: "editsReachable", title: "edits", unit: "share" }],
  *prepare(compaction, dropped) {
    const edits = yield* neededEdits(compaction)
    return function* (replacement) {
      const recall = oneRecall(dropped, replacement, compaction.roots)
      const text = new SearchableText(withoutLineNumbers(replacement.context.text), (own) => own)
      const isReachable = ({ path, replaced }: NeededEdit): boolean =>
        (text.has(path, "path") || recall.shows([[path, "path"]])) &&
        (text.text.includes(replaced) || recall.showsText(replaced))
      return yield* eachItem(edits, (edit) => ({ editsReachable: shareOf(isReachable(edit)) }))
    }
  }
}
