/** The contract of what makes images smaller. */

import { Context, Effect } from "effect"

/** An image as it is sent: its media type, and its bytes in base64. */
export interface ImageData {
  readonly mimeType: string
  readonly data: string
}

/** Makes images smaller. */
export interface Reducer {
  /** Returns the image at this size in pixels. Undefined when it cannot be decoded here, or not in time. */
  readonly reduce: (image: ImageData, width: number, height: number) => Effect.Effect<ImageData | undefined>
}

/** Makes images smaller before they are sent. By default there is no decoder, and images are not reduced. */
export const ImageReducer = Context.Reference<Reducer>("palimpsest/services/compression/strategies/ImageReducer", {
  defaultValue: () => ({ reduce: () => Effect.undefined })
})
