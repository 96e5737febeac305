import type { SlicedWork } from "../text/SlicedWork.ts"
import type { Measure, Ratio } from "./Measure.ts"
import { entryText } from "./RecordedNames.ts"
import { answerQuestions, type StateAnswer } from "./StateAnswers.ts"
import { stateQuestions } from "./StateQuestions.ts"

const ratioOf = (answers: ReadonlyArray<StateAnswer>, isCounted: (answer: StateAnswer) => boolean): Ratio => ({
  part: answers.filter(isCounted).length,
  whole: answers.length
})

/**
 * Measures what a context says about the state that the conversation reached. A question whose evidence is in a kept message
 * counts as right. `--json` also has the right answers of each kind, as `state: KIND`.
 */
export const stateOfWork: Measure = {
  name: "state questions",
  figures: [
    { key: "statesRight", title: "state", unit: "share" },
    { key: "statesStale", title: "stale", unit: "share" },
    { key: "statesWrong", title: "wrong", unit: "share" },
    { key: "decoysBelieved", title: "decoys", unit: "share" }
  ],
  *prepare({ log, roots }) {
    const questions = yield* stateQuestions(log, roots)
    const texts = new Map(log.map((entry) => [entry.id, entryText(entry)]))
    return function* ({ context, snapshot }): SlicedWork<Readonly<Record<string, Ratio>>> {
      const kept = context.original.replace(snapshot.original, "")
      yield kept.length * questions.length
      const isKept = (text: string | undefined): boolean => text !== undefined && text !== "" && kept.includes(text)
      const answers = (yield* answerQuestions(questions, context.original, roots)).map((answer): StateAnswer =>
        answer.verdict !== "right" && isKept(texts.get(answer.question.entry))
          ? { ...answer, verdict: "right" }
          : answer
      )
      const states = answers.filter(({ question }) => question.kind !== "never happened")
      const decoys = answers.filter(({ question }) => question.kind === "never happened")
      const kinds = new Map<string, Array<StateAnswer>>()
      for (const answer of states) kinds.set(answer.question.kind, [...(kinds.get(answer.question.kind) ?? []), answer])
      const right = ratioOf(states, ({ verdict }) => verdict === "right")
      const stale = ratioOf(states, ({ verdict }) => verdict === "stale")
      const wrong = ratioOf(states, ({ verdict }) => verdict === "wrong")
      const believed = ratioOf(decoys, ({ verdict }) => verdict !== "right")
      return {
        // A false answer counts twice: it is no right one, and takes the trust from one that is. A decoy that is stated takes it from one, too.
        statesRight: { part: right.part - stale.part - wrong.part - believed.part, whole: right.whole },
        statesStale: stale,
        statesWrong: wrong,
        decoysBelieved: believed,
        ...Object.fromEntries(
          [...kinds].map(([kind, of]) => [`state: ${kind}`, ratioOf(of, ({ verdict }) => verdict === "right")])
        )
      }
    }
  }
}
