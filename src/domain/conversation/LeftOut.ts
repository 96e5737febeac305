/** Media that a provider refuses, and what stands in their place: content that a tool brought in has to have a way out. */

import { Predicate } from "effect"
import { isMedia, isResponse, type Part } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import { responseContent, splitMedia } from "../content/MediaBlocks.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import { type EntryId, itemParts, type ViewItem } from "./Conversation.ts"

/** A part of the view with media. */
export interface MediaPlace {
  readonly entry: EntryId
  readonly part: number
  readonly handle: Handle | undefined
  readonly shown: Part
  /** Whether the model has not answered it yet, so that no provider has accepted it. */
  readonly isNew: boolean
  /** Characters of its data. */
  readonly size: number
}

/** What was refused: images, other files, or a request of too many bytes. */
export type RefusedMedia = "image" | "file" | "bytes"

/** The media of a part, in any form. */
const mediaOf = (part: Part): ReadonlyArray<Part> =>
  isMedia(part) ? [part] : isResponse(part) ? responseContent(part).media : []

const isOfKind = ({ fileData, inlineData }: Part, kind: RefusedMedia): boolean =>
  kind === "bytes" || ((inlineData ?? fileData)?.mimeType ?? "").startsWith("image/") === (kind === "image")

/** Whether a message has media that may be what was refused. */
export const hasMedia = (parts: ReadonlyArray<Part>, kind: RefusedMedia): boolean =>
  parts.some((part) => mediaOf(part).some((media) => isOfKind(media, kind)))

/** Characters of the media of these parts. */
export const mediaSize = (parts: ReadonlyArray<Part>): number =>
  parts.flatMap(mediaOf).reduce((sum, { inlineData }) => sum + (inlineData?.data?.length ?? 0), 0)

/** Returns the media of a view, oldest first. */
export const mediaIn = (items: ReadonlyArray<ViewItem>, kind: RefusedMedia): ReadonlyArray<MediaPlace> => {
  const answered = items.findLastIndex(({ entry }) => entry.content.role === "model")
  return items.flatMap((item, index) =>
    itemParts(item).flatMap((shown, part): ReadonlyArray<MediaPlace> =>
      hasMedia([shown], kind)
        ? [
            {
              entry: item.entry.id,
              part,
              handle: item.entry.handles[part],
              shown,
              isNew: index > answered,
              size: mediaSize([shown])
            }
          ]
        : []
    )
  )
}

/**
 * Selects what to leave out of the next request: for too many bytes the oldest `2 ** round`, else what no provider has accepted yet, and if there is
 * none of that, all of the kind. Empty: the fault lies with the message that is to be sent, or nowhere.
 */
export const leftOut = (
  media: ReadonlyArray<MediaPlace>,
  kind: RefusedMedia,
  message: ReadonlyArray<Part>,
  round: number
): ReadonlyArray<MediaPlace> => {
  if (kind === "bytes") {
    const inline = media.filter(({ size }) => size > 0)
    const all = inline.reduce((sum, { size }) => sum + size, 0)
    return mediaSize(message) > all ? [] : inline.slice(0, 2 ** round)
  }
  const unaccepted = media.filter(({ isNew }) => isNew)
  return unaccepted.length > 0 ? unaccepted : hasMedia(message, kind) ? [] : media
}

/** The part that is shown in the place of one with media. `why` is a clause. */
export const withoutMedia = ({ handle, shown }: MediaPlace, why: string): Part => {
  const stored = handle === undefined ? "" : ` It is stored: ${handle}`
  const note = `${runtimeMark} An image or file stood here and was left out: ${why}.${stored}`
  const { functionResponse } = shown
  if (functionResponse === undefined) return { text: note }
  const { parts: _media, response, ...rest } = functionResponse
  const { rest: words } = splitMedia(response)
  const kept = Predicate.isObject(words) && !Array.isArray(words) ? words : { output: responseContent(shown).text }
  return { ...shown, functionResponse: { ...rest, response: { ...kept, note } } }
}
