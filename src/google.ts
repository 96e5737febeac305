/** `palimpsest/google`: the Gemini API as a layer of `Model`. */
export * as GoogleModel from "./layers/model/GoogleModel.ts"
