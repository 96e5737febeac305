/** Settings: their schema, their defaults, and the service that reads and writes them. */

/** @category Services @since 0.1.0 */
export { Settings } from "../services/settings/Settings.ts"
/** @category Services @since 0.1.0 */
export type { GeminiImport } from "../services/settings/GeminiImport.ts"
/** @category Functions @since 0.1.0 */
export { withDefaults } from "../domain/settings/Settings.ts"
/** @category Constants @since 0.1.0 */
export { defaults } from "../domain/settings/Settings.ts"
/** @category Models @since 0.1.0 */
export type {
  SettingsPlace,
  EffectiveSettings,
  SettingsFileState,
  SettingsOrigin,
  SettingsSource,
  SettingsStates
} from "../services/settings/Settings.ts"
/** @category Models @since 0.1.0 */
export { SettingsFile, type Settings as SettingsValues } from "../domain/settings/Settings.ts"
/** @category Models @since 0.1.0 */
export type { SettingsPath, UnknownKey } from "../domain/settings/SettingsKey.ts"
/** @category Models @since 0.1.0 */
export type { JsonPath, SkipReason, SkippedKey } from "../domain/settings/SkippedSetting.ts"
/** @category Models @since 0.1.0 */
export type { ImportOptions, ImportPlaces } from "../services/settings/GeminiImport.ts"
/** @category Models @since 0.1.0 */
export type { ImportKind, ImportReport } from "../services/settings/ImportReport.ts"
/** @category Models @since 0.1.0 */
export type { SettingsNotice } from "../services/settings/Settings.ts"
/** @category Errors @since 0.1.0 */
export { SettingsError } from "../services/settings/Settings.ts"
/** @category Errors @since 0.1.0 */
export type { GeminiImportError } from "../services/settings/GeminiImport.ts"
