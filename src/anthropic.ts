/** `palimpsest/anthropic`: Anthropic's Messages API as a layer of `Model`. It needs no further package. */

/** @category Models @since 0.1.0 */
export * as AnthropicModel from "./layers/model/AnthropicModel.ts"
