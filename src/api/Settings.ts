/** Settings: their schema, their defaults, and the service that reads and writes them. */
export { Settings, SettingsError, type SettingsPlace } from "../services/settings/Settings.ts"
export { SettingsFile, defaults, withDefaults } from "../domain/settings/Settings.ts"
