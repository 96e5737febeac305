/** Token counts: estimates, calibration by what a provider reports, and the windows of known models. */

/** @category Services @since 0.1.0 */
export { TokenCounter } from "../services/tokens/TokenCounter.ts"
/** @category Services @since 0.1.0 */
export { Calibrations } from "../services/tokens/Calibrations.ts"
/** @category Functions @since 0.1.0 */
export { estimateText } from "../domain/tokens/Tokens.ts"
/** @category Functions @since 0.1.0 */
export { modelLimits, tokenLimit } from "../domain/model/ModelLimits.ts"
/** @category Functions @since 0.1.0 */
export { countRequest, estimateContents } from "../services/tokens/Calibrations.ts"
/** @category Constants @since 0.1.0 */
export { modelTable, assumedWindow } from "../domain/model/ModelLimits.ts"
/** @category Models @since 0.1.0 */
export { TokenCount, Usage } from "../domain/tokens/Tokens.ts"
/** @category Models @since 0.1.0 */
export type { ModelFamily, ModelLimits } from "../domain/model/ModelLimits.ts"
/** @category Models @since 0.1.0 */
export type { CutPrompt } from "../domain/tokens/CutPrompts.ts"
/** @category Models @since 0.1.0 */
export type { ModelPrice, PriceTable, Prices } from "../domain/tokens/Prices.ts"
/** @category Models @since 0.1.0 */
export type { RequestCount } from "../services/tokens/Calibrations.ts"
/** @category Errors @since 0.1.0 */
export { TokenCountError } from "../services/tokens/TokenCounter.ts"
