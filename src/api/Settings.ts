/** Settings: their schema, their defaults, and the service that reads and writes them. */
export { Settings, SettingsError, type SettingsPlace } from "../services/settings/Settings.ts"
export { SettingsFile, defaults, withDefaults } from "../domain/settings/Settings.ts"
export type { Settings as SettingsValues } from "../domain/settings/Settings.ts"
export type { SettingsPath, UnknownKey } from "../domain/settings/SettingsKey.ts"
export type { JsonPath, SkipReason, SkippedKey } from "../domain/settings/SkippedSetting.ts"
export type { GeminiImport, GeminiImportError, ImportOptions, ImportPlaces } from "../services/settings/GeminiImport.ts"
export type { ImportKind, ImportReport, SkipReason as ImportSkipReason } from "../services/settings/ImportReport.ts"
export type {
  EffectiveSettings,
  SettingsFileState,
  SettingsOrigin,
  SettingsSource,
  SettingsStates
} from "../services/settings/Settings.ts"
export type { LeftOutReason, SettingsNotice } from "../services/settings/SettingsNotice.ts"
