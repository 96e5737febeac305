/** The contract of a model provider, its errors, routing between models, and the bridges to and from the language models of `effect/ai`. */

/** @category Services @since 0.1.0 */
export { Model } from "../services/model/Model.ts"
/** @category Services @since 0.1.0 */
export { Router } from "../services/model/Router.ts"
/** @category Layers @since 0.1.0 */
export { layerLanguageModel as layerFromLanguageModel } from "../services/effect-ai/LanguageModelBridge.ts"
/** @category Layers @since 0.1.0 */
export { layerLanguageModel } from "../services/effect-ai/ModelLanguageModel.ts"
/** @category Guards @since 0.1.0 */
export { isRetryable } from "../services/model/Retry.ts"
/** @category Models @since 0.1.0 */
export {
  Generation,
  ModelAnswer,
  ModelChunk,
  type ModelDescription,
  ModelErrorReason,
  type ModelRequest
} from "../services/model/Model.ts"
/** @category Models @since 0.1.0 */
export type { RoutedModels, Routing, RoutingQuestion } from "../services/model/Router.ts"
/** @category Models @since 0.1.0 */
export type { LanguageModelOptions } from "../services/effect-ai/ModelLanguageModel.ts"
/** @category Models @since 0.1.0 */
export type { RoutingSize } from "../domain/agent/RoutingWindow.ts"
/** @category Models @since 0.1.0 */
export type { RetryPolicy } from "../services/model/Retry.ts"
/** @category Models @since 0.1.0 */
export type { ProviderOptions, Timeouts } from "../layers/model/Provider.ts"
/** @category Models @since 0.1.0 */
export type { ModelAccess, ModelReach } from "../domain/model/ModelRoute.ts"
/** @category Errors @since 0.1.0 */
export {
  AnswerTooLargeError,
  AuthenticationError,
  ContentPolicyError,
  ContextLengthError,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  ModelError,
  NetworkError,
  QuotaExhaustedError,
  RateLimitError,
  RequestBytesError,
  TimeoutError
} from "../services/model/Model.ts"
