import { Brand } from "effect"
import { protect, unprotect } from "./Protected.ts"
import { estimateText } from "./Tokens.ts"
import { visibleBlock, visibleLine } from "./Visible.ts"

/**
 * The `<state_snapshot>`: what stands for the part of a conversation that left the window. Seven sections (seed 001 §4); the
 * five of older ones are read too.
 */
export const sectionNames = [
  "overall_goal",
  "active_constraints",
  "key_knowledge",
  "artifact_trail",
  "file_system_state",
  "recent_actions",
  "task_state"
] as const
/** A section, by its tag. */
export type SectionName = (typeof sectionNames)[number]

/**
 * The text of a statement. Only this module makes one, so that whatever a snapshot takes from a tool or a model has gone
 * through `item`, `listItem` or `changed`, and what it takes from the user through `wordsItem` or `labelled`.
 */
export type ItemText = Brand.Branded<string, "palimpsest/domain/Snapshot/ItemText">
const itemText = Brand.nominal<ItemText>()

/** One statement of a section. Of two with the same key the newer supersedes the older. */
export interface Item {
  readonly key: string
  readonly text: ItemText
}

/** The statements of each section. A section may be empty. */
export type Snapshot = Readonly<Record<SectionName, ReadonlyArray<Item>>>

/** A snapshot that says nothing. */
export const emptySnapshot: Snapshot = {
  overall_goal: [],
  active_constraints: [],
  key_knowledge: [],
  artifact_trail: [],
  file_system_state: [],
  recent_actions: [],
  task_state: []
}

/** Sections of older snapshots that have another name today (specs 002 and 003). */
const olderNames: Readonly<Record<string, SectionName>> = { current_plan: "task_state" }

const rootTag = "state_snapshot"
/** Holds an exact span of what the user wrote. */
const wordsTag = "user_words"
/** The user's exact words, and where they stand. */
export interface Words {
  readonly entry: string
  readonly text: string
}

/** A statement that shows the user's exact words. They cannot close their own tag. */
export const wordsItem = (key: string, words: Words): Item => ({
  key,
  text: itemText(`<${wordsTag} entry="${words.entry}">${protect(words.text)}</${wordsTag}>`)
})

const wordsPattern = new RegExp(`<${wordsTag} entry="([^"]*)">([\\s\\S]*?)</${wordsTag}>`, "g")

/** Every span that a snapshot shows as the user's words (law 6). */
export const wordsIn = (snapshotText: string): Array<Words> =>
  [...snapshotText.matchAll(wordsPattern)].map(([, entry = "", text = ""]) => ({ entry, text: unprotect(text) }))

const wordsStart = new RegExp(`<(?=/?${wordsTag}\\b)`, "gi")
const withoutWordsTags = (text: string): string => text.replace(wordsStart, "&lt;")

/**
 * A text in which only what `said` knows for the user's words stands as such. Other quotes are marked as a model's words,
 * and tags that are malformed or never closed open nothing.
 */
export const withoutForgedWords = (text: string, said: (words: Words) => boolean): string => {
  let checked = ""
  let from = 0
  for (const match of text.matchAll(wordsPattern)) {
    const [whole, entry = "", words = ""] = match
    const isExact = withoutWordsTags(words) === words && said({ entry, text: unprotect(words) })
    checked += withoutWordsTags(text.slice(from, match.index))
    checked += isExact ? whole : `written by a model: ${withoutWordsTags(words)}`
    from = match.index + whole.length
  }
  return checked + withoutWordsTags(text.slice(from))
}

const line = (text: string): string => protect(visibleLine(text.trim()))

/** A statement by code or a model: one line, and the lines that belong to it, each of them one whatever stands in it. */
export const item = (key: string, text: string, details: ReadonlyArray<string> = []): Item => ({
  key,
  // What is indented is no item of its own.
  text: itemText([`- ${line(text)}`, ...details.map((detail) => `    ${line(detail)}`)].join("\n"))
})

/** A statement that lists names behind a heading. */
export const listItem = (key: string, heading: string, names: ReadonlyArray<string>): Item => ({
  key,
  text: itemText([`- ${heading}`, ...names.map(line)].join(" "))
})

/** Text that somebody else wrote, as it may stand in a snapshot: its line breaks stay. Done twice it is the same. */
const foreign = (text: string): string => protect(visibleBlock(unprotect(text)).replaceAll("\t", "    "))

/** Every piece of a text that is no quote of the user's words, rewritten. */
const outsideWords = (text: string, rewrite: (piece: string) => string): string => {
  let written = ""
  let from = 0
  for (const match of text.matchAll(wordsPattern)) {
    const [whole, , words = ""] = match
    // Only what `wordsItem` could have written is a quote.
    if (protect(unprotect(words)) !== words) continue
    written += rewrite(text.slice(from, match.index)) + whole
    from = match.index + whole.length
  }
  return written + rewrite(text.slice(from))
}

/** A statement with another text. */
export const changed = ({ key, text }: Item, change: (text: string) => string): Item => ({
  key,
  text: itemText(outsideWords(change(text), foreign))
})

const readItem = (key: string, text: string): Item => ({ key, text: itemText(outsideWords(text, foreign)) })

const structure = new RegExp(
  `(</?(?:${[rootTag, "scratchpad", ...sectionNames, ...Object.keys(olderNames)].join("|")})>)`,
  "g"
)

/**
 * A snapshot that is taken as a model wrote it: its elements and line breaks stay, quotes of the user's words only where
 * `said` knows them, and nothing else in it can pass for the runtime or for an element of ours.
 */
export const asWritten = (text: string, said: (words: Words) => boolean): string =>
  outsideWords(withoutForgedWords(text, said), (piece) =>
    piece
      .split(structure)
      .map((each, at) => (at % 2 === 1 ? each : foreign(each)))
      .join("")
  )

/** A scratchpad is the model thinking aloud; it is no part of the snapshot. */
export const withoutScratchpad = (text: string): string => {
  const closed = text.replace(/<scratchpad>[\s\S]*?<\/scratchpad>/gi, "")
  // One that is never closed ends where the snapshot begins.
  return closed.replace(/<scratchpad>[\s\S]*?(?=<state_snapshot>|$)/gi, "").trim()
}

const subject = /^[-*+\d.)\s[\]x>]*(?:\*\*([^*]+)\*\*|`([^`]+)`|([^\s:]*[/._][^\s:]*)(?=[:\s]|$)|([^:\n]{2,80}):\s)/

/** A line that tells the state of a file, as the extractive snapshot writes it: its key is the path, letter by letter. */
export const fileLine = /^- (.+): (read|created|modified|deleted) \(([^()]*)\)$/

/** What a line speaks of: its bold, quoted or path-like beginning, else all of it. */
const keyOf = (line: string): string => {
  const path = fileLine.exec(line)?.[1]
  if (path !== undefined) return unprotect(path)
  const match = subject.exec(line)
  return (match?.[1] ?? match?.[2] ?? match?.[3] ?? match?.[4] ?? line).trim().toLowerCase()
}

/** Stands in a section that has nothing to say. */
const nothing = "- none"

const itemsOf = (body: string): Array<Item> => {
  const items: Array<Item> = []
  let label = ""
  let rest = body.trim()
  while (rest !== "") {
    if (rest.startsWith(`<${wordsTag} `)) {
      const close = `</${wordsTag}>`
      const end = rest.indexOf(close)
      if (end >= 0) {
        const text = rest.slice(0, end + close.length)
        items.push(readItem(label === "" ? text : label, label === "" ? text : `${label}:\n${text}`))
        label = ""
        rest = rest.slice(end + close.length).trimStart()
        continue
      }
    }
    // A line and what is indented under it belong together.
    const line = /^[^\n]*(?:\n[ \t]+[^\n]+)*/.exec(rest)?.[0] ?? rest
    rest = rest
      .slice(line.length)
      .replace(/^\s*\n/, "")
      .trimStart()
    if (/^[\w ()',.-]+:$/.test(line) && rest.startsWith(`<${wordsTag} `)) label = line.slice(0, -1)
    else if (line.trim() !== "" && line.trim() !== nothing) items.push(readItem(keyOf(line), line.trimEnd()))
  }
  return items
}

/** An item under a heading of its own, as `itemsOf` reads it. */
export const labelled = (label: string, words: Words): Item => ({
  key: label,
  text: itemText(`${label}:\n${wordsItem(label, words).text}`)
})

/** Words without a form, line by line, as what is known. */
export const plainSnapshot = (text: string): Snapshot => ({
  ...emptySnapshot,
  key_knowledge: withoutScratchpad(text)
    .split("\n")
    .flatMap((line) => {
      const said = line.replace(/^\s*[-*](?:\s+|$)/, "")
      return said.trim() === "" ? [] : [item(line.trim(), said)]
    })
})

/**
 * An earlier snapshot as far as somebody stands for it (law 6): words that `said` does not know for the user's, and
 * constraints that quote nobody, are marked as written by a model.
 */
export const trusted = (snapshot: Snapshot, said: (words: Words) => boolean): Snapshot => {
  const marked = (known: Item): Item =>
    item(
      known.key,
      `written by a model: ${unprotect(known.text.replace(wordsPattern, "$2"))
        .replace(/\s+/g, " ")
        .replace(/^- /, "")
        .trim()}`
    )
  const judged: Record<SectionName, ReadonlyArray<Item>> = { ...emptySnapshot }
  for (const name of sectionNames) {
    judged[name] = snapshot[name].map((known) => {
      const words = wordsIn(known.text)
      const text = withoutForgedWords(known.text, said)
      if (words.length > 0) return text === known.text ? known : marked(known)
      const constraint = name === "active_constraints"
      return constraint && !known.text.startsWith("- written by a model: ") ? marked(known) : changed(known, () => text)
    })
  }
  return judged
}

/** Why a text is no usable snapshot. */
export type SnapshotProblem = "no snapshot" | "not closed" | "more than one snapshot" | "no section" | "nested section"

/** The body of an element, to its first closing tag: protected text cannot hold one. */
const bodyOf = (text: string, name: string): string | undefined =>
  new RegExp(`<${name}>([\\s\\S]*?)</${name}>`, "i").exec(text)?.[1]

/** Reads a snapshot out of a text, tolerant of prose around it and of the older five sections. */
export const parse = (text: string): Snapshot | SnapshotProblem => {
  const clean = withoutScratchpad(text)
  const opened = clean.match(new RegExp(`<${rootTag}>`, "gi"))?.length ?? 0
  if (opened === 0) return "no snapshot"
  const body = bodyOf(clean, rootTag)
  if (body === undefined) return "not closed"
  if (opened > 1) return "more than one snapshot"
  const sections: Record<SectionName, ReadonlyArray<Item>> = { ...emptySnapshot }
  let found = 0
  for (const name of [...sectionNames, ...Object.keys(olderNames)]) {
    const section = bodyOf(body, name)
    if (section === undefined) continue
    if (sectionNames.some((other) => new RegExp(`</?${other}>`, "i").test(section))) return "nested section"
    found += 1
    const target = sectionNames.find((known) => known === name) ?? olderNames[name]
    if (target !== undefined) sections[target] = [...sections[target], ...itemsOf(section)]
  }
  return found === 0 ? "no section" : sections
}

/** Whether `parse` found a snapshot, and not why it is none. */
export const isSnapshot = (value: Snapshot | SnapshotProblem): value is Snapshot => typeof value !== "string"

/** What is missing from a snapshot that a reader would look for. */
export const validate = (snapshot: Snapshot): ReadonlyArray<SectionName> =>
  sectionNames.filter((name) => snapshot[name].length === 0)

/** The newer snapshot, and of the older one what it does not speak of. Newer statements come first. */
export const merge = (older: Snapshot, newer: Snapshot): Snapshot => {
  const merged: Record<SectionName, ReadonlyArray<Item>> = { ...emptySnapshot }
  for (const name of sectionNames) {
    const keys = new Set(newer[name].map((item) => item.key))
    const texts = new Set(newer[name].map((item) => item.text))
    merged[name] = [...newer[name], ...older[name].filter((item) => !keys.has(item.key) && !texts.has(item.text))]
  }
  return merged
}

/** The snapshot as text: always all seven sections, so that a reader finds each where it looks. */
export const render = (snapshot: Snapshot): string => {
  const sections = sectionNames.map((name) => {
    const body = snapshot[name].map((item) => item.text).join("\n")
    return `  <${name}>\n${body === "" ? nothing : body}\n  </${name}>`
  })
  return `<${rootTag}>\n${sections.join("\n")}\n</${rootTag}>`
}

/** Tokens of a snapshot as it is rendered. */
export const snapshotTokens = (snapshot: Snapshot): number => estimateText(render(snapshot))
