/** The rules that the laws impose on what a strategy returns, whoever wrote it. */

import { type Content, isCall, isMedia, isResponse, type Part } from "../content/Content.ts"
import { cleanCuts } from "../conversation/CleanCuts.ts"
import {
  type Conversation,
  entryId,
  type EntryId,
  itemParts,
  type Patch,
  view,
  type ViewItem
} from "../conversation/Conversation.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import { unprotect } from "../text/UntrustedText.ts"

const unknownMessage = "it names a message that the window does not show"
const separatedCall = "it separates a call from its response"

/** The rule with the message that broke it. */
const brokenAt = (rule: string, entry: EntryId): string => `${rule} (${entry})`

/** Whether a part may be shown like this: a result as a result of the same call, media as a note of the runtime. */
const mayReplace = (original: Part, replacement: Part): boolean => {
  const { functionResponse: was } = original
  const { functionResponse: is } = replacement
  if (was !== undefined) return is !== undefined && is.name === was.name && is.id === was.id
  return isMedia(original) && is === undefined && replacement.text?.startsWith(runtimeMark) === true
}

const brokenByShortening = (
  items: ReadonlyMap<EntryId, ViewItem>,
  shorten: ReadonlyArray<{ readonly entry: EntryId; readonly part: number; readonly replacement: Part }>
): string | undefined => {
  for (const { entry, part, replacement } of shorten) {
    const item = items.get(entry)
    const original = item === undefined ? undefined : itemParts(item)[part]
    if (original === undefined) return brokenAt(unknownMessage, entry)
    if (!mayReplace(original, replacement)) return brokenAt("it changes more than tool results and media", entry)
  }
  return undefined
}

/** The text of a message, however it was escaped and indented where it is quoted. */
const wordsOf = ({ parts }: Content): string =>
  unprotect(parts.map(({ text = "" }) => text).join("\n"))
    .replace(/\s+/g, " ")
    .trim()

/** Characters of an unanswered message that have to be quoted when it leaves. */
const quotedChars = 200

const isEnvironment = ({ entry }: ViewItem): boolean => entry.author === "environment"

const isUnanswered = ({ entry: { author, content } }: ViewItem): boolean =>
  content.role === "user" && author === undefined && !content.parts.some(isResponse)

/** Returns the rule that dropping these messages breaks. `inserted`: the texts that take their place. */
const brokenByDrop = (
  items: ReadonlyArray<ViewItem>,
  { from, to }: NonNullable<Patch["drop"]>,
  inserted: string
): string | undefined => {
  const first = items.findIndex(({ entry }) => entry.id === from)
  const last = items.findIndex(({ entry }) => entry.id === to)
  if (first < 0 || last < first) return brokenAt(unknownMessage, first < 0 ? from : to)
  const clean = cleanCuts(items)
  // Nothing before the first message can be separated from it.
  const isCleanStart = clean[first] === true || items.slice(0, first).every(isEnvironment)
  if (!isCleanStart || !clean[last + 1]) return brokenAt(separatedCall, isCleanStart ? to : from)
  const end = items[items.length - 1]
  if (end === undefined || last < items.length - 1) return undefined
  if (end.entry.content.parts.some(isCall) && end.entry.content.role === "model") return brokenAt(separatedCall, to)
  return isUnanswered(end) && !inserted.includes(wordsOf(end.entry.content).slice(0, quotedChars))
    ? brokenAt("it drops a message that has no answer yet", to)
    : undefined
}

/**
 * Returns the rule that this change breaks, in words that complete "the strategy … was not used: …"; undefined when it
 * breaks none. Sizes are compared elsewhere.
 */
export const brokenRule = (
  conversation: Conversation,
  {
    drop,
    insert,
    shorten
  }: {
    readonly drop?: Patch["drop"]
    readonly insert: ReadonlyArray<{ readonly content: Content }>
    readonly shorten: ReadonlyArray<{ readonly entry: EntryId; readonly part: number; readonly replacement: Part }>
  }
): string | undefined => {
  const items = view(conversation)
  const isText = (part: Part) => typeof part.text === "string" && !isCall(part) && !isResponse(part) && !isMedia(part)
  const foreign = insert.findIndex(({ content }) => !content.parts.every(isText))
  if (foreign >= 0 || (insert.length > 0 && drop === undefined)) {
    return brokenAt("it inserts something other than text", entryId(conversation.next + Math.max(0, foreign)))
  }
  return (
    brokenByShortening(new Map(items.map((item) => [item.entry.id, item])), shorten) ??
    (drop === undefined
      ? undefined
      : brokenByDrop(items, drop, insert.map(({ content }) => wordsOf(content)).join("\n")))
  )
}
