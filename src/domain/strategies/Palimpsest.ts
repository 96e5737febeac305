import type { Decision, Plan, PlanStep, Policy } from "../Compression.ts"
import { hasResponses, isCall, isResponse, outputText, type Part, payload } from "../Content.ts"
import {
  type Conversation,
  entries,
  itemParts,
  itemTokens,
  pairing,
  placeKey,
  sequenceOf,
  sourceOf,
  view,
  type ViewItem,
  viewTokens
} from "../Conversation.ts"
import { requestSpans, type Span } from "../Evidence.ts"
import type { FailureMemory } from "../FailureMemory.ts"
import { projecting, requestTokens } from "../Projection.ts"
import type { Pin } from "../Session.ts"
import { estimateText, TokenCount } from "../Tokens.ts"
import { noteOnly, type OutputForm, type OutputSize, seedSize, shorten } from "../ToolOutput.ts"
import type { Work } from "../Work.ts"

/**
 * The default strategy: the three phases of the seeds with their known faults repaired. Splits at any completed
 * call/response pair; never counts or summarises the environment message; counts like with like; aims below the threshold so
 * that the next request does not compress again; has stronger rungs for what does not fit.
 */

/** How hard a rung shrinks. */
interface Rung {
  /** Share of `policy.preserve` that is kept. */
  readonly preserve: number
  /** Share of the tool budget. */
  readonly tools: number
  readonly form: OutputForm | "note"
  readonly size: OutputSize
}

/** Rungs of the ladder: 0 is the plan as asked, each above keeps less. */
export const rungs = 3

const rung = (policy: Policy, level: number): Rung =>
  level === 0
    ? { preserve: 1, tools: 1, form: policy.outputForm, size: seedSize }
    : level === 1
      ? {
          preserve: 0.4,
          tools: 0.1,
          form: "last-lines",
          size: { ...seedSize, lastLines: 10, lineWidth: 240, singleLine: 800 }
        }
      : { preserve: 0, tools: 0, form: "note", size: noteOnly }

/** Below the threshold by this much, so that a turn or two fit before the next compression. */
const headroom = 0.9
/** A snapshot's size by default: this share of what it stands for, within these bounds (tokens). */
const snapshotShare = { ofDropped: 0.25, ofCeiling: 0.35, least: 320, most: 8_000 }
/** Of the tail's budget, the share that must be used before a cut is moved to the beginning of a turn. */
const turnPreference = 0.6

/** A part that is shown shortened, in tokens. */
interface Shortening {
  readonly item: number
  readonly part: number
  readonly before: number
  readonly after: number
}

/** The text of a tool's answer: itself, or its JSON. */
export const answerOf = (part: Part, source: string | undefined): string =>
  outputText(part) ?? payload(part, source).text

/** The text that an output would be shortened to at this rung. */
export const shortenedText = (
  item: ViewItem,
  part: number,
  form: OutputForm | "note",
  size: OutputSize
): string | undefined => {
  const original = item.entry.content.parts[part]
  const handle = item.entry.handles[part]
  if (original === undefined || handle === undefined) return undefined
  return shorten(answerOf(original, sourceOf(item.entry, part)), handle, form === "note" ? "last-lines" : form, size)
}

/** A step's size, by its form and rung. */
export const sizeOf = (plan: Plan, form: OutputForm | "note"): OutputSize =>
  form === "note"
    ? noteOnly
    : plan.rung === 1
      ? { ...seedSize, lastLines: 10, lineWidth: 240, singleLine: 800 }
      : seedSize

/** About what a shortened output takes, for those that are not looked at more closely (tokens). */
const shortenedSize = 600

/** Tool outputs beyond the budget, newest kept in full: where they are and what they take now. */
const beyond = (items: ReadonlyArray<ViewItem>, budget: number): Array<Omit<Shortening, "after">> => {
  const found: Array<Omit<Shortening, "after">> = []
  let used = 0
  for (let index = items.length - 1; index >= 0; index -= 1) {
    const item = items[index]
    if (item === undefined || item.entry.content.role === "model") continue
    for (let at = item.entry.content.parts.length - 1; at >= 0; at -= 1) {
      const part = item.entry.content.parts[at]
      if (part === undefined || !isResponse(part)) continue
      const before = item.shortened.get(at)?.tokens ?? item.entry.tokens[at] ?? 0
      if (used + before <= budget) used += before
      else {
        used += Math.min(before, shortenedSize)
        found.push({ item: index, part: at, before })
      }
    }
  }
  return found
}

/** Of these outputs the ones that really get smaller, and by how much. */
function* shortenings(
  items: ReadonlyArray<ViewItem>,
  outputs: ReadonlyArray<Omit<Shortening, "after">>,
  level: Rung
): Work<Array<Shortening>> {
  const found: Array<Shortening> = []
  for (const one of outputs) {
    const item = items[one.item]
    const replacement = item === undefined ? undefined : shortenedText(item, one.part, level.form, level.size)
    if (replacement === undefined) continue
    // The frame of the response (its name, its id) stays what it was.
    const after = estimateText(replacement) + 10
    yield replacement.length + 100
    if (after < one.before * 0.9) found.push({ ...one, after })
  }
  return found
}

/** Whether a cut before `index` parts no call from its response, for each index up to the length. */
const cleanCuts = (items: ReadonlyArray<ViewItem>): ReadonlyArray<boolean> => {
  const contents = items.map((item) => ({ role: item.entry.content.role, parts: itemParts(item) }))
  const { responseOf } = pairing(contents)
  const clean: Array<boolean> = []
  let openUntil = -1
  for (let index = 0; index <= items.length; index += 1) {
    const content = items[index]?.entry.content
    // A run of answers belongs together, and to the calls before it.
    clean.push(index > openUntil && !(content?.role === "user" && content.parts.some(isResponse)))
    contents[index]?.parts.forEach((part, at) => {
      if (!isCall(part)) return
      const response = responseOf.get(placeKey({ item: index, part: at }))
      if (response !== undefined) openUntil = Math.max(openUntil, response.item)
    })
  }
  return clean
}

/** Nothing is to be kept (seed 004): only calls that wait for their answers have to stay. */
const unanswered = (items: ReadonlyArray<ViewItem>): number =>
  items[items.length - 1]?.entry.content.parts.some(isCall) === true ? items.length - 1 : items.length

/** The first index of what has to stay: a message that the model has not answered yet, with the calls it answers. */
const pendingFrom = (items: ReadonlyArray<ViewItem>, clean: ReadonlyArray<boolean>): number => {
  const last = items[items.length - 1]
  if (last === undefined || (last.entry.content.role === "model" && !last.entry.content.parts.some(isCall)))
    return items.length
  let from = items.length - 1
  // Several messages of the user in a row wait together.
  while (from > 0 && items[from - 1]?.entry.content.role === "user" && items[from]?.entry.content.role === "user")
    from -= 1
  while (from > 0 && !clean[from]) from -= 1
  return from
}

const beginsTurn = (item: ViewItem | undefined): boolean =>
  item !== undefined && item.entry.content.role === "user" && !hasResponses(item.entry.content)

const pinOf = (span: Pin, why: Extract<PlanStep, { _tag: "Pin" }>["why"]): PlanStep => ({
  _tag: "Pin",
  entry: span.entry,
  part: span.part,
  start: span.start,
  end: span.end,
  why
})

const shortenStep = (items: ReadonlyArray<ViewItem>, one: Shortening, form: OutputForm | "note"): Array<PlanStep> => {
  const entry = items[one.item]?.entry
  if (entry === undefined) return []
  return [
    {
      _tag: "Shorten",
      entry: entry.id,
      part: one.part,
      form,
      tokensBefore: tokenCount(one.before),
      tokensAfter: tokenCount(one.after)
    }
  ]
}

const tokenCount = (tokens: number): TokenCount => TokenCount.make(Math.max(0, Math.round(tokens)))

/** Whether a message asks for something: "hi", "yes" and "continue" do not, a sentence without spaces may. */
const asks = ({ text }: Span): boolean => text.trim().split(/\s+/).length >= 3 || /\P{ASCII}/u.test(text)

/**
 * What the user asked for at first, as far back as the log goes: earlier compactions took it out of the view, not out of the
 * log. Undefined where a summary stands before all that is known: what follows one is no beginning.
 */
const originalRequest = (conversation: Conversation): Span | undefined => {
  const log = entries(conversation)
  let first: Span | undefined
  let last = 0
  for (const entry of log) {
    const sequence = sequenceOf(entry.id)
    // What is missing here is a summary, or was not read.
    if (sequence > last + 1) return first
    last = sequence
    if (entry.author === "summary") return first
    for (const span of requestSpans(entry)) {
      if (asks(span)) return span
      first ??= span
    }
  }
  return first
}

/** What a plan depends on beside the conversation and the policy. */
export interface PlanOptions {
  readonly forced: boolean
  readonly memory: FailureMemory
  /** What the person pinned, wherever it stands in the log. */
  readonly pins?: ReadonlyArray<Pin> | undefined
  /** 0 to `rungs - 1`. */
  readonly rung: number
}

/** Decides what to do about the length of a conversation. */
export function* plan(conversation: Conversation, policy: Policy, options: PlanOptions): Work<Decision> {
  const all = view(conversation)
  const environment = all.filter((item) => item.entry.author === "environment").length
  const items = all.slice(environment)
  if (items.length === 0) return { _tag: "Skip", reason: "empty", before: 0 }
  const sent = yield* projecting(all)
  const before = policy.overhead + requestTokens(sent)
  if (!options.forced) {
    if (before < policy.threshold * policy.limit) return { _tag: "Skip", reason: "below threshold", before }
    if (viewTokens(conversation) < options.memory.waitUntil)
      return { _tag: "Skip", reason: "waiting for growth", before }
  }
  const level = rung(policy, options.rung)
  const window = policy.threshold < 1 ? policy.threshold * policy.limit : policy.limit
  const ceiling = Math.max(0, window * headroom - policy.overhead)
  const toolBudget = Math.min(policy.toolBudget, ceiling * 0.5) * level.tools
  const large = beyond(items, toolBudget)
  const savedAbout = new Map<number, number>()
  for (const { before: tokens, item } of large) {
    savedAbout.set(item, (savedAbout.get(item) ?? 0) + Math.max(0, tokens - shortenedSize))
  }
  const sizes = items.map((item, index) => itemTokens(item) - (savedAbout.get(index) ?? 0))
  const total = sizes.reduce((sum, size) => sum + size, 0)
  yield items.length * 20

  const clean = cleanCuts(items)
  yield items.length * 40
  const must = policy.preserve === 0 ? unanswered(items) : pendingFrom(items, clean)
  const snapshotMost = policy.snapshotBudget ?? Math.min(snapshotShare.most, ceiling * snapshotShare.ofCeiling)
  const tailBudget = Math.min(policy.preserve * level.preserve * total, Math.max(0, ceiling - snapshotMost))
  const split = cut(items, sizes, clean, must, tailBudget)

  const shorter = yield* shortenings(
    items,
    large.filter(({ item }) => item >= split),
    level
  )

  const dropped = items.slice(0, split)
  const droppedTokens = dropped.reduce((sum, item) => sum + itemTokens(item), 0)
  const first = dropped[0]
  const last = dropped[dropped.length - 1]
  const onlySnapshot =
    dropped.every((item) => item.entry.author === "summary" || item.entry.content.role === "model") &&
    dropped.filter((item) => item.entry.author !== "summary").length <= 1
  const steps: Array<PlanStep> = []
  for (const one of shorter) steps.push(...shortenStep(items, one, level.form))
  if (first === undefined || last === undefined || (onlySnapshot && dropped.length <= 2)) {
    const everything = split === 0 ? shorter : yield* shortenings(items, large, level)
    if (everything.length === 0) return { _tag: "Skip", reason: "nothing to compress", before }
    const saved = everything.reduce((sum, one) => sum + one.before - one.after, 0)
    return go(
      conversation,
      policy,
      options,
      everything.flatMap((one) => shortenStep(items, one, level.form)),
      before,
      before - saved
    )
  }
  const budget = Math.round(
    Math.min(
      snapshotMost,
      policy.snapshotBudget ?? Math.max(snapshotShare.least, droppedTokens * snapshotShare.ofDropped)
    )
  )
  steps.push({
    _tag: "Summarize",
    from: first.entry.id,
    to: last.entry.id,
    prompt: dropped.some((item) => item.entry.author === "summary") ? "merge" : "create",
    verify: true,
    budget: tokenCount(budget)
  })
  const requests = dropped.flatMap((item) => requestSpans(item.entry))
  const original = originalRequest(conversation)
  const latest = requests[requests.length - 1]
  if (original !== undefined) steps.push(pinOf(original, "original request"))
  if (latest !== undefined && (latest.entry !== original?.entry || latest.start !== original.start))
    steps.push(pinOf(latest, "latest request"))
  const kept = items.slice(split)
  const keptIds = new Set(kept.map((item) => item.entry.id))
  for (const pin of options.pins ?? []) if (!keptIds.has(pin.entry)) steps.push(pinOf(pin, "pinned by the user"))
  steps.push({
    _tag: "Layout",
    split: sent.length - sent.filter(({ entry }) => keptIds.has(entry)).length,
    kept: kept.map((item) => item.entry.id),
    acknowledge: kept[0]?.entry.content.role !== "model"
  })
  yield items.length * 40
  const tail = kept.reduce((sum, item) => sum + itemTokens(item), 0)
  const saved = shorter.reduce((sum, one) => sum + one.before - one.after, 0)
  return go(conversation, policy, options, steps, before, policy.overhead + tail - saved + budget)
}

const go = (
  conversation: Conversation,
  policy: Policy,
  options: PlanOptions,
  steps: ReadonlyArray<PlanStep>,
  before: number,
  after: number
): Decision => ({
  _tag: "Go",
  plan: {
    version: conversation.version,
    strategy: policy.strategy,
    rung: options.rung,
    steps,
    before: tokenCount(before),
    after: tokenCount(after)
  }
})

/**
 * Where the kept tail begins: the earliest clean cut whose tail is within the budget, moved on to the beginning of a turn
 * when that does not give away too much. What is pending stays whatever its size.
 */
const cut = (
  items: ReadonlyArray<ViewItem>,
  sizes: ReadonlyArray<number>,
  clean: ReadonlyArray<boolean>,
  must: number,
  budget: number
): number => {
  let tail = 0
  let earliest = must
  let atTurn: number | undefined
  for (let index = items.length - 1; index >= 0; index -= 1) {
    tail += sizes[index] ?? 0
    if (index >= must) continue
    if (tail > budget) break
    if (!clean[index]) continue
    earliest = index
    if (beginsTurn(items[index]) && tail >= budget * turnPreference) atTurn = index
  }
  return atTurn ?? earliest
}

/** Parts that no rung can make smaller, largest first: what the person wrote, what is pending, media. */
export const stubborn = (
  conversation: Conversation,
  kept: ReadonlySet<string>
): ReadonlyArray<{ readonly entry: ViewItem["entry"]["id"]; readonly what: string; readonly tokens: TokenCount }> =>
  view(conversation)
    .filter((item) => kept.has(item.entry.id))
    .map((item) => ({
      entry: item.entry.id,
      what:
        item.entry.content.role === "user"
          ? hasResponses(item.entry.content)
            ? "tool output"
            : "user text"
          : "model message",
      tokens: tokenCount(itemTokens(item))
    }))
    .sort((a, b) => b.tokens - a.tokens)
    .slice(0, 5)
