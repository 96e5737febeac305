/** Avoidable reads: what the agent read from files after a compaction although it had read it before. */

import { actionsOf } from "../actions/Actions.ts"
import { answerText } from "../actions/ToolResults.ts"
import { partnersIn } from "../compression/AnsweredCalls.ts"
import { isCall } from "../content/Content.ts"
import type { Entry } from "../conversation/Conversation.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { estimateText } from "../tokens/Tokens.ts"
import type { Compaction, Measure } from "./Measure.ts"
import { LinesRead, linesOf } from "./RepeatedReads.ts"
import { comparable, relativeTo } from "./WholeWords.ts"

/** Calls `visit` with each file that the calls of entries read, and the lines that they returned. */
function* eachRead(
  entries: ReadonlyArray<Entry>,
  relative: (text: string) => string,
  visit: (path: string, lines: ReadonlyArray<string>) => void
): SlicedWork<void> {
  const partnerOf = partnersIn(entries)
  for (const [item, { content }] of entries.entries()) {
    for (const [part, call] of content.parts.entries()) {
      const answer = isCall(call) ? partnerOf(item, part)?.part : undefined
      if (answer === undefined) continue
      const [action, other] = actionsOf(call, answer)
      // The lines of several files in one answer cannot be told apart.
      if (action?._tag === "Read" && other === undefined) {
        visit(comparable(action.path, relative), linesOf(answerText(answer)))
      }
    }
    yield
  }
}

/**
 * Finds, for each file, the lines that were read before a compaction and unchanged again after it. Each line counts once,
 * because the compaction did not cause a second read after it.
 */
export function* linesReadAgain({
  after,
  before,
  roots
}: Compaction): SlicedWork<ReadonlyMap<string, ReadonlyArray<string>>> {
  const relative = relativeTo(roots)
  const known = new LinesRead()
  const again = new Map<string, Array<string>>()
  yield* eachRead(before, relative, (path, lines) => known.add(path, lines))
  yield* eachRead(after, relative, (path, lines) => {
    const repeated = known.take(path, lines)
    if (repeated.length > 0) again.set(path, [...(again.get(path) ?? []), ...repeated])
  })
  return again
}

/** Measures the estimated tokens, per compaction, of lines that were read again and that the context does not have. */
export const avoidableReads: Measure = {
  figures: [{ key: "avoidableReadTokens", title: "re-reads", unit: "mean" }],
  *prepare(compaction) {
    const lines = yield* linesReadAgain(compaction)
    return function* ({ context }) {
      const held = new Set(linesOf(context.original))
      let part = 0
      for (const read of lines.values()) {
        part += estimateText(read.filter((line) => !held.has(line)).join("\n"))
        yield
      }
      return [{ avoidableReadTokens: { part, whole: 1 } }]
    }
  }
}
