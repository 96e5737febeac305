import { Effect, type Stdio } from "effect"
import { printable } from "../domain/Inspection.ts"
import { isGoogles, unknownWindow } from "../domain/Models.ts"
import { type SettingsFile, withDefaults } from "../domain/Settings.ts"
import type { Model } from "../services/Model.ts"
import * as ModelWindows from "../services/ModelWindows.ts"
import { Settings } from "../services/Settings.ts"
import type { Loaded } from "../services/Transcripts.ts"
import { badInput, type ExitError } from "./ExitError.ts"
import * as Output from "./Output.ts"

/** The window that a conversation from a file goes on in. */

/** The settings of all places, without what is to be said about them: a file is looked at, nothing is begun. */
export const settings: Effect.Effect<SettingsFile, ExitError, Settings> = Effect.gen(function* () {
  const { read } = yield* Settings
  const found = yield* Effect.mapError(read, ({ message }) => badInput(printable(message)))
  return found.settings
})

/** Formats whose conversations go on with a model of ours where they name none. */
const isOurs = ({ format }: Loaded): boolean => format === "palimpsest" || format === "contents" || format === "gemini"

/**
 * The window of the model that goes on with a conversation: the one that the file names last; where it names none and the
 * format is ours or Gemini's, the one that a chat would ask. Says what is assumed where nobody knows the model. `asks`:
 * whether the provider may be asked, which is asked about Google's models only.
 */
export const of = Effect.fn("FileWindow.of")(function* (
  loaded: Loaded,
  settings: SettingsFile,
  { asks, hint }: { readonly asks: boolean; readonly hint: string }
): Effect.fn.Return<number, never, Model | Stdio.Stdio> {
  const { model, started } = loaded.session
  const name = model ?? started?.model ?? (isOurs(loaded) ? withDefaults(settings).model : undefined)
  if (name === undefined) {
    yield* Output.notice(
      `the file names no model; a window of ${Output.number(unknownWindow)} tokens is assumed${hint}`
    )
    return unknownWindow
  }
  const { source, window } =
    asks && isGoogles(name)
      ? yield* ModelWindows.of(name, settings.models)
      : ModelWindows.offline(name, settings.models)
  if (source === "assumed" || source === "missing") {
    yield* Output.notice(printable(`${ModelWindows.unknownText(name, window)}${hint}`))
  }
  return window
})
