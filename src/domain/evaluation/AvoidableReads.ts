import { actionsOf } from "../actions/Actions.ts"
import { answerText } from "../actions/ToolResults.ts"
import { isCall } from "../content/Content.ts"
import { type Entry, pairing, placeKey, sum } from "../conversation/Conversation.ts"
import { estimateText } from "../tokens/Tokens.ts"
import { type Compaction, type Measure, stepsOf } from "./Measure.ts"
import { LinesRead, linesOf } from "./RepeatedReads.ts"
import { comparable, relativeTo } from "./WholeWords.ts"

/** Avoidable reads: what the agent read from files after a compaction although it had read it before. */

/** Returns a function that calls `visit` with each file that the calls of an entry read, and the lines that they returned. */
const readerOf = (
  entries: ReadonlyArray<Entry>,
  relative: (text: string) => string,
  visit: (path: string, lines: ReadonlyArray<string>) => void
): ((entry: Entry, item: number) => void) => {
  const { responseOf } = pairing(entries.map(({ content }) => content))
  return ({ content }, item) => {
    for (const [part, call] of content.parts.entries()) {
      const place = isCall(call) ? responseOf.get(placeKey({ item, part })) : undefined
      const answer = place === undefined ? undefined : entries[place.item]?.content.parts[place.part]
      if (answer === undefined) continue
      const [action, other] = actionsOf(call, answer)
      // The lines of several files in one answer cannot be told apart.
      if (action?._tag === "Read" && other === undefined) {
        visit(comparable(action.path, relative), linesOf(answerText(answer)))
      }
    }
  }
}

/**
 * Finds, for each file, the lines that were read before a compaction and unchanged again after it. Each line counts once,
 * because the compaction did not cause a second read after it. The lines are complete after all steps.
 */
export const linesReadAgain = ({ after, before, roots }: Compaction) => {
  const relative = relativeTo(roots)
  const known = new LinesRead()
  const again = new Map<string, Array<string>>()
  const readBefore = readerOf(before, relative, (path, lines) => known.add(path, lines))
  const readAfter = readerOf(after, relative, (path, lines) => {
    const repeated = known.take(path, lines)
    if (repeated.length > 0) again.set(path, [...(again.get(path) ?? []), ...repeated])
  })
  const lines: ReadonlyMap<string, ReadonlyArray<string>> = again
  return { lines, steps: [...stepsOf(before, readBefore), ...stepsOf(after, readAfter)] }
}

/** Measures the estimated tokens, per compaction, of lines that were read again and that the context does not have. */
export const avoidableReads: Measure = {
  figures: [{ key: "avoidableReadTokens", title: "re-reads", unit: "mean" }],
  prepare(compaction) {
    const { lines, steps } = linesReadAgain(compaction)
    return {
      steps,
      questions: ({ context }) => [
        () => {
          const held = new Set(linesOf(context.original))
          const missing = [...lines.values()].map((read) => read.filter((line) => !held.has(line)).join("\n"))
          return { avoidableReadTokens: { part: sum(missing.map(estimateText)), whole: 1 } }
        }
      ]
    }
  }
}
