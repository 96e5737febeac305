/**
 * The snapshot that code writes, without a model: a handover (the user's words, where the work stands, what was done and
 * learned), then an index of names.
 */

import type { Entry } from "../../conversation/Conversation.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { estimateText } from "../../tokens/Tokens.ts"
import type { AuditResult } from "../Compression.ts"
import { type Evidence, gatherEvidence } from "../evidence/Evidence.ts"
import { constraintsIn, type Span } from "../evidence/UserRequests.ts"
import {
  emptySnapshot,
  renderSnapshot,
  type SectionName,
  type Snapshot,
  type SnapshotItem,
  snapshotTokens
} from "../Snapshot.ts"
import { shortForm, writtenOut } from "../SnapshotShorthand.ts"
import {
  cost,
  type ExtractOptions,
  focusWords,
  largestScale,
  type Material,
  newestFirst,
  shortener,
  touchesFocus,
  fullScale
} from "./Budget.ts"
import { choiceText, focusSides } from "./FocusQuestion.ts"
import { indexedNames, indexItems, isIndex, namesIn, rankedNames, namedPaths } from "./NameIndex.ts"
import { sectionWriter } from "./Sections.ts"
import { clippedStatements } from "./WrittenSections.ts"

/** A snapshot, its text within the budget, and the audit of its facts. */
export interface ExtractedSnapshot {
  readonly snapshot: Snapshot
  readonly text: string
  readonly audit: AuditResult
}

/** The largest share of the index. */
const indexShare = 0.4
/** Its share where the sections hardly fit. */
const leastIndexShare = 0.34

/** Items of a kind that are looked at, by tokens of the budget: more than fit. */
const itemsPerToken = 1 / 40
const minItems = 60

/** Returns the evidence with the latest items of each kind alone. */
const latestOf = (evidence: Evidence, budget: number): Evidence => {
  const maxItems = Math.max(minItems, Math.ceil(budget * itemsPerToken))
  const latest = <K, V>(all: Map<K, V>, count = maxItems): Map<K, V> =>
    all.size <= count ? all : new Map([...all].slice(-count))
  return {
    ...evidence,
    files: latest(evidence.files, maxItems * 5),
    commands: latest(evidence.commands, maxItems * 4),
    failures: latest(evidence.failures),
    constraints: evidence.constraints.slice(-maxItems * 5),
    commits: evidence.commits.slice(-maxItems),
    decisions: evidence.decisions.slice(-maxItems),
    reports: evidence.reports.slice(-maxItems),
    settled: evidence.settled.slice(-maxItems)
  }
}

/** Returns the evidence without the files and items that the user lets go. The user's messages stay. */
const withoutReleased = (evidence: Evidence, released: ReadonlySet<string>): Evidence => {
  const { todos } = evidence
  return {
    ...evidence,
    files: new Map([...evidence.files].filter(([path]) => !released.has(choiceText(path)))),
    todos: todos && { ...todos, todos: todos.todos.filter(({ text }) => !released.has(choiceText(text))) }
  }
}

/** A shorter message may begin another one by chance. */
const minResentChars = 40

/** Returns the messages without those that the user sent again with more words at their end. The first one has its place. */
const withoutResent = (messages: ReadonlyArray<Span>): ReadonlyArray<Span> =>
  messages.filter(
    ({ text }, index) =>
      index === 0 || text.length < minResentChars || messages[index + 1]?.text.startsWith(text) !== true
  )

/** Returns what a snapshot of this evidence is written from. */
function* materialOf(whole: Evidence, options: ExtractOptions): SlicedWork<Material> {
  const { goes, kept } = focusSides(options.focus ?? "")
  const released = new Set(goes)
  const evidence = latestOf(released.size === 0 ? whole : withoutReleased(whole, released), options.budget)
  const focus = focusWords(kept)
  const isWanted = (name: string) => focus.length > 0 && touchesFocus(name, focus)
  const names = (yield* rankedNames(evidence, isWanted, options.cwd)).filter((name) => !released.has(name))
  const messages = withoutResent(options.messages ?? evidence.requests)
  // A message that was shown whole before may be clipped now, so its constraints are looked for again.
  const constraints = options.messages?.flatMap(constraintsIn) ?? evidence.constraints
  return {
    evidence,
    options,
    focus,
    names,
    messages,
    namedFiles: namedPaths(evidence, names),
    constraints: [...new Map(constraints.map((span) => [span.text, span])).values()],
    short: shortener(options.cwd)
  }
}

/** The largest share of a model's own words. The rest is for what the log knows. */
const writtenShare = 0.2

/**
 * Writes a snapshot from the evidence that `gatherEvidence` returned. `written`: what a model wrote, verified; it is merged into
 * the sections.
 */
export function* composeSnapshot(
  evidence: Evidence,
  options: ExtractOptions,
  written: Snapshot = emptySnapshot
): SlicedWork<ExtractedSnapshot> {
  const material = yield* materialOf(evidence, options)
  yield
  const writtenTokens = options.budget * writtenShare
  // No statement takes the room of all others.
  const bounded = fitToBudget(clippedStatements(written, writtenTokens / 3), writtenTokens)
  // What the model wrote takes half of its room from the index, so that the user's messages keep theirs.
  const sectionsBudget =
    options.budget * (1 - indexShare) + (written === emptySnapshot ? 0 : snapshotTokens(bounded) / 2)
  const sectionsAt = sectionWriter(material, bounded)
  const least = Math.min(snapshotTokens(sectionsAt(scales.full)), options.budget * (1 - leastIndexShare))
  const budget = Math.max(sectionsBudget, least)
  const inTail = new Set<string>()
  for (const kept of options.kept) {
    for (const name of namesIn(kept)) inTail.add(name)
    yield
  }
  const candidates = material.names.slice(0, options.budget * 4)
  const snapshotWithin = function* (tokens: number) {
    return yield* withIndex(yield* largestWithin(sectionsAt, tokens), candidates, options.budget, inTail)
  }
  const first = yield* snapshotWithin(budget)
  // The sections get the tokens that the index did not need.
  const left = options.budget - snapshotTokens(first)
  const isFull = left < options.budget * rewriteShare
  return audited(isFull ? first : yield* snapshotWithin(budget + left * (1 - indexShare)), material, inTail)
}

/** Writes the handover of messages without a model. `kept`: texts that stand beside it and need no repetition. */
export function* handoverOf(
  messages: ReadonlyArray<Entry>,
  options: { readonly budget: number; readonly kept?: ReadonlyArray<string>; readonly cwd: string | undefined }
): SlicedWork<string> {
  const { budget, cwd, kept = [] } = options
  const evidence = yield* gatherEvidence(messages, { cwd })
  const { text } = yield* composeSnapshot(evidence, { budget, kept, cwd })
  return text
}

/** The sections are written again only when at least this share of the budget is left. */
const rewriteShare = 0.03
/** At `full`, all least shares are given. */
const scales = { least: 0.03, full: fullScale, largest: 12 }

/** Returns the sections at the largest scale at which they fit the budget; at the smallest, they lose what does not fit. */
function* largestWithin(sectionsAt: (scale: number) => Snapshot, budget: number): SlicedWork<Snapshot> {
  const all = sectionsAt(scales.largest)
  yield
  if (snapshotTokens(all) <= budget) return all
  const scale = yield* largestScale(scales, (one) => snapshotTokens(sectionsAt(one)) <= budget)
  return fitToBudget(sectionsAt(scale), budget)
}

/** The sections of which a summarizing model need not write anything, as far as it does not see them elsewhere. */
const knownSections = ["task_state", "recent_actions", "artifact_trail"] as const

/** Writes what code knows without a model's help and a digest does not say: the state of the work, within a budget. Blank: nothing. */
export function* knownState(evidence: Evidence, options: ExtractOptions): SlicedWork<string> {
  const sections = sectionWriter(yield* materialOf(evidence, options))(1)
  const known = Object.fromEntries(knownSections.map((name) => [name, sections[name]]))
  const fitted = fitToBudget({ ...emptySnapshot, ...known }, options.budget)
  return knownSections.every((name) => fitted[name].length === 0) ? "" : renderSnapshot(fitted)
}

/** The order in which sections lose items: the least informative first. */
const dropOrder: ReadonlyArray<SectionName> = [
  "file_system_state",
  "recent_actions",
  "key_knowledge",
  "artifact_trail",
  "active_constraints",
  "task_state",
  "overall_goal"
]

/** Drops items from the ends of sections, in `dropOrder`, until the snapshot fits its budget. */
export const fitToBudget = (snapshot: Snapshot, budget: number): Snapshot => {
  const fitted: Record<SectionName, ReadonlyArray<SnapshotItem>> = { ...snapshot }
  let size = snapshotTokens(snapshot)
  for (const name of dropOrder) {
    while (size > budget && fitted[name].length > 0) {
      // What items take is an estimate; together they take about as much.
      let excess = size - budget
      const dropped = newestFirst(fitted[name]).findIndex((item) => (excess -= cost(item)) <= 0) + 1
      fitted[name] = dropped === 0 ? [] : fitted[name].slice(0, -dropped)
      size = snapshotTokens(fitted)
    }
  }
  return fitted
}

/** Adds the index: as many of the best names as fit its share of the budget, without those that stay in the window (`inTail`). */
function* withIndex(
  snapshot: Snapshot,
  candidates: ReadonlyArray<string>,
  budget: number,
  inTail: ReadonlySet<string>
): SlicedWork<Snapshot> {
  const shown = new Set(namesIn(writtenOut(renderSnapshot(snapshot))))
  yield
  const names: Array<string> = []
  for (const name of candidates) {
    // A name takes a token at least.
    if (names.length > budget * indexShare) break
    if (shown.has(name) || inTail.has(name)) continue
    for (const other of namesIn(name)) shown.add(other)
    names.push(name)
    yield
  }
  let [indexed, above] = [0, names.length + 1]
  let best = snapshot
  while (above - indexed > 1) {
    const count = Math.floor((indexed + above) / 2)
    const index = indexItems(names.slice(0, count))
    const full = { ...snapshot, key_knowledge: [...snapshot.key_knowledge, ...index] }
    const isWithin = estimateText(shortForm(index.map((item) => item.text))) <= budget * indexShare
    yield
    if (!isWithin || snapshotTokens(full) > budget) above = count
    else [indexed, best] = [count, full]
  }
  return best
}

/** Number of anchors, highest weight first, that an audit checks. */
const maxAudited = 1_000

/** Renders a snapshot, and looks for its names. */
const audited = (snapshot: Snapshot, { names }: Material, inTail: ReadonlySet<string>): ExtractedSnapshot => {
  const text = renderSnapshot(snapshot)
  const written = namesIn(writtenOut(text))
  const checked = names.slice(0, maxAudited)
  const missing = checked.filter((name) => !written.has(name))
  const audit = {
    anchors: checked.length,
    inSnapshot: checked.length - missing.length,
    inTail: missing.filter((name) => inTail.has(name)).length,
    restored: snapshot.key_knowledge.filter(isIndex).flatMap(indexedNames).length
  }
  return { snapshot, text, audit }
}
