import type { AnchorKind } from "../compression/Anchors.ts"
import { isCall, type Part } from "../content/Content.ts"
import type { Entry } from "../conversation/Conversation.ts"
import { type Measure, shareOf, type Compaction, stepsOf } from "./Measure.ts"
import { OneRecall } from "./OneRecall.ts"
import { declaredNames, eachName, type EntryNames, namesBelow, programsOf, referringTexts } from "./RecordedNames.ts"
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

/** What followed a compaction, read answer by answer. An answer of the agent is one message, or several in a row. */
class NextAnswers {
  private readonly relative: (text: string) => string
  private readonly namesOf: (entry: Entry) => EntryNames
  /** Names of tools and their parameters: every request declares them. */
  private readonly declared: ReadonlySet<string>
  private readonly occurred = new Set<string>()
  private readonly shown = new Set<string>()
  private answer: Array<Entry> = []
  private readonly actions: Array<ReadonlyArray<NeededName>> = []
  private readonly facts = new Map<string, AnchorKind>()

  constructor({ after, log, roots }: Compaction) {
    this.relative = relativeTo(roots)
    this.namesOf = namesBelow(roots)
    this.declared = declaredNames([...log, ...after])
  }

  /** Reads the next message from before the compaction. */
  readBefore(entry: Entry): void {
    for (const name of this.namesOf(entry).all) this.occurred.add(name)
  }

  /** Reads the next message from after it. */
  readAfter(entry: Entry): void {
    // What follows the last action that counts is not read.
    if (entry.author === "summary" || this.actions.length >= maxActions) return
    if (entry.content.role === "model") {
      this.answer.push(entry)
      return
    }
    this.endAnswer()
    this.show(entry)
  }

  /** Returns what the answers needed, after all messages were read. */
  needs(): Needs {
    this.endAnswer()
    return { actions: this.actions, facts: [...this.facts] }
  }

  private endAnswer(): void {
    const { actions, answer } = this
    this.answer = []
    for (const call of answer.flatMap(({ content }) => content.parts.filter(isCall))) {
      const names = namesOfCall(call, this.relative).filter(([name]) => this.isFromBefore(name))
      if (names.length > 0 && actions.length < maxActions) actions.push([...new Map(names)])
    }
    for (const [name, kind] of answer.flatMap((entry) => [...this.namesOf(entry).written])) {
      if (!bareNumber.test(name) && this.isFromBefore(name)) this.facts.set(name, kind)
    }
    answer.forEach((entry) => this.show(entry))
  }

  private show(entry: Entry): void {
    for (const name of this.namesOf(entry).all) this.shown.add(name)
  }

  /** Whether a name has to come from before: it occurred there, no message since has shown it, and no request declares it. */
  private isFromBefore(name: string): boolean {
    return this.occurred.has(name) && !this.shown.has(name) && !this.declared.has(name) && !secretMark.test(name)
  }
}

/** Finds what the next actions of the agent needed, up to the fortieth that needed something. The needs are complete after all steps. */
export const needsOf = (compaction: Compaction) => {
  const answers = new NextAnswers(compaction)
  return {
    steps: [
      ...stepsOf(compaction.before, (entry) => answers.readBefore(entry)),
      ...stepsOf(compaction.after, (entry) => answers.readAfter(entry))
    ],
    needs: () => answers.needs()
  }
}

/**
 * Grounded actions and facts: whether what the agent needed for its next actions, and could only know from before, stands in
 * the context as whole words, or one recall away.
 */
export const groundedActions: Measure = {
  name: "grounded actions and facts",
  figures: [
    { key: "actionsGrounded", title: "actions", unit: "share" },
    { key: "actionsReachable", title: "+recall", unit: "share" },
    { key: "factsKept", title: "facts", unit: "share" },
    { key: "factsReachable", title: "+recall", unit: "share" }
  ],
  prepare(compaction, dropped) {
    const { needs, steps } = needsOf(compaction)
    return {
      steps,
      questions(replacement) {
        const { actions, facts } = needs()
        const recall = new OneRecall(dropped, replacement, compaction.roots)
        const ask = (names: ReadonlyArray<NeededName>, here: string, reachable: string) => () => {
          const missing = names.filter((name) => !replacement.context.has(...name))
          const isHere = missing.length === 0
          return { [here]: shareOf(isHere), [reachable]: shareOf(isHere || recall.shows(missing)) }
        }
        return [
          ...actions.map((names) => ask(names, "actionsGrounded", "actionsReachable")),
          ...facts.map((fact) => ask([fact], "factsKept", "factsReachable"))
        ]
      }
    }
  }
}
