import { Context, Effect } from "effect"

/** An image as it is sent: its media type, and its bytes in base64. */
export interface ImageData {
  readonly mimeType: string
  readonly data: string
}

/** Makes images smaller. */
export interface Reducer {
  /** Returns an image of this size in pixels. Undefined: it cannot be read here, or not in time. */
  readonly reduce: (image: ImageData, width: number, height: number) => Effect.Effect<ImageData | undefined>
}

/** Makes images smaller before they are sent. Default: there is no decoder, and no image can be reduced. */
export const ImageReducer = Context.Reference<Reducer>("palimpsest/services/compression/strategies/ImageReducer", {
  defaultValue: () => ({ reduce: () => Effect.undefined })
})
