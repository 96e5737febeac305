/** Token counts: estimates, calibration by what a provider reports, and the windows of known models. */
export { TokenCount, Usage, estimateText } from "../domain/tokens/Tokens.ts"
export {
  type ModelFamily,
  type ModelLimits,
  modelLimits,
  modelTable,
  tokenLimit,
  assumedWindow
} from "../domain/model/ModelLimits.ts"
export { TokenCountError, TokenCounter } from "../services/tokens/TokenCounter.ts"
export { Calibrations, countRequest, estimateContents } from "../services/tokens/Calibrations.ts"
export type { CutPrompt } from "../domain/tokens/CutPrompts.ts"
export type { ModelPrice, PriceTable, Prices } from "../domain/tokens/Prices.ts"
export type { RequestCount } from "../services/tokens/Calibrations.ts"
