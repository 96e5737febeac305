/** Determines the context window of a conversation read from a file. */

import { Effect } from "effect"
import { isGoogleModel, assumedWindow } from "../../domain/model/ModelLimits.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import * as ModelWindows from "../../services/model/ModelWindows.ts"
import { Settings } from "../../services/settings/Settings.ts"
import type { Loaded } from "../../services/transcripts/LoadedTranscript.ts"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { noticeLine } from "../output/RuntimeText.ts"

/** Reads the settings of all places without their notices, because commands that only read a file do not print them. */
export const settings = Settings.use(({ read }) => read).pipe(
  Effect.map((effective): SettingsFile => effective.settings),
  Effect.mapError(({ message }) => badInput(printableLine(message)))
)

/** Whether a conversation of this format continues with our default model when it names none. */
const isOurs = ({ format }: Loaded): boolean => format === "palimpsest" || format === "contents" || format === "gemini"

/**
 * Returns the window of the model with which a conversation continues, in tokens.
 *
 * The model is the one that the file names last. When it names none and the format is ours or Gemini's, it is the model that a
 * chat would use. For an unknown model, prints the assumed window. `asks` allows a query to the provider, for Google's models
 * only.
 */
export const windowOf = Effect.fn("FileWindow.windowOf")(function* (
  loaded: Loaded,
  settings: SettingsFile,
  { asks, hint }: { readonly asks: boolean; readonly hint: string }
) {
  const { model, started } = loaded.session
  const name = model ?? started?.model ?? (isOurs(loaded) ? withDefaults(settings).model : undefined)
  if (name === undefined) {
    yield* Output.notice(`the file names no model; assuming a window of ${Output.number(assumedWindow)} tokens${hint}`)
    return assumedWindow
  }
  const { source, window } =
    asks && isGoogleModel(name)
      ? yield* ModelWindows.resolve(name, settings.models)
      : ModelWindows.resolveOffline(name, settings.models)
  if (source === "assumed" || source === "missing") {
    yield* Output.notice(`${noticeLine({ _tag: "UnknownModel", model: name, window })}${hint}`)
  }
  return window
})
