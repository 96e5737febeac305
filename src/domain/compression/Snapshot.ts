/** The text that replaces what left the window, `<state_snapshot>`: reads, writes, merges and protects it. */

import { Brand } from "effect"
import { visibleBlock, visibleLine } from "../text/InvisibleCharacters.ts"
import { closedPart } from "../text/TextsBetween.ts"
import { isTime } from "../text/Time.ts"
import { protect, unprotect } from "../text/UntrustedText.ts"
import { estimateText } from "../tokens/Tokens.ts"
import { shortForm, wordsTag, writtenOut } from "./SnapshotShorthand.ts"

/**
 * The sections of a `<state_snapshot>`, the text that replaces the part of a conversation that left the window. Older
 * snapshots with five sections can be read too.
 */
export const sectionNames = [
  "overall_goal",
  "active_constraints",
  "task_state",
  "recent_actions",
  "artifact_trail",
  "file_system_state",
  "key_knowledge"
] as const
/** The name of a section, which is its tag. */
export type SectionName = (typeof sectionNames)[number]

/** Whether a name is that of a section. */
export const isSectionName = (name: string): boolean => sectionNames.some((section) => section === name)

/**
 * The text of a statement. Only this module creates it, so all text from a tool or a model passes through `statement` or
 * `changeItem`, and all text from the user through `userWordsItem` or `labelledWordsItem`.
 */
export type ItemText = Brand.Branded<string, "palimpsest/domain/Snapshot/ItemText">
const itemText = Brand.nominal<ItemText>()

/** One statement of a section. A newer statement supersedes an older one with the same key. */
export interface SnapshotItem {
  readonly key: string
  readonly text: ItemText
}

/** The statements of each section. A section may be empty. */
export type Snapshot = Readonly<Record<SectionName, ReadonlyArray<SnapshotItem>>>

/** Returns the snapshot of these sections. */
export const snapshotOf = (itemsOf: (name: SectionName) => ReadonlyArray<SnapshotItem>): Snapshot => ({
  overall_goal: itemsOf("overall_goal"),
  active_constraints: itemsOf("active_constraints"),
  key_knowledge: itemsOf("key_knowledge"),
  artifact_trail: itemsOf("artifact_trail"),
  file_system_state: itemsOf("file_system_state"),
  recent_actions: itemsOf("recent_actions"),
  task_state: itemsOf("task_state")
})

/** A snapshot without statements. */
export const emptySnapshot: Snapshot = snapshotOf(() => [])

const olderNames: Readonly<Record<string, SectionName>> = { current_plan: "task_state" }

const rootTag = "state_snapshot"
/** The user's exact words, and where they are. */
export interface UserWords {
  readonly entry: string
  readonly text: string
  /** When they were written, in milliseconds since 1970. */
  readonly at?: number | undefined
  /** Whether the words shown before are of the same day, so that the time says enough. */
  readonly isSameDay?: boolean | undefined
}

/** The date and the minute in UTC: `2026-02-11 14:03`, or `14:20` on the same day; empty without a valid time. */
const dated = ({ at, isSameDay = false }: UserWords): string =>
  at === undefined || !isTime(at)
    ? ""
    : ` at="${new Date(at)
        .toISOString()
        .slice(isSameDay ? 11 : 0, 16)
        .replace("T", " ")}"`

const quoted = (words: UserWords): string =>
  `<${wordsTag} entry="${words.entry}"${dated(words)}>${protect(words.text)}</${wordsTag}>`

/** Makes a statement that shows the user's exact words. The words cannot close their own tag. */
export const userWordsItem = (key: string, words: UserWords): SnapshotItem => ({ key, text: itemText(quoted(words)) })

/**
 * Makes a statement that shows the beginning and the end of the user's words, and between them how many characters are left
 * out, and where they are.
 */
export const clippedWordsItem = (
  key: string,
  words: UserWords,
  leftOut: { readonly chars: number; readonly handle: string | undefined },
  ending: string
): SnapshotItem => ({
  key,
  text: itemText(
    [
      quoted(words),
      `- … ${leftOut.chars} more characters${leftOut.handle === undefined ? "" : `: ${leftOut.handle}`} …`,
      ...(ending === "" ? [] : [quoted({ entry: words.entry, text: ending })])
    ].join("\n")
  )
})

/** Matches clipped words: a quote, a note, and the quote of their end, which has no date of its own. */
const clippedWords = new RegExp(
  `^<${wordsTag} entry="([^"]*)"[^>]*>(?:(?!</${wordsTag}>)[^])*?</${wordsTag}>\\n- … \\d+ more characters(?:: h_[a-z2-7]+)? …(?:\\n<${wordsTag} entry="\\1">[^]*?</${wordsTag}>)?`
)

const wordsPattern = new RegExp(`<${wordsTag} entry="([^"]*)"(?: at="[\\d :-]*")?>([\\s\\S]*?)</${wordsTag}>`, "g")
const wordsEnd = new RegExp(`</${wordsTag}>`, "g")
const wordsIn = (text: string) => closedPart(text, wordsEnd).matchAll(wordsPattern)

/** Returns every span that a snapshot shows as the user's words. */
export const userWordsIn = (snapshotText: string): Array<UserWords> =>
  [...wordsIn(writtenOut(snapshotText))].map(([, entry = "", text = ""]) => ({
    entry,
    text: unprotect(text)
  }))

const wordsStart = new RegExp(`<(?=/?${wordsTag}\\b)`, "gi")
const withoutWordsTags = (text: string): string => text.replace(wordsStart, "&lt;")

/**
 * Returns a text in which only the words that `isUserWords` confirms are marked as the user's. Other quotes are marked as a model's
 * words, and malformed or unclosed tags have no effect.
 */
const withoutForgedWords = (shown: string, isUserWords: (words: UserWords) => boolean): string => {
  const text = writtenOut(shown)
  let checked = ""
  let from = 0
  for (const match of wordsIn(text)) {
    const [whole, entry = "", words = ""] = match
    const isExact = withoutWordsTags(words) === words && isUserWords({ entry, text: unprotect(words) })
    checked += withoutWordsTags(text.slice(from, match.index))
    checked += isExact ? whole : `written by a model: ${withoutWordsTags(words)}`
    from = match.index + whole.length
  }
  return checked + withoutWordsTags(text.slice(from))
}

const visible = (text: string): string => visibleLine(text.trim())

/**
 * Makes a statement by code or a model: one line, followed by its detail lines. Each detail stays on one line whatever it
 * contains.
 */
export const statement = (key: string, text: string, details: ReadonlyArray<string> = []): SnapshotItem => ({
  key,
  // An indented line is not an item of its own. Escaped as a whole, because an element may span lines.
  text: itemText(
    protect(
      [
        `- ${visible(text)}`,
        ...details.flatMap((detail) => (visible(detail) === "" ? [] : [`    ${visible(detail)}`]))
      ].join("\n")
    )
  )
})

/** Makes text from another author safe for a snapshot and keeps its line breaks. Applying it twice changes nothing. */
const foreign = (text: string): string => protect(visibleBlock(unprotect(text)).replaceAll("\t", "    "))

/** Rewrites every piece of a text outside the quotes of the user's words. */
const outsideWords = (text: string, rewrite: (piece: string) => string): string => {
  let written = ""
  let from = 0
  for (const match of wordsIn(text)) {
    const [whole, , words = ""] = match
    // Only a quote that `userWordsItem` could have written counts.
    if (protect(unprotect(words)) !== words) continue
    written += rewrite(text.slice(from, match.index)) + whole
    from = match.index + whole.length
  }
  return written + rewrite(text.slice(from))
}

/** Returns the statement with another text. */
export const changeItem = ({ key, text }: SnapshotItem, change: (text: string) => string): SnapshotItem => ({
  key,
  text: itemText(outsideWords(change(text), foreign))
})

const readItem = (key: string, text: string): SnapshotItem => ({ key, text: itemText(outsideWords(text, foreign)) })

const structure = new RegExp(
  `(</?(?:${[rootTag, "scratchpad", ...sectionNames, ...Object.keys(olderNames)].join("|")})>)`,
  "g"
)

/**
 * Accepts a snapshot as a model wrote it: its elements and line breaks stay. Quotes of the user's words stay only where
 * `isUserWords` confirms them, and nothing else in it can pass for the runtime or for one of our elements.
 */
export const asModelWrote = (text: string, isUserWords: (words: UserWords) => boolean): string =>
  outsideWords(withoutForgedWords(text, isUserWords), (piece) =>
    piece
      .split(structure)
      .map((each, at) => (at % 2 === 1 ? each : foreign(each)))
      .join("")
  )

/** Removes scratchpads, in which the model thinks aloud. They are not part of the snapshot. */
export const withoutScratchpad = (text: string): string => {
  const closed = closedPart(text, /<\/scratchpad>/gi)
  const rest = closed.replace(/<scratchpad>[\s\S]*?<\/scratchpad>/gi, "") + text.slice(closed.length)
  // An unclosed scratchpad ends where the snapshot begins.
  return rest.replace(/<scratchpad>[\s\S]*?(?=<state_snapshot>|$)/gi, "").trim()
}

/** The subject of a line, behind the mark of a list. The number of an item is no path, and the stars of bold text are no mark. */
const subject =
  /^(?:[-+\d.)\s[\]x>]|\*(?!\*))*(?:\*\*([^*]+)\*\*|`([^`]+)`|(?=[^\s:]*\p{L})([^\s:]*[/._][^\s:]*)(?=[:\s]|$)|([^:\n]{2,80}):\s)/u

/** Matches the state of a file as the extractive snapshot writes it. Its key is the exact path. */
export const fileLine = /^- (.+): (read|created|modified|deleted) \(([^()]*)\)$/

/** Returns the key of a line: its bold, quoted or path-like beginning, else the whole line. */
const keyOf = (line: string): string => {
  const path = fileLine.exec(line)?.[1]
  if (path !== undefined) return unprotect(path)
  const match = subject.exec(line)
  return (match?.[1] ?? match?.[2] ?? match?.[3] ?? match?.[4] ?? line).trim().toLowerCase()
}

/** Stands in an empty section. */
const nothing = "- none"

const itemsOf = (body: string): Array<SnapshotItem> => {
  const items: Array<SnapshotItem> = []
  let label = ""
  let rest = body.trim()
  const close = `</${wordsTag}>`
  const closed = closedPart(rest, wordsEnd).length
  const total = rest.length
  while (rest !== "") {
    // Behind the last one, none has an end.
    if (rest.startsWith(`<${wordsTag} `) && total - rest.length < closed) {
      const end = rest.indexOf(close)
      if (end >= 0) {
        const quote = rest.slice(0, end + close.length)
        const text = rest.startsWith("\n- … ", quote.length) ? (clippedWords.exec(rest)?.[0] ?? quote) : quote
        items.push(readItem(label === "" ? text : label, label === "" ? text : `${label}:\n${text}`))
        label = ""
        rest = rest.slice(text.length).trimStart()
        continue
      }
    }
    // A line and the lines indented under it belong together.
    const line = /^[^\n]*(?:\n[ \t]+[^\n]+)*/.exec(rest)?.[0] ?? rest
    rest = rest
      .slice(line.length)
      .replace(/^\s*\n/, "")
      .trimStart()
    if (/^[\p{L}\p{N}_ ()',.?-]+:$/u.test(line) && rest.startsWith(`<${wordsTag} `)) label = line.slice(0, -1)
    else if (line.trim() !== "" && line.trim() !== nothing) items.push(readItem(keyOf(line), line.trimEnd()))
  }
  return items
}

/** Makes an item under its own heading, in the form that `itemsOf` reads. */
export const labelledWordsItem = (label: string, words: UserWords): SnapshotItem =>
  labelled(label, userWordsItem(label, words))

/** Puts an item of the user's words under a heading, in the form that `itemsOf` reads. */
export const labelled = (label: string, { text }: SnapshotItem): SnapshotItem => ({
  key: label,
  text: itemText(`${label}:\n${text}`)
})

/** Reads a text without sections as a snapshot: each line becomes a statement of `key_knowledge`. */
export const plainSnapshot = (text: string): Snapshot => ({
  ...emptySnapshot,
  key_knowledge: withoutScratchpad(text)
    .split("\n")
    .flatMap((line) => {
      const content = line.replace(/^\s*[-*](?:\s+|$)/, "")
      return content.trim() === "" ? [] : [statement(line.trim(), content)]
    })
})

/** Stands before words that a snapshot has as the user's, and nothing confirms. */
const unconfirmed = "written by a model: "

/** Whether a statement has such words. */
export const isUnconfirmed = ({ text }: SnapshotItem): boolean => text.startsWith(`- ${unconfirmed}`)

/**
 * Attributes words that are not the user's. Words that `isUserWords` does not confirm, and constraints without a quote, are marked
 * as written by a model.
 */
export const attributeWords = (snapshot: Snapshot, isUserWords: (words: UserWords) => boolean): Snapshot => {
  const marked = (known: SnapshotItem): SnapshotItem =>
    statement(
      known.key,
      `${unconfirmed}${unprotect(known.text.replace(/^latest request:\n/, "").replace(wordsPattern, "$2"))
        .replace(/\s+/g, " ")
        .replace(/^- /, "")
        .trim()}`
    )
  return snapshotOf((name) =>
    snapshot[name].map((known) => {
      const words = userWordsIn(known.text)
      const text = withoutForgedWords(known.text, isUserWords)
      if (words.length > 0) return text === known.text ? known : marked(known)
      const constraint = name === "active_constraints"
      return constraint && !isUnconfirmed(known) ? marked(known) : changeItem(known, () => text)
    })
  )
}

/** Why a text is not a usable snapshot. */
export type SnapshotProblem = "no snapshot" | "not closed" | "more than one snapshot" | "no section" | "nested section"

/** Says in a sentence what was written instead of a snapshot. */
export const unusableText = (problem: string): string =>
  problem === "no snapshot" ? problem : `an unusable snapshot (${problem})`

/** Returns the body of an element, up to its first closing tag. Protected text cannot contain one. */
const bodyOf = (text: string, name: string): string | undefined =>
  new RegExp(`<${name}>([\\s\\S]*?)</${name}>`, "i").exec(closedPart(text, new RegExp(`</${name}>`, "gi")))?.[1]

/** Reads a snapshot from a text. Tolerates prose around it and the older five sections. */
export const parseSnapshot = (text: string): Snapshot | SnapshotProblem => {
  const clean = withoutScratchpad(text)
  const opened = clean.match(new RegExp(`<${rootTag}>`, "gi"))?.length ?? 0
  if (opened === 0) return "no snapshot"
  const written = bodyOf(clean, rootTag)
  if (written === undefined) return "not closed"
  const body = writtenOut(written)
  if (opened > 1) return "more than one snapshot"
  const sections: Record<SectionName, ReadonlyArray<SnapshotItem>> = { ...emptySnapshot }
  let sectionCount = 0
  for (const name of [...sectionNames, ...Object.keys(olderNames)]) {
    const section = bodyOf(body, name)
    if (section === undefined) continue
    if (sectionNames.some((other) => new RegExp(`</?${other}>`, "i").test(section))) return "nested section"
    sectionCount += 1
    const target = sectionNames.find((known) => known === name) ?? olderNames[name]
    if (target !== undefined) sections[target] = [...sections[target], ...itemsOf(section)]
  }
  return sectionCount === 0 ? "no section" : sections
}

/** Whether `parseSnapshot` returned a snapshot and not a problem. */
export const isSnapshot = (value: Snapshot | SnapshotProblem): value is Snapshot => typeof value !== "string"

/** Merges two snapshots. A newer statement replaces an older one with the same key, and newer statements come first. */
export const mergeSnapshots = (older: Snapshot, newer: Snapshot): Snapshot => {
  return snapshotOf((name) => {
    const keys = new Set(newer[name].map((item) => item.key))
    const texts = new Set(newer[name].map((item) => item.text))
    return [...newer[name], ...older[name].filter((item) => !keys.has(item.key) && !texts.has(item.text))]
  })
}

/** Renders a snapshot as text. Sections without statements are left out. */
export const renderSnapshot = (snapshot: Snapshot): string => {
  const sections = sectionNames.flatMap((name) => {
    const body = shortForm(snapshot[name].map((item) => item.text))
    return body === "" ? [] : [`<${name}>\n${body}\n</${name}>`]
  })
  // A snapshot can be read even when nothing fitted.
  if (sections.length === 0) sections.push(`<task_state>\n${nothing}\n</task_state>`)
  return `<${rootTag}>\n${sections.join("\n")}\n</${rootTag}>`
}

/** Returns the tokens of the rendered snapshot. */
export const snapshotTokens = (snapshot: Snapshot): number => estimateText(renderSnapshot(snapshot))
