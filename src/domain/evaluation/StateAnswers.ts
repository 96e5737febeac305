/**
 * Answers state questions from the text of a context alone: from the line that names the subject, first by what stands beside
 * the name, else by the heading above the line.
 */

import { statedStates, ungrouped } from "./StatedFiles.ts"
import { around, citedEntry, clippedPlace, isResult, type Stated, statedResults, statedTests } from "./StatedResults.ts"
import { hasWords, plain, readContext, type ReadContext, type Statement, wholeWord } from "./Statements.ts"
import { maxWholeChars, type StateQuestion } from "./StateQuestions.ts"

/**
 * - `right`: the context gives the expected answer; for what never happened: it does not claim it
 * - `stale`: it gives an answer that was right earlier
 * - `wrong`: it gives another answer
 * - `absent`: it says nothing of the subject
 */
const verdicts = ["right", "stale", "wrong", "absent"] as const
export type Verdict = (typeof verdicts)[number]

/** The verdict on what was stated: the statement that cites the latest entry counts, and of equal ones the last. */
const verdictOn = (
  { earlier }: StateQuestion,
  stated: ReadonlyArray<Stated>,
  isRight: (answer: string) => boolean
): Verdict => {
  if (stated.length === 0) return "absent"
  const latest = Math.max(...stated.map(({ entry }) => entry))
  const answer = stated.findLast(({ entry }) => entry === latest)?.answer ?? ""
  return isRight(answer) ? "right" : earlier.includes(answer) ? "stale" : "wrong"
}

// Values and items

const maxGapChars = 60

/** Whether a text gives a name this value. */
const gives = (text: string, name: string, value: string): boolean => {
  const at = text.search(wholeWord(name))
  if (at < 0) return false
  const rest = text.slice(at + name.length, at + name.length + maxGapChars + value.length + 1)
  return hasWords(rest, value)
}

const statedValues = ({ statements }: ReadContext, { earlier, expected, subject }: StateQuestion): Array<Stated> =>
  statements.flatMap(({ isQuoted, text, under }) => {
    if (!text.includes(subject)) return []
    const entry = citedEntry(text) || citedEntry(under[0] ?? "")
    if (gives(text, subject, expected)) return [{ answer: expected, entry }]
    // What the user wrote once is no statement about the present.
    const old = isQuoted ? undefined : earlier.find((value) => gives(text, subject, value))
    return old === undefined ? [] : [{ answer: old, entry }]
  })

const doneMark =
  /^\[(?:x|completed|done|closed)\]|^[✓✔✅☑]|\((?:completed|done|closed)\)|(?:[:–—-]|→)\s*(?:completed|done|closed)\b/i
const openMark =
  /^\[(?: |pending|open|in[_ ]progress|todo|active|blocked)?\]|^[☐◻]|\((?:pending|open|in[_ ]progress|todo|active|blocked)\)|(?:[:–—-]|→)\s*(?:pending|open|in[_ ]progress|todo)\b/i
const openHeading =
  /\b(?:open|pending|to ?dos?|to be done|remaining|next|in[_ ]progress|current|left|not (?:yet )?done|unfinished)\b/i
const doneHeading = /\b(?:done|completed|closed|finished)\b/i

const statedItems = ({ statements }: ReadContext, item: string, others: ReadonlyArray<string>): Array<Stated> =>
  statements.flatMap(({ isQuoted, text, under }) => {
    const at = text.indexOf(item)
    const place = at < 0 ? clippedPlace(text, item, others) : { at, length: item.length }
    if (isQuoted || place === undefined) return []
    const beside = `${text.slice(0, place.at)}${text.slice(place.at + place.length)}`
    const heading = under.find((each) => openHeading.test(each) || doneHeading.test(each))
    const answer = openMark.test(beside)
      ? "open"
      : doneMark.test(beside)
        ? "done"
        : heading === undefined
          ? undefined
          : openHeading.test(heading)
            ? "open"
            : "done"
    return answer === undefined ? [] : [{ answer, entry: 0 }]
  })

// The user's words

const endChars = 40

const isShown = (context: string, words: string, byEnds: boolean): boolean =>
  context.includes(words) ||
  (byEnds &&
    words.length > maxWholeChars &&
    context.includes(words.slice(0, endChars)) &&
    context.includes(words.slice(-endChars).trim()))

/** Whether a statement says that a command ran: it begins with it, or says so. */
const isStatedRun = ({ isQuoted, text }: Statement, command: string): boolean => {
  const place = isQuoted ? undefined : around(text, command, [])
  return (
    place !== undefined &&
    (place.before.trim() === "" || /\b(?:ran|run|executed)\W*$/i.test(place.before)) &&
    !/\b(?:not|never|don't)\b/i.test(text)
  )
}

/** Whether a statement says that the user did not allow a command. */
const isRefusal = (text: string, command: string, others: ReadonlyArray<string>): boolean =>
  around(text, command, others) !== undefined &&
  /\b(?:refused|rejected|declined|denied|not (?:allowed|run))\b/i.test(text)

/** Answers questions from the text of a context alone. Paths are relative to the folders. */
export class StateAnswers {
  private readonly context: ReadContext
  private readonly files: ReadonlyArray<Statement>
  private readonly folders: ReadonlyArray<string>
  private readonly subjects: ReadonlyArray<string>
  /** By the name of a file that is asked for: the number of questions for a file of this name. */
  private readonly sameNames = new Map<string, number>()

  constructor(questions: ReadonlyArray<StateQuestion>, text: string, folders: ReadonlyArray<string> = []) {
    this.context = readContext(text, folders)
    this.files = this.context.statements.flatMap(ungrouped)
    this.folders = folders
    this.subjects = questions.map(({ subject }) => subject)
    for (const { kind, subject } of questions) {
      if (kind !== "file" && kind !== "never happened") continue
      const name = subject.slice(subject.lastIndexOf("/") + 1)
      this.sameNames.set(name, (this.sameNames.get(name) ?? 0) + 1)
    }
  }

  /** Answers one of the questions. */
  verdictOf(question: StateQuestion): Verdict {
    const { context, subjects } = this
    const { expected, kind, subject } = question
    const isExpected = (answer: string) => answer === expected
    switch (kind) {
      case "exit code":
        return verdictOn(question, statedResults(context, subject, subjects), (answer) => isResult(expected, answer))
      case "test run":
        return verdictOn(question, statedTests(context), isExpected)
      case "file":
        return this.fileVerdict(question)
      case "value":
        return verdictOn(question, statedValues(context, question), isExpected)
      case "item":
        return verdictOn(question, statedItems(context, subject, subjects), isExpected)
      case "refusal":
        return context.statements.some(({ isQuoted, text }) => !isQuoted && isRefusal(text, subject, subjects))
          ? "right"
          : "absent"
      case "commit":
        return context.flatText.includes(subject) ? "right" : "absent"
      case "constraint":
      case "decision":
      case "order":
        return isShown(context.flatText, plain(subject, this.folders), kind === "order") ? "right" : "absent"
      case "never happened":
        return this.isBelieved(question) ? "wrong" : "right"
    }
  }

  private statesOf(file: string): ReadonlyArray<string> {
    return statedStates(this.files, file, (name) => this.sameNames.get(name) === 1)
  }

  private fileVerdict({ earlier, expected, subject }: StateQuestion): Verdict {
    const stated = this.statesOf(subject)
    if (stated.includes(expected)) return "right"
    return stated.length === 0 ? "absent" : stated.some((answer) => earlier.includes(answer)) ? "stale" : "wrong"
  }

  /** Whether the context states what never happened. */
  private isBelieved({ expected, subject }: StateQuestion): boolean {
    if (expected === "not run") return this.context.statements.some((statement) => isStatedRun(statement, subject))
    if (expected === "not done") {
      const stated = statedResults(this.context, subject, this.subjects)
      return stated.length > 0 && stated.every(({ answer }) => answer === "0")
    }
    return this.statesOf(subject).some((answer) => answer !== "not changed")
  }
}
