/** `palimpsest/anthropic`: Anthropic's Messages API as a layer of `Model`. It needs no further package. */
export * as AnthropicModel from "./layers/model/AnthropicModel.ts"
