import { estimateText } from "./Tokens.ts"

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

/** One statement of a section. Of two with the same key the newer supersedes the older. */
export interface Item {
  readonly key: string
  readonly text: string
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
const reserved = [rootTag, "scratchpad", wordsTag, ...sectionNames, ...Object.keys(olderNames)]
const names = reserved.join("|")

const tagStart = new RegExp(`<(?=/?(?:${names})\\b)`, "gi")
const escapedStart = new RegExp(`&(?=(?:amp;)*lt;/?(?:${names})\\b)`, "gi")

/** Text that cannot open or close anything of a snapshot. All else in it stays as it is; `unprotect` gives it back. */
export const protect = (text: string): string => text.replace(escapedStart, "&amp;").replace(tagStart, "&lt;")

const protectedStart = new RegExp(`&lt;(?=/?(?:${names})\\b)`, "gi")
const doubleStart = new RegExp(`&amp;(?=(?:amp;)*lt;/?(?:${names})\\b)`, "gi")

/** The text that `protect` was given. */
export const unprotect = (text: string): string => text.replace(protectedStart, "<").replace(doubleStart, "&")

/** The user's exact words, and where they stand. */
export interface Words {
  readonly entry: string
  readonly text: string
}

/** A statement that shows the user's exact words. They cannot close their own tag. */
export const wordsItem = (key: string, words: Words): Item => ({
  key,
  text: `<${wordsTag} entry="${words.entry}">${protect(words.text)}</${wordsTag}>`
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

/** A statement by code or a model. */
export const item = (key: string, text: string): Item => ({
  key,
  // Lines of one item are indented, or they would be read as items of their own.
  text: `- ${protect(text.trim()).replace(/\s*\n\s*/g, "\n    ")}`
})

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
        items.push({ key: label === "" ? text : label, text: label === "" ? text : `${label}:\n${text}` })
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
    else if (line.trim() !== "" && line.trim() !== nothing) items.push({ key: keyOf(line), text: line.trimEnd() })
  }
  return items
}

/** An item under a heading of its own, as `itemsOf` reads it. */
export const labelled = (label: string, words: Words): Item => ({
  key: label,
  text: `${label}:\n${wordsItem(label, words).text}`
})

/** Words without a form, line by line, as what is known. */
export const plainSnapshot = (text: string): Snapshot => ({
  ...emptySnapshot,
  key_knowledge: withoutScratchpad(text)
    .split("\n")
    .flatMap((line) => (line.trim() === "" ? [] : [item(line.trim(), line.replace(/^\s*[-*]\s+/, ""))]))
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
      return constraint && !known.text.startsWith("- written by a model: ") ? marked(known) : { ...known, text }
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
