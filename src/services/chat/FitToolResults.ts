import { Effect } from "effect"
import { isMedia, isResponse, type Part } from "../../domain/content/Content.ts"
import { type Entry, sum } from "../../domain/conversation/Conversation.ts"
import {
  type BoundedResult,
  boundedPart,
  fairShare,
  type OutputBound,
  type BoundedForm,
  resultText,
  omittedMediaNote
} from "../../domain/conversation/ToolOutputBound.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { TokenCounter, type TokenCountError } from "../tokens/TokenCounter.ts"

/** Truncates the tool outputs of a new entry as the model sees them. Each is stored whole. */

/** Attempts to make results fit their share of the window. Each reduces the shares by the remaining excess. */
const maxFitAttempts = 4
/** Characters of a result that are shown however small the window is. */
const minShownChars = 400

/**
 * Bounds how the results of an entry are shown: none longer than `bound` allows, and all together within `room` tokens. Each
 * is stored whole. Nothing is bounded when `bound.most` is 0. `isBoundable` selects the parts; default: results and their
 * media.
 */
export const withBounds = Effect.fnUntraced(function* (
  entry: Entry,
  instead: Readonly<Record<string, string>>,
  bound: OutputBound,
  room: number,
  isBoundable: (part: Part) => boolean = (part) => isResponse(part) || isMedia(part)
): Effect.fn.Return<Entry, TokenCountError, TokenCounter> {
  const results = entry.content.parts.flatMap((part, index) => (isBoundable(part) ? [{ part, index }] : []))
  if (results.length === 0 || bound.most <= 0) return entry
  const counter = yield* TokenCounter
  const bounded: Record<string, BoundedResult> = {}
  const tokensOf = (index: number) => bounded[String(index)]?.tokens ?? entry.tokens[index] ?? 0
  const show = Effect.fnUntraced(function* ({ index, part }: (typeof results)[number], recipe: BoundedForm) {
    const handle = entry.handles[index]
    if (handle === undefined) return
    const tokens = sum(yield* counter.count([boundedPart(part, handle, recipe)]))
    if (tokens < tokensOf(index)) bounded[String(index)] = { ...recipe, tokens: TokenCount.make(tokens) }
  })
  const { form, lines, most } = bound
  for (const result of results) {
    if (!isResponse(result.part)) continue
    const summary = instead[String(result.index)]
    const { length } = resultText(result.part) ?? ""
    if (summary !== undefined) yield* show(result, { text: summary })
    else if (length > most) yield* show(result, { form, size: form === "head-tail-lines" ? lines : most })
  }
  for (let attempt = 0; attempt < maxFitAttempts; attempt += 1) {
    const sizes = results.map(({ index }) => tokensOf(index))
    if (sum(sizes) <= room) break
    const share = fairShare(sizes, room)
    for (const result of results) {
      const tokens = tokensOf(result.index)
      if (tokens <= share) continue
      if (isMedia(result.part)) {
        yield* show(result, { text: omittedMediaNote(result.part) })
        continue
      }
      const known = bounded[String(result.index)]
      const handle = entry.handles[result.index]
      const shown = known === undefined || handle === undefined ? result.part : boundedPart(result.part, handle, known)
      const { length } = resultText(shown) ?? shown.text ?? ""
      const size = Math.max(minShownChars, Math.floor((length * share * 0.9) / tokens))
      yield* show(result, { form: "head-tail-chars", size })
    }
  }
  return Object.keys(bounded).length === 0 ? entry : { ...entry, bounded }
})
