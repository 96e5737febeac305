import type { AnchorKind } from "../compression/Anchors.ts"
import { isCall } from "../content/Content.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import type { Compaction } from "./Measure.ts"
import { eachAnswer, eachName, programsOf, referringTexts } from "./RecordedNames.ts"
import { relativeTo } from "./WholeWords.ts"

/** What the agent needed after a compaction and could only know from before it. */

/** A name that a measure searches, with its kind. */
export type NeededName = readonly [name: string, kind: AnchorKind]

/** What the agent's next actions needed. */
export interface Needs {
  /** For each call that names something from before: these names. */
  readonly actions: ReadonlyArray<ReadonlyArray<NeededName>>
  /** Every name from before that the agent used in these answers: in words, thoughts and whole arguments. */
  readonly facts: ReadonlyArray<NeededName>
}

/** Later calls say little about the compaction: the messages in between have shown what they need. */
const maxActions = 40

const minNameChars = 4

/** Matches a number without letters. The same digits recur by chance, as offsets, sizes and line numbers, and are no facts. */
const bareNumber = /^[\d,]+$/

/** Returns what the next actions of the agent needed, up to the fortieth that needed something. */
export function* needsOf(compaction: Compaction): SlicedWork<Needs> {
  const relative = relativeTo(compaction.roots)
  const actions: Array<ReadonlyArray<NeededName>> = []
  const facts = new Map<string, AnchorKind>()
  yield* eachAnswer(compaction, ({ parts, written }, isFromBefore) => {
    for (const part of parts) {
      if (!isCall(part) || actions.length >= maxActions) continue
      const needed = new Map<string, AnchorKind>()
      const need = (name: string, kind: AnchorKind) => {
        if (isFromBefore(name)) needed.set(name, kind)
      }
      referringTexts(part.functionCall.args, (text) =>
        eachName(text, relative, (name, kind) => {
          if (kind !== "number" && name.length >= minNameChars) need(name, kind)
        })
      )
      for (const program of programsOf(part)) need(program, "symbol")
      if (needed.size > 0) actions.push([...needed])
    }
    for (const [name, kind] of written) if (!bareNumber.test(name) && isFromBefore(name)) facts.set(name, kind)
    return actions.length < maxActions
  })
  return { actions, facts: [...facts] }
}
