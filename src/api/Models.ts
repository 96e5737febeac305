/** The contract of a model provider, its errors, routing between models, and the bridges to and from the language models of `effect/ai`. */
export {
  AnswerTooLargeError,
  AuthenticationError,
  ContentPolicyError,
  ContextLengthError,
  Generation,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  Model,
  ModelAnswer,
  ModelChunk,
  type ModelDescription,
  ModelError,
  ModelErrorReason,
  type ModelRequest,
  NetworkError,
  QuotaExhaustedError,
  RateLimitError,
  RequestBytesError,
  TimeoutError
} from "../services/model/Model.ts"
export { isRetryable } from "../services/model/Retry.ts"
export { type RoutedModels, Router, type Routing, type RoutingQuestion } from "../services/model/Router.ts"
export { layerLanguageModel as layerFromLanguageModel } from "../services/effect-ai/LanguageModelBridge.ts"
export { type LanguageModelOptions, layerLanguageModel } from "../services/effect-ai/ModelLanguageModel.ts"
export type { RoutingSize } from "../domain/agent/RoutingWindow.ts"
export type { RetryPolicy } from "../services/model/Retry.ts"
export type { ProviderOptions, Timeouts } from "../layers/model/Provider.ts"
export type { ModelAccess, ModelReach } from "../domain/model/ModelRoute.ts"
