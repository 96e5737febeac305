import { resultText } from "./Bounded.ts"
import type * as Chain from "./Chain.ts"
import { isErrorResponse, isResponse, type Part } from "./Content.ts"
import { type EntryId, itemParts, type ViewItem } from "./Conversation.ts"
import type { Handle } from "./Handle.ts"
import type { Work } from "./Work.ts"

/** Which old results of tools are shown by their ends only, so that newer ones have room (spec 5.4). */

/** When results are masked. Tokens. */
export interface MaskLimits {
  /** Of results, newest first, that stay as they are. */
  readonly protect: number
  /** The least that is gained at once: what was sent before changes as seldom as possible. */
  readonly least: number
}

/** Spec 5.4. */
export const defaultMasking: MaskLimits = { protect: 50_000, least: 30_000 }

/** Results that are never masked, whoever made them (spec 5.4): what they say is needed word for word. */
export const alwaysKept: ReadonlyArray<string> = [
  "activate_skill",
  "ask_user",
  "enter_plan_mode",
  "exit_plan_mode",
  "write_todos",
  "complete_task"
]

/** A result that is worth masking has more tokens than what would stand in its place. */
const worthwhile = 400

/** A result that may be masked. */
export interface Maskable {
  readonly entry: EntryId
  readonly index: number
  readonly handle: Handle
  /** As it is kept, not as it is shown. */
  readonly part: Part
  /** As it is shown now. */
  readonly tokens: number
}

/** As it came into the window, before any mask or compression. */
const tokensFirst = ({ entry }: ViewItem, index: number): number =>
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

/** Tokens of all results in a view, kept from turn to turn: a view that grew is not counted anew. Mutable. */
export class ResultTokens {
  private tokens = 0
  private at: Chain.Chain<ViewItem>;

  /** Tokens of the results in this version of the view. */
  *follow(view: Chain.Chain<ViewItem>): Work<number> {
    let added = 0
    let node = view
    for (; node !== undefined && node !== this.at; node = node.before) {
      added += resultsOf(node.value)
      yield 5
    }
    this.tokens = (node === undefined ? 0 : this.tokens) + added
    this.at = view
    return this.tokens
  }
}

/**
 * The results that may be masked, newest first: all that are older than the newest `protect` tokens of results; and about how
 * many tokens that would gain. The last message is left alone.
 */
export function* maskable(
  view: Chain.Chain<ViewItem>,
  protect: number,
  keeps: ReadonlySet<string>
): Work<{ readonly found: ReadonlyArray<Maskable>; readonly gain: number }> {
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
      // What is shown by its ends already gains nothing more.
      const isMasked = tokens < tokensFirst(node.value, index)
      if (!isOld || isMasked || tokens <= worthwhile || isErrorResponse(part) || resultText(part) === undefined)
        continue
      found.push({ entry: entry.id, index, handle, part, tokens })
      gain += tokens - worthwhile / 2
    }
    yield 5
  }
  return { found, gain }
}
