/** Divides the budget of a snapshot that code writes among its sections, and fits texts into their shares. */

import { escape as escapeRegExp } from "effect/RegExp"
import { firstUnits, lastUnits } from "../../text/Bytes.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { estimateText } from "../../tokens/Tokens.ts"
import type { Evidence } from "../evidence/Evidence.ts"
import type { Span } from "../evidence/UserRequests.ts"
import { type SectionName, type SnapshotItem, statement } from "../Snapshot.ts"
import { amongOthers } from "../SnapshotShorthand.ts"

/**
 * Options of the extractive snapshot. Code writes it from evidence alone, without a model, so the same conversation always
 * gives the same text. Each section has a share of one budget.
 */
export interface ExtractOptions {
  /** Upper bound for the rendered snapshot, in estimated tokens. */
  readonly budget: number
  /** What the user wants kept. Names and sentences that mention it come first. */
  readonly focus?: string | undefined
  /** Texts that stay in the window. Their names are not indexed again. */
  readonly kept: ReadonlyArray<string>
  readonly cwd?: string | undefined
  /** Every message of the user up to the end of the entries, oldest first. Absent: those in the entries. */
  readonly messages?: ReadonlyArray<Span> | undefined
  /** Spans to show verbatim: the original request and the user's pins. */
  readonly pins?:
    | {
        readonly original?: Span | undefined
        readonly pinned?: ReadonlyArray<Span> | undefined
      }
    | undefined
}

/**
 * Shares of the budget. They grow or shrink together, so that sections and index fill the budget; a section that has less to
 * say leaves its share to the others. A second number is the least share of what comes before all else, in few words: every message of
 * the user at least by its ends (or else the latest ones), all items, all changed files, the last results of commands, the agent's last
 * words, and the files that were read or named. Those shrink only below `fullScale`, where nothing else is left to shrink, the messages last.
 */
const shares = {
  messages: [0.22, 0.6],
  latestMessages: [0.22, 0.41],
  attachments: [0.05],
  pinned: [0.2],
  constraints: [0.05],
  now: [0.07, 0.07],
  before: [0.03],
  failures: [0.05],
  todos: [0.06, 0.1],
  commits: [0.04, 0.06],
  commands: [0.13, 0.14],
  changed: [0.14, 0.1],
  edits: [0.08],
  read: [0.07, 0.06],
  named: [0.04, 0.04],
  decisions: [0.05],
  settled: [0.05, 0.03],
  reports: [0.04],
  task: [0.05],
  summary: [0.06],
  carried: [0.08],
  // What a model wrote is bounded before.
  written: [1]
} satisfies Record<string, readonly [grows: number, least?: number]>

/** The scale above which the least shares are given in full. */
export const fullScale = 0.15

/** Names a share of the budget. */
export type ShareName = keyof typeof shares

/** Returns the tokens of a share of a budget at a scale. `need`: the tokens that are enough of its least share. */
export const shareOf = (name: ShareName, budget: number, scale: number, need = budget): number => {
  const [grows, least = 0]: ReadonlyArray<number> = shares[name]
  const shrunk = Math.min(1, (scale / fullScale) * (name === "messages" ? 2 : 1))
  return Math.floor(Math.max(budget * scale * (grows ?? 0), Math.min(need, budget * least) * shrunk))
}

const scaleRounds = 8

/** Returns the largest scale, about, at which something fits: the least one where it fits at none. */
export function* largestScale(
  { largest, least }: { readonly least: number; readonly largest: number },
  fits: (scale: number) => boolean
): SlicedWork<number> {
  let [low, high] = [least, largest]
  for (let round = 1; round <= scaleRounds; round += 1) {
    const middle = Math.sqrt(low * high)
    if (fits(middle)) low = middle
    else high = middle
    yield
  }
  return low
}

/** A part of a section. */
export interface SectionPart {
  readonly section: SectionName
  readonly share: ShareName
  /** The tokens that are enough of its least share. Absent: it may have all. */
  readonly need: number | undefined
  /** Whether it stands before the other parts of its section. */
  readonly isFirst?: boolean
  /** Writes it within its share. `before`: gives a section so far. What does not depend on them is made once, for all scales. */
  readonly write: (
    tokens: number,
    before: (name: SectionName) => ReadonlyArray<SnapshotItem>
  ) => ReadonlyArray<SnapshotItem>
}

/** Makes a part of what writes it, or of the items that fit its share, the best first. */
export const partOf = (
  section: SectionName,
  share: ShareName,
  content: SectionPart["write"] | ReadonlyArray<SnapshotItem>,
  need?: number
): SectionPart => ({
  section,
  share,
  need,
  write: typeof content === "function" ? content : (tokens) => withinBudget(content, tokens)
})

/** What a snapshot is written from. */
export interface Material {
  readonly evidence: Evidence
  readonly options: ExtractOptions
  /** The words of the user's focus. */
  readonly focus: ReadonlyArray<string>
  /** The names of the conversation, best first. */
  readonly names: ReadonlyArray<string>
  /** Every message of the user that the snapshot shows, oldest first. */
  readonly messages: ReadonlyArray<Span>
  /** The paths that were named, best first, without those that a tool read or changed. */
  readonly namedFiles: ReadonlyArray<string>
  /** The sentences of all messages of the user that constrain the work, oldest first, each once. */
  readonly constraints: ReadonlyArray<Span>
  /** Shows paths below the working directory relative to it. */
  readonly short: (text: string) => string
}

/** Returns a function that shows paths below a folder relative to it, and commands without the step into it. */
export const shortener = (folder = ""): ((text: string) => string) => {
  const root = folder.replace(/\/+$/, "")
  // `/w/app-2` and `/w/app.old` lie beside `/w/app`.
  const itself = new RegExp(`${escapeRegExp(root)}(?![\\p{L}\\p{N}_-]|\\.[\\p{L}\\p{N}])`, "gu")
  return (text) =>
    root.length < 3
      ? text
      : text
          .replaceAll(`${root}/`, "")
          .replace(itself, ".")
          .replace(/\bcd (["']?)\.\1 && /g, "")
}

const costs = new WeakMap<SnapshotItem, number>()

/** Returns the tokens of an item among others in a snapshot. */
export const cost = (item: SnapshotItem): number => {
  const tokens = costs.get(item) ?? estimateText(amongOthers(item.text)) + 1
  costs.set(item, tokens)
  return tokens
}

/** Returns what fits the budget, in order. What does not fit is skipped, and something smaller after it may still fit. */
export const fitting = <A>(all: Iterable<A>, budget: number, tokensOf: (one: A) => number): ReadonlyArray<A> => {
  let left = budget
  return [...all].filter((one) => {
    const tokens = tokensOf(one)
    if (tokens > left) return false
    left -= tokens
    return true
  })
}

/** Returns the items that fit the budget. */
export const withinBudget = (items: Iterable<SnapshotItem>, budget: number): ReadonlyArray<SnapshotItem> =>
  fitting(items, budget, cost)

/** Returns where something is: its entry, and its handle if it has one. */
export const ofEntry = (entry: string, handle: string | undefined): string =>
  handle === undefined ? entry : `${entry} ${handle}`

/** Whether a text mentions one of the words. */
export const touchesFocus = (text: string, focus: ReadonlyArray<string>): boolean => {
  const lower = text.toLowerCase()
  return focus.some((word) => lower.includes(word))
}

/** Returns the words of a focus that can be looked for. */
export const focusWords = (focus: string | undefined): Array<string> =>
  (focus ?? "")
    .toLowerCase()
    .match(/[\p{L}\p{N}_./-]{3,}/gu)
    ?.filter((word) => !/^(?:the|and|keep|for|with|that|this)$/.test(word)) ?? []

/** Returns the values in reverse order. */
export const newestFirst = <A>(values: Iterable<A>): Array<A> => [...values].reverse()

/** Moves texts that mention the focus to the front. */
export const focused = <A extends { readonly text: string }>(
  focus: ReadonlyArray<string>,
  all: ReadonlyArray<A>
): Array<A> => [
  ...all.filter(({ text }) => touchesFocus(text, focus)),
  ...all.filter(({ text }) => !touchesFocus(text, focus))
]

/** Returns a text on one line, its middle left out when it is longer. */
export const byEnds = (text: string, length: number): string => endsOf(unformatted(text), length)

/** Returns a text without emphasis, headings of Markdown and blank lines, its lines without their indents. */
export const linesOf = (text: string): string =>
  text
    .replace(/\*\*|^#+ /gm, "")
    .replace(/\s*\n\s*/g, "\n")
    .trim()

/** Returns a text on one line. */
export const unformatted = (text: string): string => linesOf(text).replace(/\s+/g, " ")

/** Returns a line, its middle left out when it is longer. */
export const endsOf = (line: string, length: number): string => {
  if (line.length <= length) return line
  return `${firstUnits(line, Math.floor(length * 0.65)).trimEnd()} … ${lastUnits(line, Math.floor(length * 0.33)).trimStart()}`
}

/** Puts texts of one key next to each other, in the order of the first of each. */
export const sideBySide = (all: ReadonlyArray<string>, keyOf: (one: string) => string): ReadonlyArray<string> => {
  const groups = new Map<string, Array<string>>()
  for (const one of all) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one])
  return [...groups.values()].flat()
}

const topOf = (path: string): string => path.split("/", 1)[0] ?? ""
/** Returns the folder of a path, with its slash; empty for a name without one. */
const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1)

/** A line of a listing, and its tokens. */
export interface ListedLine {
  readonly text: string
  readonly tokens: number
}

/** Returns the text as a line of a listing. */
export const listedLine = (text: string): ListedLine => ({ text, tokens: estimateText(text) + 2 })

/** Returns one statement with as many of the lines of files as fit the budget; none for no lines. */
export const listing = (
  key: string,
  heading: string,
  lines: ReadonlyArray<ListedLine>,
  budget: number
): Array<SnapshotItem> => {
  let left = budget - estimateText(heading) - 2
  const folders = new Set<string>()
  const fitting = lines.flatMap(({ text, tokens }) => {
    const folder = folderOf(text)
    // Below a folder that stands there already, a file takes its own name and the indent.
    const size = folders.has(folder) ? Math.max(3, tokens - estimateText(folder) + 1) : tokens
    if (size > left) return []
    left -= size
    folders.add(folder)
    return [text]
  })
  return fitting.length === 0 ? [] : [statement(key, heading, sideBySide(sideBySide(fitting, folderOf), topOf))]
}
