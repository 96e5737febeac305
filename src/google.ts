/** `palimpsest/google`: the Gemini API as a layer of `Model`. It needs the package `@google/genai`. */

/** @category Models @since 0.1.0 */
export * as GoogleModel from "./layers/model/GoogleModel.ts"
