import { Effect } from "effect"
import { withDefaults } from "../../domain/settings/Settings.ts"
import { Settings } from "../../services/settings/Settings.ts"
import { badInput } from "../output/ExitError.ts"

/** The settings with their defaults, for a command that has no agent. Settings that cannot be read are bad input: status 2. */
export const userSettings = Settings.use(({ read }) => read).pipe(
  Effect.map(({ settings }) => withDefaults(settings)),
  Effect.mapError((error) => badInput(error.message))
)
