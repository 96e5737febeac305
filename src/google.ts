/** `palimpsest/google`: the Gemini API as a layer of `Model`. It needs no further package. */

/** @category Models @since 0.1.0 */
export * as GoogleModel from "./layers/model/GoogleModel.ts"
