/** `palimpsest/openai`: OpenAI, and every server that speaks Chat Completions, as a layer of `Model`. It needs no further package. */
export * as OpenAiModel from "./layers/model/OpenAiModel.ts"
