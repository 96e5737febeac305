/** `palimpsest/openai`: OpenAI, and every server that speaks Chat Completions, as a layer of `Model`. It needs no further package. */

/** @category Models @since 0.1.0 */
export * as OpenAiModel from "./layers/model/OpenAiModel.ts"
