/** How messages of a dialect are read as contents, and contents written as messages, so that what is kept stays as it was. */

import { type Content, type Part, plainText } from "../content/Content.ts"
import { blockMedia, responseText, splitMedia } from "../content/MediaBlocks.ts"
import { isJson, type Json, textOrEmpty } from "../text/JsonObject.ts"

/** A place in a message that holds one part, and how a shorter part is written there. */
export interface PartSlot {
  /** The index of the message. */
  readonly message: number
  readonly path: ReadonlyArray<string | number>
  /** Writes a shorter part as the dialect has it. */
  readonly write: (part: Part) => unknown
}

/** Messages that form one content: a compression keeps or removes them together. */
export interface MessageGroup {
  /** The index of the first message, and the index after the last. */
  readonly from: number
  readonly to: number
  readonly content: Content
  /** Where each part is held; undefined for one that is never shortened. */
  readonly slots: ReadonlyArray<PartSlot | undefined>
}

/** How a dialect writes its messages. */
export interface MessageCodec {
  /** Groups messages. A message in no group is an instruction or has an unknown form, and stays as it is. */
  readonly read: (messages: ReadonlyArray<unknown>) => ReadonlyArray<MessageGroup>
  /** Writes a content of texts. */
  readonly write: (content: Content) => unknown
}

/** A part of a message that is read, and its place. */
export type ReadPart = readonly [part: Part, slot: PartSlot | undefined]

/** Returns the text that represents a part: the output of a result. */
export const shortText = (part: Part): string =>
  part.functionResponse === undefined ? (part.text ?? JSON.stringify(part)) : responseText(part)

/** Carries a value that no dialect's text or call is: its media, or else its JSON as a thought, which is counted and can be recalled. */
export const opaque = (value: unknown): Part =>
  blockMedia(value) ?? { text: JSON.stringify(splitMedia(value).rest) ?? "", thought: true }

/** The media within such a value that is none itself, such as the result of a tool that the provider runs. They are never shortened. */
export const opaqueMedia = (value: unknown): ReadonlyArray<ReadPart> =>
  blockMedia(value) === undefined ? splitMedia(value).media.map((part) => [part, undefined]) : []

/** The parts of a message's content: a text, or a list of blocks. `read` reads the block at a path. */
export const contentParts = (
  content: unknown,
  message: number,
  read: (block: Json, path: PartSlot["path"]) => ReadonlyArray<ReadPart>
): ReadonlyArray<ReadPart> => {
  if (typeof content === "string") return [[{ text: content }, { message, path: ["content"], write: shortText }]]
  const blocks: ReadonlyArray<unknown> = Array.isArray(content) ? content : []
  return blocks.flatMap((block, at) => (isJson(block) ? read(block, ["content", at]) : [[opaque(block), undefined]]))
}

/** The texts of a result that has nothing but blocks of this type; any other as it is. */
export const resultTexts = (result: unknown, type: string): unknown => {
  const blocks: ReadonlyArray<unknown> = Array.isArray(result) ? result : []
  const texts = blocks.flatMap((block) => (isJson(block) && block["type"] === type ? [textOrEmpty(block, "text")] : []))
  return texts.length === blocks.length && Array.isArray(result) ? texts.join("\n") : result
}

/** A message of texts in two roles, as most dialects have them. */
export const plainMessage = (content: Content): Json => ({
  role: content.role === "model" ? "assistant" : "user",
  content: plainText(content)
})

/** The group of these messages. */
export const groupOf = (
  from: number,
  to: number,
  role: Content["role"],
  parts: ReadonlyArray<ReadPart>
): MessageGroup => ({
  from,
  to,
  content: { role, parts: parts.map(([part]) => part) },
  slots: parts.map(([, slot]) => slot)
})

/** A copy of a value of JSON with another value at a path. */
const replacedAt = (value: unknown, [key, ...rest]: ReadonlyArray<string | number>, by: unknown): unknown => {
  if (key === undefined) return by
  if (Array.isArray(value)) {
    return value.map((each: unknown, index) => (index === key ? replacedAt(each, rest, by) : each))
  }
  return isJson(value) ? { ...value, [key]: replacedAt(value[key], rest, by) } : value
}

/** The messages of a group with these parts in a shorter form. */
export const shortenedMessages = (
  messages: ReadonlyArray<unknown>,
  { from, slots, to }: MessageGroup,
  shortened: ReadonlyMap<number, { readonly part: Part }>
): ReadonlyArray<unknown> => {
  const own = messages.slice(from, to)
  for (const [index, { part }] of shortened) {
    const slot = slots[index]
    if (slot === undefined) continue
    const at = slot.message - from
    own[at] = replacedAt(own[at], slot.path, slot.write(part))
  }
  return own
}
