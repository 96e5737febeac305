import { Schema } from "effect"
import { isCall, isMedia, isResponse, isText, isThought, type Part } from "../content/Content.ts"
import { Handle } from "../content/Handle.ts"
import { responseText } from "../content/MediaBlocks.ts"
import { type Entry, EntryId } from "../conversation/Conversation.ts"
import { printableLine } from "../text/InvisibleCharacters.ts"

/** The kind of a part, by which tokens are counted. */
export const PartKind = Schema.Literals([
  "user",
  "program",
  "model",
  "thought",
  "summary",
  "call",
  "output",
  "media",
  "other"
])
export type PartKind = typeof PartKind.Type

/** One of the largest parts. */
export const LargePart = Schema.Struct({
  entry: EntryId,
  /** Index of the part in the message. */
  part: Schema.Natural,
  kind: PartKind,
  tool: Schema.NullOr(Schema.String),
  tokens: Schema.Natural,
  handle: Schema.NullOr(Handle),
  /** Its first characters, safe for a terminal. */
  preview: Schema.String
})
export type LargePart = typeof LargePart.Type

const previewChars = 60

/** Returns the beginning of a part's text: at most 60 characters, safe for a terminal. */
export const preview = (part: Part): string => {
  const text = isCall(part)
    ? JSON.stringify(part.functionCall.args ?? {})
    : isResponse(part)
      ? responseText(part)
      : (part.text ?? JSON.stringify(part))
  const shown = [...printableLine(text.slice(0, previewChars * 8))]
  return shown.length <= previewChars ? shown.join("") : `${shown.slice(0, previewChars - 1).join("")}…`
}

/** Returns the kind of a part of an entry. */
export const partKindOf = (entry: Entry, part: Part): PartKind => {
  if (isCall(part)) return "call"
  if (isResponse(part)) return "output"
  if (isMedia(part)) return "media"
  if (isThought(part)) return "thought"
  if (!isText(part)) return "other"
  if (entry.author === "summary" || entry.author === "program") return entry.author
  return entry.content.role
}
