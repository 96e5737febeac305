import type { Content, Part } from "./Content.ts"
import { type Conversation, itemParts, view, type ViewItem } from "./Conversation.ts"

/** Which messages of a history are sent (spec 1.2). */

/** Which of the two rules of spec 1.2 says what a valid model message is: the seeds' (`older`) or today's (`newer`). */
export type ValidityRule = "older" | "newer"

const harmlessKeys = new Set(["text", "thought", "callIndex"])

const isValidPart = (part: Part | undefined, rule: ValidityRule): boolean => {
  if (part === undefined) return false
  const keys = Object.keys(part)
  if (keys.length === 0) return false
  if (part.thought === true || part.text !== "") return true
  return rule === "newer" && keys.some((key) => !harmlessKeys.has(key))
}

/** Whether a model message may stay in the curated history (spec 1.2, steps 4 and 5). */
export const isValidModel = (content: Content, rule: ValidityRule): boolean =>
  content.parts.length === 0 ? rule === "newer" : content.parts.every((part) => isValidPart(part, rule))

/**
 * The curated history (spec 1.2): every user message stays; a run of model messages stays only if all of it is valid.
 * Returns the indexes that stay.
 */
export const curatedIndexes = (contents: ReadonlyArray<Content>, rule: ValidityRule): Array<number> => {
  const kept: Array<number> = []
  for (let i = 0; i < contents.length;) {
    if (contents[i]?.role === "user") {
      kept.push(i)
      i += 1
      continue
    }
    const start = i
    let valid = true
    for (; i < contents.length; i += 1) {
      const content = contents[i]
      if (content === undefined || content.role !== "model") break
      valid = valid && isValidModel(content, rule)
    }
    if (valid) for (let at = start; at < i; at += 1) kept.push(at)
  }
  return kept
}

/** The curated history itself. */
export const curate = (contents: ReadonlyArray<Content>, rule: ValidityRule = "older"): Array<Content> =>
  curatedIndexes(contents, rule).flatMap((index) => contents[index] ?? [])

/** The message of an item of the view, with the parts that were shortened as they are shown. */
export const shownContent = (item: ViewItem): Content =>
  item.shortened.size === 0 ? item.entry.content : { ...item.entry.content, parts: itemParts(item) }

/** How a conversation's history is wanted. */
export interface HistoryOptions {
  /** Without what is not sent: model messages that are empty or broken, with those they stand in a row with. */
  readonly curated?: boolean
  /** What counts as broken; default: as Gemini CLI had it in March 2026. */
  readonly rule?: ValidityRule
}

/**
 * The messages of a conversation as they are after its compressions, whatever the strategy: all of them, or only those that
 * are curated. This is `getHistory(curated)` of Gemini CLI; what left the view is still in `entries(conversation)`.
 *
 * @example
 * ```ts
 * const conversation = yield* chat.conversation
 * const sent = history(conversation, { curated: true })
 * ```
 */
export const history = (
  conversation: Conversation,
  { curated = false, rule = "older" }: HistoryOptions = {}
): Array<Content> => {
  const contents = view(conversation).map(shownContent)
  return curated ? curate(contents, rule) : contents
}
