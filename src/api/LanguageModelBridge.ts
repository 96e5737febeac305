/** Any language model of `effect/ai` as a model provider: the other way is `Models.layerLanguageModel`. */
export { layerLanguageModel } from "../services/effect-ai/LanguageModelBridge.ts"
