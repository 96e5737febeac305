/** Images whose sides are longer than a request may show. */

import { bytesOf } from "../../../content/Base64Bytes.ts"
import type { Part } from "../../../content/Content.ts"
import type { Handle } from "../../../content/Handle.ts"
import { imageSize } from "../../../content/ImageTokens.ts"
import { type EntryId, itemParts, type ViewItem } from "../../../conversation/Conversation.ts"
import { recallNote } from "../../../conversation/ToolOutputShortening.ts"
import { runtimeMark } from "../../../text/RuntimeMark.ts"

/** The longest side of an image in a request, in pixels. */
const maxImageSide = 1_200

/** An image that is too large, and the size to which it is reduced. */
export interface LargeImage {
  readonly entry: EntryId
  readonly part: number
  readonly handle: Handle | undefined
  readonly image: { readonly mimeType: string; readonly data: string }
  readonly size: { readonly width: number; readonly height: number }
  readonly target: { readonly width: number; readonly height: number }
}

/** Returns the images that are too large. Images that state no size stay as they are. */
export const largeImages = (items: ReadonlyArray<ViewItem>): ReadonlyArray<LargeImage> =>
  items.flatMap((item) =>
    itemParts(item).flatMap(({ inlineData: { data, mimeType = "" } = {} }, part) => {
      const size = data !== undefined && mimeType.startsWith("image/") ? imageSize(bytesOf(data)) : undefined
      if (data === undefined || size === undefined) return []
      const scale = maxImageSide / Math.max(size.width, size.height)
      if (scale >= 1) return []
      const side = (pixels: number) => Math.max(1, Math.round(pixels * scale))
      const target = { width: side(size.width), height: side(size.height) }
      const handle = item.entry.handles[part]
      return [{ entry: item.entry.id, part, handle, image: { mimeType, data }, size, target }]
    })
  )

/** Returns the note in the place of an image that cannot be reduced. */
export const largeImageNote = ({ handle, size }: LargeImage): Part => {
  const recall = handle === undefined ? "" : ` ${recallNote(handle)}`
  return {
    text: `${runtimeMark} An image of ${size.width} × ${size.height} pixels stood here. It is too large and cannot be reduced.${recall}`
  }
}
