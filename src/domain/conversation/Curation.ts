/** Selects the messages of a history that are sent, by Gemini CLI's rules for valid messages. */

import type { Content, Part } from "../content/Content.ts"
import { itemParts, type ViewItem } from "./Conversation.ts"

/** The rule for a valid model message: Gemini CLI's of March 2026 (`older`) or its later one (`newer`). */
export type ValidityRule = "older" | "newer"

const harmlessKeys = new Set(["text", "thought", "callIndex"])

/** Whether a part may stay in the curated history. Only a part with nothing but an empty text may not. */
export const isValidPart = (part: Part, rule: ValidityRule): boolean =>
  part.text === "" && part.thought !== true
    ? rule === "newer" && Object.keys(part).some((key) => !harmlessKeys.has(key))
    : part.text !== undefined || Object.keys(part).length > 0

/** Whether a model message may stay in the curated history. */
export const isValidModel = (content: Content, rule: ValidityRule): boolean =>
  content.parts.length === 0 ? rule === "newer" : content.parts.every((part) => isValidPart(part, rule))

/**
 * Returns the indexes of the curated history: the messages that are sent. Every user message stays. A run of model messages
 * stays only if all of them are valid.
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

/** Returns the message of a view item, with shortened parts as they are shown. */
export const shownContent = (item: ViewItem): Content =>
  item.shortened.size === 0 ? item.entry.content : { ...item.entry.content, parts: itemParts(item) }
