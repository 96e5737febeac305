/** What the statements of a context say of files. */

import { escape as escapeRegExp } from "effect/RegExp"
import { maxNoteChars, resultIn } from "./StatedResults.ts"
import { hasWords, type Statement } from "./Statements.ts"
import { listItems, withoutBraces } from "./WholeWords.ts"

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

/** Returns the statements about the single files of a group: `src/{a.ts (3 changes), b.ts}`. */
export const ungrouped = (statement: Statement): ReadonlyArray<Statement> => {
  const { text, under } = statement
  const [, heading = "", list = ""] = /^((?:[^{}]*[\s:])?)([\w./@~+-]*\{[^]*)$/.exec(text) ?? []
  if (list === "") return [statement]
  const above = heading.trim() === "" ? under : [heading.trim(), ...under]
  return listItems(withoutBraces(list)).map((item) => ({ ...statement, text: item, under: above }))
}

/** A name of a file in a statement: what stands before it, and after it up to the next name. */
interface FileMention {
  readonly before: string
  readonly after: string
  readonly under: ReadonlyArray<string>
}

/** A form under which a path may stand in a context. */
interface PathForm {
  readonly form: string
  /** The folder that is left out. */
  readonly folder: string
  readonly pattern: RegExp
}

/** The forms of a path, the longest first. */
interface PathForms {
  /** The end that every form has. */
  readonly name: string
  readonly forms: ReadonlyArray<PathForm>
}

const formsOf = (path: string): PathForms => {
  const segments = path.split("/")
  const forms = segments.map((_, index): PathForm => {
    const form = segments.slice(index).join("/")
    const pattern = new RegExp(`(?<![\\w./@-])${escapeRegExp(form)}(?![\\w/-]|\\.\\w)`)
    return { form, folder: segments.slice(0, index).join("/"), pattern }
  })
  return { name: segments.at(-1) ?? "", forms }
}

const mentionOf = (
  { isQuoted, text, under }: Statement,
  { forms, name }: PathForms,
  isUnique: (name: string) => boolean
): FileMention | undefined => {
  if (isQuoted || !text.includes(name)) return undefined
  for (const { folder, form, pattern } of forms) {
    if (!text.includes(form)) continue
    const at = text.search(pattern)
    if (at < 0) continue
    const isBelow = folder !== "" && under.some((each) => hasWords(each.replace(/[/:]+$/, ""), folder))
    if (folder !== "" && !isBelow && !(form.includes("/") || isUnique(form))) continue
    return { before: text.slice(0, at), after: text.slice(at + form.length), under }
  }
  return undefined
}

/** Somebody did it: the verb begins a sentence, or follows who did it. "They are added to" says what could be done. */
const verbBefore =
  /(?:^(?:last )?|[:;.,] (?:\w+ )?|\b(?:I|we|I've|we've|have|has|then|and) )(created|added|wrote|written|modified|changed|edited|updated|rewrote|fixed|implemented|refactored|extended|deleted|removed)\b(?:\W+\w+){0,2}\W*$/i

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

/** Returns the states that statements tell of a file: `changed`, `deleted`, `not changed`. A name alone counts if it is unique. */
export const statedStates = (
  statements: ReadonlyArray<Statement>,
  path: string,
  isUnique: (name: string) => boolean
): ReadonlyArray<string> => {
  const forms = formsOf(path)
  return statements.flatMap((statement) => {
    const mention = mentionOf(statement, forms, isUnique)
    if (mention !== undefined) return stateOf(mention) ?? []
    // What is said below the name of a file is said of the file.
    const [heading] = statement.under
    if (statement.isQuoted || heading === undefined) return []
    const above = mentionOf({ ...statement, text: heading, under: [] }, forms, isUnique)
    const verb =
      /^(?:created|added|wrote|modified|changed|edited|updated|rewrote|fixed|implemented|new|deleted|removed)\b/i.exec(
        statement.text
      )?.[0]
    return above?.before.trim() === "" && verb !== undefined ? (stateIn(verb) ?? []) : []
  })
}
