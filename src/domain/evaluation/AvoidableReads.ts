import { actionsOf } from "../actions/Actions.ts"
import { answerText } from "../actions/ToolResults.ts"
import { isCall } from "../content/Content.ts"
import { type Entry, pairing, placeKey } from "../conversation/Conversation.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { estimateText } from "../tokens/Tokens.ts"
import type { Compaction, Measure } from "./Measure.ts"
import { LinesRead, linesOf } from "./RepeatedReads.ts"
import { comparable, relativeTo } from "./WholeWords.ts"

/** Avoidable reads: what the agent read from files after a compaction although it had read it before. */

/** Calls `visit` with each file that a call read, and the lines that it returned. */
function* eachRead(
  entries: ReadonlyArray<Entry>,
  relative: (text: string) => string,
  visit: (path: string, lines: ReadonlyArray<string>) => void
): SlicedWork<void> {
  const { responseOf } = pairing(entries.map(({ content }) => content))
  for (const [item, { content }] of entries.entries()) {
    for (const [part, call] of content.parts.entries()) {
      const place = isCall(call) ? responseOf.get(placeKey({ item, part })) : undefined
      const answer = place === undefined ? undefined : entries[place.item]?.content.parts[place.part]
      if (answer === undefined) continue
      const [action, other] = actionsOf(call, answer)
      // The lines of several files in one answer cannot be told apart.
      if (action?._tag === "Read" && other === undefined) {
        const text = answerText(answer)
        visit(comparable(action.path, relative), linesOf(text))
        yield text.length * 8
      }
    }
  }
}

/**
 * Returns, for each file, the lines that were read before a compaction and unchanged again after it. Each line counts once,
 * because the compaction did not cause a second read after it.
 */
export function* linesReadAgain({
  after,
  before,
  roots
}: Compaction): SlicedWork<ReadonlyMap<string, ReadonlyArray<string>>> {
  const relative = relativeTo(roots)
  const known = new LinesRead()
  yield* eachRead(before, relative, (path, lines) => known.add(path, lines))
  const again = new Map<string, Array<string>>()
  yield* eachRead(after, relative, (path, lines) => {
    const repeated = known.take(path, lines)
    if (repeated.length > 0) again.set(path, [...(again.get(path) ?? []), ...repeated])
  })
  return again
}

/** Measures the estimated tokens, per compaction, of lines that were read again and that the context does not have. */
export const avoidableReads: Measure = {
  name: "avoidable reads",
  figures: [{ key: "avoidableReadTokens", title: "re-reads", unit: "mean" }],
  *prepare(compaction) {
    const again = yield* linesReadAgain(compaction)
    return function* (replacement) {
      const held = new Set(linesOf(replacement.context.original))
      yield replacement.context.original.length
      let tokens = 0
      for (const lines of again.values()) {
        const missing = lines.filter((line) => !held.has(line))
        if (missing.length > 0) tokens += estimateText(missing.join("\n"))
        yield lines.length * 100
      }
      return { avoidableReadTokens: { part: tokens, whole: 1 } }
    }
  }
}
