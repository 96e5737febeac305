/** Finds old tool results of which only the ends are shown, so that newer ones have room. */

import { isErrorResponse, isResponse, type Part } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import type * as PersistentList from "../text/PersistentList.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { type EntryId, itemParts, type ViewItem } from "./Conversation.ts"
import { resultText } from "./ToolOutputBound.ts"

/** Limits of masking, in the model's tokens. */
export interface MaskLimits {
  /** The newest results with this many tokens stay unchanged. */
  readonly protect: number
  /** The smallest gain per masking. Earlier messages should change rarely, for the sake of prompt caches. */
  readonly least: number
}

/** As in Gemini CLI. */
export const defaultMasking: MaskLimits = { protect: 50_000, least: 30_000 }

/** Tools whose results are never masked, because they are needed verbatim. */
export const unmaskedTools: ReadonlyArray<string> = [
  "activate_skill",
  "ask_user",
  "enter_plan_mode",
  "exit_plan_mode",
  "write_todos",
  "complete_task"
]

/** Only results with more tokens than this are masked, because the text that replaces them takes tokens too. */
const minMaskedTokens = 400

/** A result that can be masked. */
export interface Maskable {
  readonly entry: EntryId
  readonly index: number
  readonly handle: Handle
  /** The stored part, not the shown one. */
  readonly part: Part
  /** Tokens of the shown part. */
  readonly tokens: number
}

/** Returns the tokens on arrival, before any mask or compression. */
const originalTokens = ({ entry }: ViewItem, index: number): number =>
  entry.bounded?.[String(index)]?.tokens ?? entry.tokens[index] ?? 0

const tokensAt = ({ entry, shortened }: ViewItem, index: number): number =>
  shortened.get(index)?.tokens ?? entry.tokens[index] ?? 0

const resultsOf = (item: ViewItem): number => {
  let tokens = 0
  itemParts(item).forEach((part, index) => {
    if (isResponse(part)) tokens += tokensAt(item, index)
  })
  return tokens
}

/** Keeps the tokens of all results in a view from turn to turn, so that a grown view is not counted again. Mutable. */
export class ResultTokens {
  private tokens = 0
  private at: PersistentList.PersistentList<ViewItem>;

  /** Returns the tokens of the results in this version of the view. */
  *follow(view: PersistentList.PersistentList<ViewItem>): SlicedWork<number> {
    let added = 0
    let node = view
    for (; node !== undefined && node !== this.at; node = node.before) {
      added += resultsOf(node.value)
      yield
    }
    this.tokens = (node === undefined ? 0 : this.tokens) + added
    this.at = view
    return this.tokens
  }
}

/**
 * Returns the results that can be masked, newest first, and the approximate gain in tokens. These are all results older than
 * the newest `protect` tokens of results, except in the last message.
 */
export function* findMaskable(
  view: PersistentList.PersistentList<ViewItem>,
  protect: number,
  keeps: ReadonlySet<string>
): SlicedWork<{ readonly found: ReadonlyArray<Maskable>; readonly gain: number }> {
  const found: Array<Maskable> = []
  let seen = 0
  let gain = 0
  for (let node = view?.before; node !== undefined; node = node.before) {
    const { entry } = node.value
    for (let index = entry.content.parts.length - 1; index >= 0; index -= 1) {
      const part = entry.content.parts[index]
      const handle = entry.handles[index]
      if (
        part === undefined ||
        handle === undefined ||
        !isResponse(part) ||
        keeps.has(part.functionResponse.name ?? "")
      )
        continue
      const tokens = tokensAt(node.value, index)
      const isOld = seen >= protect
      seen += tokens
      // A result that is already shown by its ends gains nothing more.
      const isMasked = tokens < originalTokens(node.value, index)
      if (!isOld || isMasked || tokens <= minMaskedTokens || isErrorResponse(part) || resultText(part) === undefined)
        continue
      found.push({ entry: entry.id, index, handle, part, tokens })
      gain += tokens - minMaskedTokens / 2
    }
    yield
  }
  return { found, gain }
}
