/** `palimpsest/google`: the Gemini API as a layer of `Model`. It needs the package `@google/genai`. */
export * as GoogleModel from "./layers/model/GoogleModel.ts"
