/** What the statements of a context say of commands and test runs. */

import { afterView } from "../compression/evidence/ReadOnlyCommands.ts"
import type { ReadContext } from "./Statements.ts"

/** What one statement says, and the number of the entry that it cites: 0 for none. */
export interface Stated {
  readonly answer: string
  readonly entry: number
}

/** Returns the number of the latest entry that a text cites; 0 for none. */
export const citedEntry = (text: string): number =>
  Math.max(0, ...[...text.matchAll(/\be([1-9]\d*)\b/g)].map(([, n]) => Number(n)))

/** What stands farther from a subject is not said of it. */
export const maxNoteChars = 200

const tells =
  /exit(?:ed)?(?: with)?(?: code)?:? (-?\d+)|(\bno (?:exit code|clear result))|(\b(?:failed|fails|failing|failure|unresolved|errors?|red)\b|[✗✘❌])|(\b(?:pass(?:ed|es|ing)?|succeeded|succeeds|success(?:ful(?:ly)?)?|clean|green|ok)\b|[✓✔✅])/gi
const nothingFailed = /\b(?:0|no|zero|without) (?:failed|failures?|failing|errors?|issues|problems|warnings)\b/gi

/** The answer of a statement that tells a failure and its end: no answer about the last run of one command. */
const resolved = "failed, then passed"

/** Returns the result that a text tells: an exit code, `failed`, or `0` for a success. The last one counts. */
export const resultIn = (text: string): string | undefined => {
  if (/\bfail(?:ed|s|ing)?\b[^\n]*\b(?:passed|passes|succeeded) (?:after|now|since|once)\b/i.test(text)) return resolved
  const last = [...text.slice(0, maxNoteChars).replace(nothingFailed, "passed").matchAll(tells)].at(-1)
  if (last === undefined) return undefined
  const [, code, none, failure] = last
  return code ?? (none !== undefined ? "unknown" : failure !== undefined ? "failed" : "0")
}

/** Returns the result that a heading tells of the commands below it: "they succeeded if no result stands beside". */
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
export const clippedPlace = (
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
export const around = (
  text: string,
  command: string,
  others: ReadonlyArray<string>
): { readonly before: string; readonly after: string } | undefined => {
  // What only chooses which lines of the output are shown belongs to no command.
  const end = (at: number, length: number) => ({ before: text.slice(0, at), after: afterView(text.slice(at + length)) })
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

/** A commit as a context tells it: its hash, and what stands after it. */
const statedCommit = /\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b[\s:`"'*–—-]*(.+)$/
const minSubjectChars = 12

/** Whether a statement tells a commit whose message is that of this command: it was made. */
const isStatedCommit = (text: string, command: string): boolean => {
  if (!/\bgit\b[^|;&]*\bcommit\b/.test(command)) return false
  const subject = (statedCommit.exec(text)?.[1] ?? "")
    .replace(/\s*\([^()]*\)\s*$/, "")
    .replace(/["'…]+$/, "")
    .trim()
  return subject.length >= minSubjectChars && command.includes(subject)
}

/** Returns the results that a context tells of a command. Of a failure and its end it counts only when nothing else is stated. */
export const statedResults = (
  { statements }: ReadContext,
  command: string,
  others: ReadonlyArray<string>
): ReadonlyArray<Stated> => {
  const stated = statements.flatMap(({ isQuoted, text, under }) => {
    const place = isQuoted ? undefined : around(text, command, others)
    if (place === undefined) {
      return !isQuoted && isStatedCommit(text, command) ? [{ answer: "0", entry: citedEntry(text) }] : []
    }
    const { after, before } = place
    const answer =
      resultIn(after) ??
      (/\b(?:failure of|failed:?)\s*$/i.test(before) ? "failed" : undefined) ??
      (/\b(?:passed|succeeded):?\s*$/i.test(before) ? "0" : undefined) ??
      (onlyWhere.test(after) ? resultBelow(under) : undefined)
    return answer === undefined ? [] : [{ answer, entry: citedEntry(after) }]
  })
  const states = stated.filter(({ answer }) => answer !== resolved)
  return states.length > 0 ? states : stated
}

/** A failure stated without its code answers the question for a code other than 0. */
export const isResult = (expected: string, answer: string): boolean =>
  expected === answer ||
  answer === resolved ||
  (expected !== "0" && (answer === "failed" || (expected === "failed" && /^-?[1-9]/.test(answer))))

const unsettled =
  /\b(?:should|must|ensure|until|make sure|if|need|will|to (?:pass|run)|verify|let me|going to|run the)\b/i

/** Returns what a context tells of the last test run: the line of its state, else every statement about tests. */
export const statedTests = ({ statements }: ReadContext): Array<Stated> => {
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
