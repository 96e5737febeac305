import type { AnchorKind } from "../compression/Anchors.ts"
import { isCall, type Part } from "../content/Content.ts"
import { type Compaction, stepsOf } from "./Measure.ts"
import { AnswerWalk, eachName, programsOf, referringTexts } from "./RecordedNames.ts"
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

/** Returns the names of a call's arguments, and the programs that it runs. */
const namesOfCall = (call: Part, relative: (text: string) => string): ReadonlyArray<NeededName> => {
  const names: Array<NeededName> = []
  referringTexts(call.functionCall?.args, (text) =>
    eachName(text, relative, (name, kind) => {
      if (kind !== "number" && name.length >= minNameChars) names.push([name, kind])
    })
  )
  return [...names, ...programsOf(call).map((program): NeededName => [program, "symbol"])]
}

/** Finds what the next actions of the agent needed, up to the fortieth that needed something. The needs are complete after all steps. */
export const needsOf = (compaction: Compaction) => {
  const relative = relativeTo(compaction.roots)
  const actions: Array<ReadonlyArray<NeededName>> = []
  const facts = new Map<string, AnchorKind>()
  const walk = new AnswerWalk(compaction, ({ parts, written }, isFromBefore) => {
    for (const call of parts.filter(isCall)) {
      if (actions.length >= maxActions) break
      const needed = new Map(namesOfCall(call, relative).filter(([name]) => isFromBefore(name)))
      if (needed.size > 0) actions.push([...needed])
    }
    for (const [name, kind] of written) if (!bareNumber.test(name) && isFromBefore(name)) facts.set(name, kind)
    return actions.length < maxActions
  })
  return {
    steps: [
      ...stepsOf(compaction.before, (entry) => walk.readBefore(entry)),
      ...stepsOf(compaction.after, (entry) => walk.readAfter(entry)),
      () => walk.end()
    ],
    needs: (): Needs => ({ actions, facts: [...facts] })
  }
}
