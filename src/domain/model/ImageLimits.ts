import { bytesOf } from "../content/Base64Bytes.ts"
import type { Part } from "../content/Content.ts"
import { imageSize } from "../content/ImageTokens.ts"
import { makerOf } from "./ModelLimits.ts"

/** The largest images that providers accept. A larger one is reduced before it is sent: a refused image is refused again with each request. */
export interface ImageLimits {
  /** Pixels of the longer side. */
  readonly maxSide: number
  /** Pixels of the longer side where a request has more than `count` images. */
  readonly many: { readonly count: number; readonly maxSide: number }
  /** Characters of base64. */
  readonly maxChars: number
}

const mebi = 1024 * 1024
const unlimited = { maxSide: Infinity, many: { count: Infinity, maxSide: Infinity } }

/** Returns the limits that a model's maker states: Anthropic those of an image, the others those of a request, of which one image may take most. */
export const imageLimitsOf = (model: string): ImageLimits => {
  switch (makerOf(model)) {
    case "anthropic":
      return { maxSide: 8_000, many: { count: 20, maxSide: 2_000 }, maxChars: 5 * mebi }
    case "openai":
      return { ...unlimited, maxChars: 20 * mebi }
    default:
      return { ...unlimited, maxChars: 14 * mebi }
  }
}

/** The longer side of a reduced image in pixels: no model looks more closely, and any number of such images is accepted. */
const reducedSide = 2_000
/** The share of the limit of bytes that a reduced image aims at. */
const bytesHeadroom = 0.8

/** An image that is too large, and the size in pixels to which it is reduced. */
export interface OversizedImage {
  readonly mimeType: string
  readonly data: string
  readonly width: number
  readonly height: number
}

/** Whether a part is an image in the message itself. */
export const isInlineImage = ({ inlineData }: Part): boolean =>
  inlineData?.data !== undefined && inlineData.mimeType?.startsWith("image/") === true

/** Returns the size to which an image has to be reduced in a request with so many images; undefined when it is accepted, or states no size. */
export const oversized = (part: Part, limits: ImageLimits, images: number): OversizedImage | undefined => {
  const { data, mimeType = "" } = part.inlineData ?? {}
  if (data === undefined || !isInlineImage(part)) return undefined
  const size = imageSize(bytesOf(data))
  if (size === undefined) return undefined
  const side = Math.max(size.width, size.height)
  const maxSide = images > limits.many.count ? limits.many.maxSide : limits.maxSide
  if (side <= maxSide && data.length <= limits.maxChars) return undefined
  const bySide = Math.min(1, reducedSide / side)
  const byBytes = Math.min(1, Math.sqrt((limits.maxChars * bytesHeadroom) / data.length))
  const scale = Math.min(bySide, byBytes)
  const pixels = (length: number) => Math.max(1, Math.round(length * scale))
  return { mimeType, data, width: pixels(size.width), height: pixels(size.height) }
}
