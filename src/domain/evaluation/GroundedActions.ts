/** The measure of actions and facts: whether a context has what the agent needed from before a compaction. */

import type { AnchorKind } from "../compression/Anchors.ts"
import { isCall, type Part } from "../content/Content.ts"
import type { Entry } from "../conversation/Conversation.ts"
import { eachItem, type SlicedWork } from "../text/SlicedWork.ts"
import { type Compaction, type Figures, type Measure, shareOf } from "./Measure.ts"
import { oneRecall } from "./OneRecall.ts"
import { declaredNames, eachName, namesBelow, programsOf, referringTexts } from "./RecordedNames.ts"
import { relativeTo } from "./WholeWords.ts"

/** A name that a measure searches, with its kind. */
type NeededName = readonly [name: string, kind: AnchorKind]

/** What the agent's next actions needed. */
interface Needs {
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

const secretMark = /REDACTED/

/** Finds what the next actions of the agent needed, up to the fortieth that needed something. */
export function* needsOf({ after, before, log, roots }: Compaction): SlicedWork<Needs> {
  const relative = relativeTo(roots)
  const namesOf = namesBelow(roots)
  // Names of tools and their parameters: every request declares them.
  const declared = declaredNames([...log, ...after])
  const occurred = new Set<string>()
  const shown = new Set<string>()
  const actions: Array<ReadonlyArray<NeededName>> = []
  const facts = new Map<string, AnchorKind>()
  // An answer of the agent is one message, or several in a row.
  let answer: Array<Entry> = []
  const show = (entry: Entry): void => {
    for (const name of namesOf(entry).all) shown.add(name)
  }
  /** Whether a name has to come from before: it occurred there, no message since has shown it, and no request declares it. */
  const isFromBefore = (name: string): boolean =>
    occurred.has(name) && !shown.has(name) && !declared.has(name) && !secretMark.test(name)
  const endAnswer = (): void => {
    for (const call of answer.flatMap(({ content }) => content.parts.filter(isCall))) {
      const names = namesOfCall(call, relative).filter(([name]) => isFromBefore(name))
      if (names.length > 0 && actions.length < maxActions) actions.push([...new Map(names)])
    }
    for (const [name, kind] of answer.flatMap((entry) => [...namesOf(entry).written])) {
      if (!bareNumber.test(name) && isFromBefore(name)) facts.set(name, kind)
    }
    answer.forEach(show)
    answer = []
  }
  yield* eachItem(before, (entry) => {
    for (const name of namesOf(entry).all) occurred.add(name)
  })
  for (const entry of after) {
    // What follows the last action that counts is not read.
    if (actions.length >= maxActions) break
    if (entry.author === "summary") continue
    if (entry.content.role === "model") answer.push(entry)
    else {
      endAnswer()
      show(entry)
    }
    yield
  }
  endAnswer()
  return { actions, facts: [...facts] }
}

/**
 * Grounded actions and facts: whether what the agent needed for its next actions, and could only know from before, stands in
 * the context as whole words, or one recall away.
 */
export const groundedActions: Measure = {
  figures: [
    { key: "actionsGrounded", title: "actions", unit: "share" },
    { key: "actionsReachable", title: "+recall", unit: "share" },
    { key: "factsKept", title: "facts", unit: "share" },
    { key: "factsReachable", title: "+recall", unit: "share" }
  ],
  *prepare(compaction, dropped) {
    const { actions, facts } = yield* needsOf(compaction)
    return function* (replacement) {
      const recall = oneRecall(dropped, replacement, compaction.roots)
      const ask = (names: ReadonlyArray<NeededName>, here: string, reachable: string): Figures => {
        const missing = names.filter((name) => !replacement.context.has(...name))
        const isHere = missing.length === 0
        return { [here]: shareOf(isHere), [reachable]: shareOf(isHere || recall.shows(missing)) }
      }
      return [
        ...(yield* eachItem(actions, (names) => ask(names, "actionsGrounded", "actionsReachable"))),
        ...(yield* eachItem(facts, (fact) => ask([fact], "factsKept", "factsReachable")))
      ]
    }
  }
}
