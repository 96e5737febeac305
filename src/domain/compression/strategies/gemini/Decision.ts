/** Decides whether and how the strategy `gemini` compresses a history: its threshold, its split and its fallbacks. */

import { type Content, isCall, isResponse } from "../../../content/Content.ts"
import type * as Work from "../../../text/SlicedWork.ts"
import type { NoopReason } from "../../Compression.ts"
import { estimating, partsOf } from "./TokenEstimate.ts"
import { maxCharsOf, type TruncateOptions, truncating, type Truncation } from "./ToolOutputs.ts"

/** The fraction is out of range. Gemini CLI throws in this case. */
interface SplitRefused {
  readonly _tag: "SplitRefused"
  readonly fraction: number
  readonly message: string
}

/**
 * Returns the index of the first message to keep. 0: nothing can be summarised. Gemini CLI also splits between a call and its
 * response when a message of the user stands between them; `isClean` is false there, by index.
 */
export function* splitting(
  contents: ReadonlyArray<Content>,
  fraction: number,
  isClean?: ReadonlyArray<boolean>
): Work.SlicedWork<number | SplitRefused> {
  if (fraction <= 0 || fraction >= 1) {
    return { _tag: "SplitRefused", fraction, message: "Fraction must be between 0 and 1" }
  }
  const sizes: Array<number> = []
  for (const content of contents) {
    sizes.push(JSON.stringify(content).length)
    yield
  }
  const target = fraction * sizes.reduce((sum, size) => sum + size, 0)
  let before = 0
  let lastSplit = 0
  for (const [index, content] of contents.entries()) {
    if (content.role === "user" && isClean?.[index] !== false && !content.parts.some(isResponse)) {
      if (before >= target) return index
      lastSplit = index
    }
    before += sizes[index] ?? 0
  }
  const last = contents[contents.length - 1]
  return last?.role === "model" && !last.parts.some(isCall) ? contents.length : lastSplit
}

/** Share of the window above which a history is compressed. */
const defaultThreshold = 0.5
/** Share of the history to keep, by size. */
export const defaultPreserve = 0.3

/** Returns the local threshold, else the remote one, else 0.5. As in Gemini CLI, a 0 counts as unset. */
export const geminiThreshold = (local?: number, remote?: number): number => local || remote || defaultThreshold

/** The input of a decision. */
export interface GeminiRequest {
  /** The curated history; in an interactive chat its first message is the environment message. */
  readonly contents: ReadonlyArray<Content>
  /** The environment message. It precedes the new history and is counted with it. */
  readonly environment?: Content | undefined
  /** The prompt tokens that the API reported for the latest request. */
  readonly lastPromptTokens: number
  readonly limit: number
  /** See `geminiThreshold`. */
  readonly threshold?: number | undefined
  readonly preserve?: number | undefined
  readonly forced: boolean
  readonly hasFailed: boolean
  /** By index: whether a cut there keeps every call with its response. Absent: as in Gemini CLI, anywhere. */
  readonly isClean?: ReadonlyArray<boolean> | undefined
  /** Without `maxChars`, placeholders are capped by what the window has left. */
  readonly truncate: TruncateOptions
}

/** The trigger that PreCompress was fired with; undefined where there is no history. */
export type HookTrigger = "manual" | "auto" | undefined

/** A summary is needed: two calls follow, and then a conclusion from their answers. */
export interface Summarize {
  readonly _tag: "Summarize"
  readonly hook: HookTrigger
  readonly before: number
  readonly split: number
  /** Which version of the messages before the split is summarised. */
  readonly slice: "original" | "truncated"
  readonly summarized: ReadonlyArray<Content>
  /** `merge` when an earlier snapshot is among them. */
  readonly anchor: "create" | "merge"
  /** The messages to keep, always in their truncated version. */
  readonly keep: ReadonlyArray<Content>
  readonly truncation: Truncation
  readonly environment: Content | undefined
}

/** The result of a decision. Telemetry records only a compression that goes on to call the model. */
export type GeminiDecision =
  | {
      readonly _tag: "Noop"
      readonly hook: HookTrigger
      readonly reason: NoopReason
      readonly before: number
      readonly after: number
      /**
       * Present when tool outputs were truncated: they were saved and their numbers used, even if the decision changes
       * nothing.
       */
      readonly truncation: Truncation | undefined
    }
  | {
      readonly _tag: "ContentTruncated"
      readonly hook: HookTrigger
      readonly before: number
      readonly after: number
      readonly truncation: Truncation
    }
  | (SplitRefused & { readonly hook: HookTrigger; readonly before: number; readonly truncation: Truncation })
  | Summarize

const snapshotTag = "<state_snapshot>"

/** Says whether messages are summarised anew, or together with an earlier snapshot among them. */
export const anchorOf = (contents: ReadonlyArray<Content>): Summarize["anchor"] =>
  contents.some(({ parts }) => parts.some((part) => part.text?.includes(snapshotTag) === true)) ? "merge" : "create"

const truncateOptions = ({ lastPromptTokens, limit, truncate }: GeminiRequest): TruncateOptions => ({
  ...truncate,
  maxChars: truncate.maxChars ?? maxCharsOf(limit, lastPromptTokens)
})

const noop = (hook: HookTrigger, reason: NoopReason, tokens: number, truncation?: Truncation): GeminiDecision => ({
  _tag: "Noop",
  hook,
  reason,
  before: tokens,
  after: tokens,
  truncation
})

/** Decides without a model after a failure: only tool outputs are shortened. */
function* onlyTruncated(
  request: GeminiRequest,
  hook: HookTrigger,
  truncation: Truncation
): Work.SlicedWork<GeminiDecision> {
  const rates = request.truncate.rates
  const before = request.lastPromptTokens
  const after = yield* estimating(partsOf(truncation.contents), rates)
  // Differs from Gemini CLI: `before` covers more than the history, so only the history's own estimates can show that it
  // shrank.
  const shrank = after < (yield* estimating(partsOf(request.contents), rates))
  return shrank && after < before
    ? { _tag: "ContentTruncated", hook, before, after, truncation }
    : noop(hook, "nothing shrank", before, truncation)
}

/** Decides whether and how a history is compressed. */
export function* deciding(request: GeminiRequest): Work.SlicedWork<GeminiDecision> {
  const { contents, environment, forced, hasFailed, lastPromptTokens: before, limit } = request
  if (contents.length === 0) return noop(undefined, "empty", 0)
  const hook = forced ? "manual" : "auto"
  if (!forced && before < geminiThreshold(request.threshold) * limit) return noop(hook, "below threshold", before)
  const truncation = yield* truncating(contents, truncateOptions(request))
  if (hasFailed && !forced) return yield* onlyTruncated(request, hook, truncation)
  const split = yield* splitting(truncation.contents, 1 - (request.preserve ?? defaultPreserve), request.isClean)
  if (typeof split !== "number") return { ...split, hook, before, truncation }
  if (split === 0) return noop(hook, "nothing to compress", before, truncation)
  const original = contents.slice(0, split)
  const fits = (yield* estimating(partsOf(original), request.truncate.rates)) < limit
  const summarized = fits ? original : truncation.contents.slice(0, split)
  return {
    _tag: "Summarize",
    hook,
    before,
    split,
    slice: fits ? "original" : "truncated",
    summarized,
    anchor: anchorOf(summarized),
    keep: truncation.contents.slice(split),
    truncation,
    environment
  }
}
