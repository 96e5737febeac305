import { pathsIn, replacementsIn } from "../actions/AgentTools.ts"
import { withoutLineNumbers } from "../actions/ToolResults.ts"
import { isCall } from "../content/Content.ts"
import type { Entry } from "../conversation/Conversation.ts"
import { type Compaction, type Measure, shareOf, stepsOf } from "./Measure.ts"
import { oneRecall } from "./OneRecall.ts"
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

/** Finds the edits after a compaction that needed a text from before it. They are complete after all steps. */
const neededEdits = ({ after, before, roots }: Compaction) => {
  const relative = relativeTo(roots)
  const textOf = (entry: Entry) => withoutLineNumbers(relative(entryText(entry)))
  const textsBefore: Array<string> = []
  const since: Array<string> = []
  const edits: Array<NeededEdit> = []
  const readAfter = (entry: Entry): void => {
    for (const part of entry.content.parts.filter(isCall)) {
      for (const { path, replaced } of editsOf(part.functionCall.args)) {
        if (edits.length >= maxEdits) return
        const searched = relative(replaced)
        const isThere = (text: string) => text.includes(searched)
        if (!since.some(isThere) && textsBefore.some(isThere)) {
          edits.push({ path: comparable(path, relative), replaced: searched })
        }
      }
    }
    since.push(textOf(entry))
  }
  return {
    edits,
    steps: [...stepsOf(before, (entry) => textsBefore.push(textOf(entry))), ...stepsOf(after, readAfter)]
  }
}

/** Edits: whether the file's path and the text to be replaced stand in the context, or one recall away. */
export const groundedEdits: Measure = {
  figures: [{ key: "editsReachable", title: "edits", unit: "share" }],
  prepare(compaction, dropped) {
    const { edits, steps } = neededEdits(compaction)
    return {
      steps,
      questions(replacement) {
        const recall = oneRecall(dropped, replacement, compaction.roots)
        const text = new SearchableText(withoutLineNumbers(replacement.context.text), (own) => own)
        const isReachable = ({ path, replaced }: NeededEdit): boolean =>
          (text.has(path, "path") || recall.shows([[path, "path"]])) &&
          (text.text.includes(replaced) || recall.showsText(replaced))
        return edits.map((edit) => () => ({ editsReachable: shareOf(isReachable(edit)) }))
      }
    }
  }
}
