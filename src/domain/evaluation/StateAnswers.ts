import type { SlicedWork } from "../text/SlicedWork.ts"
import { hasWords, plain, readContext, type ReadContext, type Statement, wholeWord } from "./Statements.ts"
import type { StateQuestion } from "./StateQuestions.ts"

/**
 * What a context says about the state of a conversation, read as a fair reader would: the line that names the subject, what
 * stands beside the name, and else the heading above. Nothing but the text of the context counts.
 */

/**
 * - `right`: the context gives the expected answer, or does not tell what never happened
 * - `stale`: it gives an answer that was right earlier
 * - `wrong`: it gives another answer
 * - `absent`: it says nothing of the subject
 */
export const verdicts = ["right", "stale", "wrong", "absent"] as const
export type Verdict = (typeof verdicts)[number]

/** What one statement says, and the number of the entry that it cites: 0 for none. */
interface Told {
  readonly answer: string
  readonly entry: number
}

const citedEntry = (text: string): number =>
  Math.max(0, ...[...text.matchAll(/\be([1-9]\d*)\b/g)].map(([, n]) => Number(n)))

/** Judges what was told: the statement that cites the latest entry counts, and of equal ones the last. */
const judged = (
  { earlier }: StateQuestion,
  told: ReadonlyArray<Told>,
  isRight: (answer: string) => boolean
): Verdict => {
  if (told.length === 0) return "absent"
  const latest = Math.max(...told.map(({ entry }) => entry))
  const answer = told.findLast(({ entry }) => entry === latest)?.answer ?? ""
  return isRight(answer) ? "right" : earlier.includes(answer) ? "stale" : "wrong"
}

const maxNoteChars = 200

// Results

const tells =
  /exit(?:ed)?(?: with)?(?: code)?:? (-?\d+)|(\bno (?:exit code|clear result))|(\b(?:failed|fails|failing|failure|unresolved|errors?|red)\b|[✗✘❌])|(\b(?:pass(?:ed|es|ing)?|succeeded|succeeds|success(?:ful(?:ly)?)?|clean|green|ok)\b|[✓✔✅])/gi
const nothingFailed = /\b(?:0|no|zero|without) (?:failed|failures?|failing|errors?|issues|problems|warnings)\b/gi

/** The answer of a statement that tells a failure and its end: no answer about the last run of one command. */
const resolved = "failed, then passed"

/** Returns the result that a text tells: an exit code, `failed`, or `0` for a success. The last one counts. */
const resultIn = (text: string): string | undefined => {
  if (/\bfail(?:ed|s|ing)?\b[^\n]*\b(?:passed|passes|succeeded) (?:after|now|since|once)\b/i.test(text)) return resolved
  const last = [...text.slice(0, maxNoteChars).replace(nothingFailed, "passed").matchAll(tells)].at(-1)
  if (last === undefined) return undefined
  const [, code, none, failure] = last
  return code ?? (none !== undefined ? "unknown" : failure !== undefined ? "failed" : "0")
}

/** Returns the result that a heading tells of the commands below it: "they succeeded where no exit code stands". */
const resultBelow = (under: ReadonlyArray<string>): string | undefined => {
  for (const heading of under) {
    if (/\b(?:succeeded|passed|successful)\b/i.test(heading)) return "0"
    if (/\b(?:failed|failing|failures?|unresolved)\b/i.test(heading)) return "failed"
  }
  return undefined
}

const minClippedChars = 24

/**
 * Returns the place of a text that is clipped with `…` in a statement, when its beginning is no other's; undefined when it is
 * not there.
 */
const clippedPlace = (
  statement: string,
  text: string,
  others: ReadonlyArray<string>
): { readonly at: number; readonly length: number } | undefined => {
  const end = statement.indexOf("…")
  const at = end < 0 || text.length < minClippedChars ? -1 : statement.indexOf(text.slice(0, minClippedChars))
  const beginning = at < 0 || at > end ? "" : statement.slice(at, end).trimEnd()
  return beginning !== "" &&
    text.startsWith(beginning) &&
    !others.some((other) => other !== text && other.startsWith(beginning))
    ? { at, length: end + 1 - at }
    : undefined
}

/** Returns what stands before and after a command in a statement. A long command may be clipped. */
const around = (
  text: string,
  command: string,
  others: ReadonlyArray<string>
): { readonly before: string; readonly after: string } | undefined => {
  const end = (at: number, length: number) => ({ before: text.slice(0, at), after: text.slice(at + length) })
  for (let at = text.indexOf(command); at >= 0; at = text.indexOf(command, at + 1)) {
    const found = end(at, command.length)
    // A part of a longer command is another command.
    const isWhole =
      !/(?:[\w/.-]|(?:&&|[|;]) ?)$/.test(found.before) &&
      /^(?:$|[:,.;)]|\s*(?:→|->|=>|[–—(-]\s|\()|\s+(?:exit|failed|fails|pass|succe|return|ran\b|was\b|is\b|now\b|✓|✔|✗|✅|❌))/.test(
        found.after
      )
    if (isWhole) return found
  }
  const clipped = clippedPlace(text, command, others)
  return clipped === undefined ? undefined : end(clipped.at, clipped.length)
}

/** Matches what says nothing of a result beside a command: its entry and handle, and how often it ran. */
const onlyWhere = /^[\s.:,;]*(?:\((?:e\d+)?[\s,]*(?:h_\w+)?[\s,]*(?:\d+ (?:times|runs?)|×\d+)?\))?[\s.:,;]*$/

const toldResults = (
  { statements }: ReadContext,
  command: string,
  others: ReadonlyArray<string>
): ReadonlyArray<Told> => {
  const told = statements.flatMap(({ isQuoted, text, under }) => {
    const place = isQuoted ? undefined : around(text, command, others)
    if (place === undefined) return []
    const { after, before } = place
    const answer =
      resultIn(after) ??
      (/\b(?:failure of|failed:?)\s*$/i.test(before) ? "failed" : undefined) ??
      (/\b(?:passed|succeeded):?\s*$/i.test(before) ? "0" : undefined) ??
      (onlyWhere.test(after) ? resultBelow(under) : undefined)
    return answer === undefined ? [] : [{ answer, entry: citedEntry(after) }]
  })
  const states = told.filter(({ answer }) => answer !== resolved)
  return states.length > 0 ? states : told
}

/** A failure told without its code answers the question for a code other than 0. */
const isResult = (expected: string, answer: string): boolean =>
  expected === answer ||
  answer === resolved ||
  (expected !== "0" && (answer === "failed" || (expected === "failed" && /^-?[1-9]/.test(answer))))

const unsettled =
  /\b(?:should|must|ensure|until|make sure|if|need|will|to (?:pass|run)|verify|let me|going to|run the)\b/i

const toldTests = ({ statements }: ReadContext): Array<Told> => {
  const about = statements.filter(({ isQuoted, text }) => !isQuoted && /\b(?:tests?|specs?)\b/i.test(text))
  const state = about.filter(({ text }) =>
    /^(?:last )?tests?(?: run)?:? (?:passed|failed|pass|fail|no clear)\b/i.test(text)
  )
  return (state.length > 0 ? state : about).flatMap(({ text, under }) => {
    if (state.length === 0 && unsettled.test(text)) return []
    const result = resultIn(text) ?? (state.length === 0 ? undefined : resultBelow(under))
    return result === undefined
      ? []
      : [{ answer: result === "0" || result === resolved ? "passed" : "failed", entry: citedEntry(text) }]
  })
}

// Files

const states: ReadonlyArray<readonly [answer: string, words: RegExp]> = [
  ["not changed", /\b(?:not changed|unchanged|not modified|only read|read|reads|viewed|looked at)\b/i],
  // "Removed the flag" is said of a file that changed.
  ["deleted", /\b(?:deleted|removed)\b(?!\s+\w)/i],
  [
    "changed",
    /\b(?:created|added|new|wrote|written|rewrote|rewritten|modified|changed|changes?|edited|edits?|updated|refactored|renamed|moved|fixed|implemented|extended|removed)\b|\+\w/i
  ]
]

/** Returns the state that a text tells first. */
const stateIn = (text: string): string | undefined =>
  states
    .flatMap(([answer, words]) => {
      const at = text.search(words)
      return at < 0 ? [] : [{ answer, at }]
    })
    .sort((a, b) => a.at - b.at)[0]?.answer

const looked = /\b(?:read|examined|reviewed|viewed|looked at|involved|relevant|discussed)\b(?!, but not)/i

const stateBelow = (under: ReadonlyArray<string>): string | undefined => {
  for (const heading of under) {
    if (heading === "<artifact_trail>") return "changed"
    // "Files read or modified" says neither.
    if (/\bnot read\b/i.test(heading) || (looked.test(heading) && stateIn(heading.replace(looked, "")) === "changed"))
      return undefined
    // A sentence is no heading of a list.
    if (heading.length > 90 && !heading.endsWith(":")) continue
    const state = /\b(?:not changed|only read)\b/i.test(heading) ? "not changed" : stateIn(heading)
    if (state !== undefined) return state
  }
  return undefined
}

/** Splits at commas outside of parentheses and braces. */
const pieces = (text: string): ReadonlyArray<string> =>
  text.match(/(?:\([^()]*\)|\{(?:[^{}]|\{[^{}]*\})*\}|[^,({])+/g) ?? []

/** Returns the statements about the single files of a group: `src/{a.ts (3 changes), b.ts}`. */
const ungrouped = (statement: Statement): ReadonlyArray<Statement> => {
  if (!statement.text.includes("{")) return [statement]
  const open = (text: string, root: string): ReadonlyArray<string> =>
    pieces(text).flatMap((piece) => {
      const [, prefix, inner, rest = ""] = /^\s*([\w./@~+-]*)\{([\s\S]*)\}([\s\S]*)$/.exec(piece) ?? []
      return prefix === undefined || inner === undefined
        ? [`${root}${piece.trim()}`]
        : [...open(inner, root + prefix), rest.trim()]
    })
  const [, heading = "", list = ""] = /^((?:[^{}]*[\s:])?)([\w./@~+-]*\{[\s\S]*)$/.exec(statement.text) ?? []
  if (list === "") return [statement]
  return open(list, "")
    .filter((text) => text !== "")
    .map((text) => ({
      ...statement,
      text,
      under: [...(heading.trim() === "" ? [] : [heading.trim()]), ...statement.under]
    }))
}

/** A name of a file in a statement: what stands before it, and after it up to the next name. */
interface FileMention {
  readonly before: string
  readonly after: string
  readonly under: ReadonlyArray<string>
}

/** The forms under which a path may stand in a context, the longest first, each with the folder that is left out. */
const formsOf = (path: string): ReadonlyArray<readonly [form: string, folder: string]> => {
  const segments = path.split("/")
  return segments.map((_, index) => [segments.slice(index).join("/"), segments.slice(0, index).join("/")])
}

const mentionOf = (
  { isQuoted, text, under }: Statement,
  path: string,
  isUnique: (name: string) => boolean
): FileMention | undefined => {
  if (isQuoted) return undefined
  for (const [form, folder] of formsOf(path)) {
    if (!text.includes(form)) continue
    const at = text.search(new RegExp(`(?<![\\w./@-])${form.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w/-]|\\.\\w)`))
    if (at < 0) continue
    const isBelow = folder !== "" && under.some((each) => hasWords(each.replace(/[/:]+$/, ""), folder))
    if (folder !== "" && !isBelow && !(form.includes("/") || isUnique(form))) continue
    return { before: text.slice(0, at), after: text.slice(at + form.length), under }
  }
  return undefined
}

const verbBefore =
  /\b(created|added|wrote|written|modified|changed|edited|updated|rewrote|fixed|implemented|refactored|extended|deleted|removed)\b(?:\W+\w+){0,2}\W*$/i

/** A command that removes the file. */
const removes = /(?:^|&& )(?:git )?rm(?: -\w+)* (?:[^&|;]* )?$/

const stateOf = ({ after, before, under }: FileMention): string | undefined => {
  const isFirst = before.trim() === ""
  const note =
    /^\s*\(([^)]*)\)/.exec(after)?.[1] ??
    (isFirst ? after.slice(0, maxNoteChars) : /^\s*[:–—]\s*([^,;]*)/.exec(after)?.[1])
  const [words = "", first] = verbBefore.exec(before) ?? []
  // What was removed from a file changed it.
  const verb = /\b(?:from|in)\b/i.test(words) ? "changed" : first
  const isListed = /^(?:[\w./@~+-]+(?:\s*\([^)]*\))?[\s,]+)*$/.test(before)
  if (removes.test(before) && resultIn(after) !== "failed" && !/exit (?:code )?[1-9]/.test(after)) return "deleted"
  return (
    (note === undefined ? undefined : stateIn(note)) ??
    (verb === undefined ? undefined : stateIn(verb)) ??
    (isListed ? stateBelow(under) : undefined)
  )
}

const toldStates = (
  statements: ReadonlyArray<Statement>,
  path: string,
  isUnique: (name: string) => boolean
): ReadonlyArray<string> =>
  statements.flatMap((statement) => {
    const mention = mentionOf(statement, path, isUnique)
    if (mention !== undefined) return stateOf(mention) ?? []
    // What is said below the name of a file is said of the file.
    const [heading] = statement.under
    if (statement.isQuoted || heading === undefined) return []
    const above = mentionOf({ ...statement, text: heading, under: [] }, path, isUnique)
    const verb =
      /^(?:created|added|wrote|modified|changed|edited|updated|rewrote|fixed|implemented|new|deleted|removed)\b/i.exec(
        statement.text
      )?.[0]
    return above?.before.trim() === "" && verb !== undefined ? (stateIn(verb) ?? []) : []
  })

// Values and items

const maxGapChars = 60

/** Whether a text gives a name this value. */
const gives = (text: string, name: string, value: string): boolean => {
  const at = text.search(wholeWord(name))
  if (at < 0) return false
  const rest = text.slice(at + name.length, at + name.length + maxGapChars + value.length + 1)
  return hasWords(rest, value)
}

const toldValues = ({ statements }: ReadContext, { earlier, expected, subject }: StateQuestion): Array<Told> =>
  statements.flatMap(({ isQuoted, text }) => {
    if (!text.includes(subject)) return []
    const entry = citedEntry(text)
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

const toldItems = ({ statements }: ReadContext, item: string, others: ReadonlyArray<string>): Array<Told> =>
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
/** A longer message may be shown by its ends. */
const maxWholeChars = 280

const isShown = (context: string, words: string, byEnds: boolean): boolean =>
  context.includes(words) ||
  (byEnds &&
    words.length > maxWholeChars &&
    context.includes(words.slice(0, endChars)) &&
    context.includes(words.slice(-endChars).trim()))

/** Whether a statement says that a command ran: it begins with it, or says so. */
const isToldRun = ({ isQuoted, text }: Statement, command: string): boolean => {
  const place = isQuoted ? undefined : around(text, command, [])
  return (
    place !== undefined &&
    (place.before.trim() === "" || /\b(?:ran|run|executed)\W*$/i.test(place.before)) &&
    !/\b(?:not|never|don't)\b/i.test(text)
  )
}

/** An answered question. */
export interface StateAnswer {
  readonly question: StateQuestion
  readonly verdict: Verdict
}

/** Answers questions from the text of a context alone. Paths are relative to the folders. */
export function* answerQuestions(
  questions: ReadonlyArray<StateQuestion>,
  text: string,
  folders: ReadonlyArray<string> = []
): SlicedWork<ReadonlyArray<StateAnswer>> {
  const context = readContext(text, folders)
  const files = context.statements.flatMap(ungrouped)
  yield text.length * 20
  const subjects = questions.map(({ subject }) => subject)
  const names = new Map<string, number>()
  for (const { kind, subject } of questions) {
    if (kind !== "file" && kind !== "never happened") continue
    const name = subject.slice(subject.lastIndexOf("/") + 1)
    names.set(name, (names.get(name) ?? 0) + 1)
  }
  const isUnique = (name: string): boolean => names.get(name) === 1
  const verdictOf = (question: StateQuestion): Verdict => {
    const { earlier, expected, kind, subject } = question
    switch (kind) {
      case "exit code":
        return judged(question, toldResults(context, subject, subjects), (answer) => isResult(expected, answer))
      case "test run":
        return judged(question, toldTests(context), (answer) => answer === expected)
      case "file": {
        const told = toldStates(files, subject, isUnique)
        if (told.includes(expected)) return "right"
        return told.length === 0 ? "absent" : told.some((answer) => earlier.includes(answer)) ? "stale" : "wrong"
      }
      case "value":
        return judged(question, toldValues(context, question), (answer) => answer === expected)
      case "item":
        return judged(question, toldItems(context, subject, subjects), (answer) => answer === expected)
      case "constraint":
      case "order":
        return isShown(context.said, plain(subject, folders), kind === "order") ? "right" : "absent"
      case "never happened":
        return isBelieved(question) ? "wrong" : "right"
    }
  }
  const isBelieved = ({ expected, subject }: StateQuestion): boolean => {
    if (expected === "not run") return context.statements.some((statement) => isToldRun(statement, subject))
    if (expected === "not done") {
      const told = toldResults(context, subject, subjects)
      return told.length > 0 && told.every(({ answer }) => answer === "0")
    }
    return toldStates(files, subject, isUnique).some((answer) => answer !== "not changed")
  }
  const answers: Array<StateAnswer> = []
  for (const question of questions) {
    answers.push({ question, verdict: verdictOf(question) })
    yield text.length * 2
  }
  return answers
}
