import { isResponse, outputText, type Part, payload } from "../../../content/Content.ts"
import { sourceOf, type ViewItem } from "../../../conversation/Conversation.ts"
import {
  defaultSize,
  noteOnlySize,
  type OutputForm,
  type OutputSize,
  shorten
} from "../../../conversation/ToolOutputShortening.ts"
import type { SlicedWork } from "../../../text/SlicedWork.ts"
import { estimateText, TokenCount } from "../../../tokens/Tokens.ts"
import type { Plan, PlanStep } from "../../Compression.ts"
import type { PolicyOptions } from "../../PolicyOptions.ts"

/** Selects the tool outputs that a plan shortens, and their sizes, by rung of the ladder. */

/** One rung of the ladder: how much it keeps. */
export interface Rung {
  /** Share of `preserve` to keep. */
  readonly preserve: number
  /** Share of the tool budget. */
  readonly tools: number
  readonly form: OutputForm | "note"
  readonly size: OutputSize
}

/** Number of rungs. Rung 0 follows the policy, each higher one keeps less. */
export const rungCount = 3

const smallSize: OutputSize = { ...defaultSize, lastLines: 10, lineWidth: 240, singleLine: 800, chars: 2_400 }

/** Lines have no width in `head-tail-lines`, so that a small size of both ends counts characters. */
const smallForm = (form: OutputForm): OutputForm => (form === "last-lines" ? form : "head-tail-chars")

/** Returns the rung at this level, from 0. */
export const rungAt = (policy: Pick<PolicyOptions, "outputForm">, level: number): Rung =>
  level === 0
    ? { preserve: 1, tools: 1, form: policy.outputForm, size: defaultSize }
    : level === 1
      ? { preserve: 0.4, tools: 0.1, form: smallForm(policy.outputForm), size: smallSize }
      : { preserve: 0, tools: 0, form: "note", size: noteOnlySize }

/** A part that is shown shortened, and its tokens. */
export interface Shortening {
  readonly item: number
  readonly part: number
  readonly before: number
  readonly after: number
}

/** Returns the text of a tool response: the response itself, or its JSON. */
export const responseText = (part: Part, source: string | undefined): string =>
  outputText(part) ?? payload(part, source).text

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
  return shorten(
    responseText(original, sourceOf(item.entry, part)),
    handle,
    form === "note" ? "last-lines" : form,
    size
  )
}

/** Returns the size of a step's output, by its form and the plan's rung. */
export const sizeOf = (plan: Plan, form: OutputForm | "note"): OutputSize =>
  form === "note" ? noteOnlySize : plan.rung === 1 ? smallSize : defaultSize

/** Estimated tokens of an output that is not shortened yet. */
export const shortenedTokens = 600

/** Returns the places and present tokens of the tool outputs beyond the budget, when the newest are kept in full. */
export const outputsBeyond = (items: ReadonlyArray<ViewItem>, budget: number): Array<Omit<Shortening, "after">> => {
  const result: Array<Omit<Shortening, "after">> = []
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
        used += Math.min(before, shortenedTokens)
        result.push({ item: index, part: at, before })
      }
    }
  }
  return result
}

/** Returns those outputs that shrink by more than a tenth, with their tokens afterwards. */
export function* shortenings(
  items: ReadonlyArray<ViewItem>,
  outputs: ReadonlyArray<Omit<Shortening, "after">>,
  level: Rung
): SlicedWork<Array<Shortening>> {
  const result: Array<Shortening> = []
  for (const one of outputs) {
    const item = items[one.item]
    const replacement = item === undefined ? undefined : shortenedText(item, one.part, level.form, level.size)
    if (replacement === undefined) continue
    // The frame of the response (its name and id) does not change.
    const after = estimateText(replacement) + 10
    yield replacement.length + 100
    if (after < one.before * 0.9) result.push({ ...one, after })
  }
  return result
}

/** Makes the step for one shortened output. */
export const shortenStep = (
  items: ReadonlyArray<ViewItem>,
  one: Shortening,
  form: OutputForm | "note"
): Array<PlanStep> => {
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

/** Rounds tokens to a whole count of at least 0. */
export const tokenCount = (tokens: number): TokenCount => TokenCount.make(Math.max(0, Math.round(tokens)))
