/** Selects the tool outputs that a plan shortens, and their sizes, by rung of the ladder. */

import { outputText, type Part, payload } from "../../../content/Content.ts"
import { responseContent, responseText } from "../../../content/MediaBlocks.ts"
import { sourceOf, sum, type ViewItem } from "../../../conversation/Conversation.ts"
import { type IndexedView, outputTokens, shortenedTokens } from "../../../conversation/IndexedView.ts"
import { fairShare } from "../../../conversation/ToolOutputBound.ts"
import {
  defaultSize,
  noteOnlySize,
  type OutputForm,
  type OutputSize,
  shorten
} from "../../../conversation/ToolOutputShortening.ts"
import type { SlicedWork } from "../../../text/SlicedWork.ts"
import { estimateText, tokenCount } from "../../../tokens/Tokens.ts"
import type { Plan, PlanStep } from "../../Compression.ts"
import type { PolicyOptions } from "../../PolicyOptions.ts"

/** One rung of the ladder: how much it keeps. */
export interface Rung {
  /** Share of `preserve` to keep. */
  readonly preserve: number
  /** Share of the tool budget. */
  readonly tools: number
  readonly form: OutputForm | "note"
  readonly size: OutputSize
}

type ShortenStep = Extract<PlanStep, { _tag: "Shorten" }>

/** Number of rungs. Rung 0 follows the policy, each higher one keeps less. */
export const rungCount = 3

const smallSize: OutputSize = { ...defaultSize, lastLines: 10, lineWidth: 240, singleLine: 800, chars: 2_400 }

/** `head-tail-lines` does not limit the width of lines, so the small size of both ends counts characters instead. */
const smallForm = (form: OutputForm): OutputForm => (form === "last-lines" ? form : "head-tail-chars")

/** Returns the rung at this level, from 0. */
export const rungAt = (policy: Pick<PolicyOptions, "outputForm">, level: number): Rung =>
  level === 0
    ? { preserve: 1, tools: 1, form: policy.outputForm, size: defaultSize }
    : level === 1
      ? { preserve: 0.4, tools: 0.1, form: smallForm(policy.outputForm), size: smallSize }
      : { preserve: 0, tools: 0, form: "note", size: noteOnlySize }

/** A part that is shown shortened, and its tokens. `chars`: by characters of both its ends, whatever the form of the plan. */
export interface Shortening {
  readonly item: number
  readonly part: number
  readonly before: number
  readonly after: number
  readonly chars?: number
}

/** Returns the text of a tool response: the response itself, its texts with its media named, or its JSON. */
export const shownText = (part: Part, source: string | undefined): string =>
  outputText(part) ?? (responseContent(part).media.length > 0 ? responseText(part) : payload(part, source).text)

/** Returns the shortened text of an output. Undefined when no shorter text is possible, or the part has no handle. */
export const shortenedText = (
  item: ViewItem,
  part: number,
  form: OutputForm | "note",
  size: OutputSize
): string | undefined => {
  const original = item.entry.content.parts[part]
  const handle = item.entry.handles[part]
  if (original === undefined || handle === undefined) return undefined
  return shorten(shownText(original, sourceOf(item.entry, part)), handle, form === "note" ? "last-lines" : form, size)
}

/** Returns the size of a step's output, by its own size or form and the plan's rung. */
export const sizeOf = (plan: Plan, { chars, form }: Pick<ShortenStep, "chars" | "form">): OutputSize =>
  chars !== undefined
    ? { ...defaultSize, chars }
    : form === "note"
      ? noteOnlySize
      : plan.rung === 1
        ? smallSize
        : defaultSize

/** The tool outputs of a view beyond a budget, when the newest are kept in full. */
export interface OutputsBeyond {
  /** Returns the places and present tokens of those from an index on, newest first. */
  readonly from: (index: number) => Array<Omit<Shortening, "after">>
  /** Returns the tokens of a message once its outputs beyond the budget are shortened, as far as they are estimated. */
  readonly size: (index: number) => number
  /** Tokens of all messages from an index on, estimated the same way. */
  readonly total: (index: number) => number
}

/** Finds the tool outputs beyond the budget. Looks at the newest outputs, until none of the older ones can be within it. */
export const outputsBeyond = (view: IndexedView, budget: number): OutputsBeyond => {
  const newest: Array<Omit<Shortening, "after">> = []
  let saved = 0
  /** Index of the first message that was looked at. All outputs before it are beyond the budget. */
  let known = view.length
  const saving = new Map<number, number>()
  for (let used = 0; known > 0 && used <= budget;) {
    known -= 1
    for (const { before, part } of outputsOf(view, known)) {
      if (used + before <= budget) used += before
      else {
        used += Math.min(before, shortenedTokens)
        newest.push({ item: known, part, before })
        const less = Math.max(0, before - shortenedTokens)
        saved += less
        saving.set(known, (saving.get(known) ?? 0) + less)
      }
    }
  }
  return {
    from: (index) => {
      const result = newest.filter(({ item }) => item >= index)
      for (let item = known - 1; item >= index; item -= 1) {
        for (const output of outputsOf(view, item)) result.push({ item, ...output })
      }
      return result
    },
    size: (index) =>
      view.tokens(index, index + 1) - (index < known ? view.savedTokens(index, index + 1) : (saving.get(index) ?? 0)),
    total: (index) => view.tokens(index) - saved - view.savedTokens(index, Math.max(index, known))
  }
}

/** Returns the outputs of a message, the last one first. */
const outputsOf = (view: IndexedView, index: number): Array<Pick<Shortening, "part" | "before">> => {
  const item = view.at(index)
  const outputs: Array<Pick<Shortening, "part" | "before">> = []
  if (item === undefined || item.entry.content.role === "model") return outputs
  for (let part = item.entry.content.parts.length - 1; part >= 0; part -= 1) {
    const before = outputTokens(item, part)
    if (before !== undefined) outputs.push({ part, before })
  }
  return outputs
}

/** By output: the tokens of its latest shortened form, because a conversation is planned many times. */
const shortenedSizes = new WeakMap<
  Part,
  { readonly form: Rung["form"]; readonly size: OutputSize; readonly tokens: number }
>()

/** Returns those outputs that shrink by more than a tenth, with their tokens afterwards. */
export function* shortenings(
  view: IndexedView,
  outputs: ReadonlyArray<Omit<Shortening, "after">>,
  { form, size }: Rung
): SlicedWork<Array<Shortening>> {
  const result: Array<Shortening> = []
  for (const one of outputs) {
    const item = view.at(one.item)
    const original = item?.entry.content.parts[one.part]
    if (item === undefined || original === undefined) continue
    const known = shortenedSizes.get(original)
    let after = known?.form === form && known.size === size ? known.tokens : undefined
    if (after === undefined) {
      const replacement = shortenedText(item, one.part, form, size)
      if (replacement === undefined) continue
      // The frame of the response (its name and id) does not change.
      after = estimateText(replacement) + 10
      shortenedSizes.set(original, { form, size, tokens: after })
      yield
    }
    if (after < one.before * 0.9) result.push({ ...one, after })
  }
  return result
}

/** Attempts to bring an output to its share. Each reduces the characters by the remaining excess. */
const maxShareAttempts = 4
/** The fewest characters of an output that are shown before it becomes as small as an answered one. */
const minShareChars = 400

/**
 * Returns the outputs from an index on, the largest first, that have to show less so that `excess` tokens are saved. Each keeps as much of both its
 * ends as its share has room for; small ones stay whole.
 */
export function* shortenedToShare(
  view: IndexedView,
  from: number,
  excess: number,
  level: Rung
): SlicedWork<Array<Shortening>> {
  const outputs: Array<Omit<Shortening, "after">> = []
  for (let item = from; item < view.length; item += 1) {
    for (const output of outputsOf(view, item)) outputs.push({ item, ...output })
  }
  const sizes = outputs.map(({ before }) => before)
  const share = fairShare(sizes, Math.max(0, sum(sizes) - excess))
  const result: Array<Shortening> = []
  for (const one of outputs) {
    if (one.before <= share) continue
    const item = view.at(one.item)
    const original = item?.entry.content.parts[one.part]
    if (item === undefined || original === undefined) continue
    const { length } = shownText(original, sourceOf(item.entry, one.part))
    let chars = Math.floor((length * share * 0.95) / Math.max(1, one.before))
    let after = Infinity
    for (let attempt = 0; attempt < maxShareAttempts && chars >= minShareChars; attempt += 1) {
      const replacement = shortenedText(item, one.part, "head-tail-chars", { ...defaultSize, chars })
      if (replacement === undefined) break
      yield
      after = estimateText(replacement) + 10
      if (after <= share) break
      chars = Math.floor((chars * share * 0.95) / after)
    }
    if (after <= share && after < one.before) result.push({ ...one, after, chars })
    else result.push(...(yield* shortenings(view, [one], level)))
  }
  return result.sort((one, other) => other.before - one.before)
}

/** Makes the step for one shortened output. */
export const shortenStep = (view: IndexedView, one: Shortening, form: OutputForm | "note"): Array<PlanStep> => {
  const entry = view.at(one.item)?.entry
  if (entry === undefined) return []
  return [
    {
      _tag: "Shorten",
      entry: entry.id,
      part: one.part,
      form: one.chars === undefined ? form : "head-tail-chars",
      ...(one.chars === undefined ? {} : { chars: one.chars }),
      tokensBefore: tokenCount(one.before),
      tokensAfter: tokenCount(one.after)
    }
  ]
}
