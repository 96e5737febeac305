/** The measure of state: what a context says about the state that the conversation reached. */

import { entryText } from "../compression/Anchors.ts"
import type { EntryId } from "../conversation/Conversation.ts"
import { eachItem } from "../text/SlicedWork.ts"
import { type Figures, type Measure, shareOf } from "./Measure.ts"
import { StateAnswers, type Verdict } from "./StateAnswers.ts"
import { type StateQuestion, WorkState } from "./StateQuestions.ts"

/**
 * What one answer adds to the figures. A false answer counts twice: it is no right one, and takes the trust from one that is. A
 * decoy that is stated takes it from one, too.
 */
const figuresOf = ({ kind }: StateQuestion, verdict: Verdict): Figures => {
  const isRight = verdict === "right"
  if (kind === "never happened") {
    return { decoysBelieved: shareOf(!isRight), statesRight: { part: isRight ? 0 : -1, whole: 0 } }
  }
  const isFalse = verdict === "stale" || verdict === "wrong"
  return {
    statesRight: { part: isRight ? 1 : isFalse ? -1 : 0, whole: 1 },
    statesStale: shareOf(verdict === "stale"),
    statesWrong: shareOf(verdict === "wrong"),
    [`state: ${kind}`]: shareOf(isRight)
  }
}

/**
 * The measure of state. A question whose evidence is in a kept message counts as right. `--json` also has the right answers of
 * each kind, as `state: KIND`.
 */
export const stateOfWork: Measure = {
  figures: [
    { key: "statesRight", title: "state", unit: "share" },
    { key: "statesStale", title: "stale", unit: "share" },
    { key: "statesWrong", title: "wrong", unit: "share" },
    { key: "decoysBelieved", title: "decoys", unit: "share" }
  ],
  *prepare({ log, roots }) {
    const state = new WorkState(log, roots)
    const texts = new Map<EntryId, string>()
    yield* eachItem(log.entries(), ([index, entry]) => {
      state.read(entry, index)
      texts.set(entry.id, entryText(entry))
    })
    return function* ({ context, snapshot }) {
      const questions = state.questions()
      const kept = context.original.replace(snapshot.original, "")
      const answers = new StateAnswers(questions, context.original, roots)
      const isKept = ({ entry }: StateQuestion): boolean => {
        const text = texts.get(entry) ?? ""
        return text !== "" && kept.includes(text)
      }
      return yield* eachItem(questions, (question) => {
        const verdict = answers.verdictOf(question)
        return figuresOf(question, verdict === "right" || !isKept(question) ? verdict : "right")
      })
    }
  }
}
