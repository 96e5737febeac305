import { Effect } from "effect"
import { withDefaults } from "../../domain/settings/Settings.ts"
import * as FileWindow from "./FileWindow.ts"

/** The settings with their defaults, for a command that has no agent. */
export const userSettings = Effect.map(FileWindow.settings, withDefaults)
