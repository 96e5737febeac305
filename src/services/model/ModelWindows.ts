/** Determines a model's window and whether the model exists, from the settings, the table or the provider. */

import { Context, Effect } from "effect"
import { assumedWindow, isGoogleModel, modelLimits, suggestModel } from "../../domain/model/ModelLimits.ts"
import { Model } from "./Model.ts"

/** Windows set for single models, by name. */
export type WindowOverrides = Readonly<Record<string, { readonly window?: number | undefined }>>

/** The user's windows, for services without settings, such as a summarizer. Default: none. */
export const Overrides = Context.Reference<WindowOverrides>("palimpsest/services/model/ModelWindows/Overrides", {
  defaultValue: () => ({})
})

/** The window of a model in tokens, and its source. */
export interface ModelWindow {
  readonly window: number
  /** Whether request and answer share the window. */
  readonly sharesWindow: boolean
  /** `missing`: the provider has no such model. `assumed`: the model is unknown, so the window is `assumedWindow`. */
  readonly source: "settings" | "table" | "provider" | "missing" | "assumed"
}

const assumed = (source: "missing" | "assumed"): ModelWindow => ({
  window: assumedWindow,
  sharesWindow: false,
  source
})

/** Asks the provider, within its own time limit. A failure gives the assumed window. */
const askProvider = Effect.fnUntraced(function* (name: string) {
  const { describe } = yield* Model
  if (describe === undefined) return assumed("assumed")
  return yield* describe(name).pipe(
    Effect.map((description) =>
      description === undefined
        ? assumed("missing")
        : ({ window: description.window, sharesWindow: false, source: "provider" } as const)
    ),
    Effect.catch((error) => Effect.as(Effect.logDebug("the model could not be asked about", error), assumed("assumed")))
  )
})

/** The window set for a model. */
const overrideFor = (own: WindowOverrides, name: string): number | undefined =>
  Object.hasOwn(own, name) ? own[name]?.window : undefined

/** The window without asking the provider: the one set for the model, else the table's, else the assumed one. */
export const resolveOffline = (name: string, own: WindowOverrides = {}): ModelWindow => {
  const tableLimits = modelLimits(name)
  const window = overrideFor(own, name)
  if (window !== undefined) return { window, sharesWindow: tableLimits?.sharesWindow ?? false, source: "settings" }
  return tableLimits === undefined
    ? assumed("assumed")
    : { window: tableLimits.window, sharesWindow: tableLimits.sharesWindow, source: "table" }
}

/**
 * The window of a model: the one set for it (`own`, else `Overrides`), else the table's, else the provider's, else the assumed one. Where one model
 * answers every request, it is the window of that one. Never fails.
 */
export const resolve = Effect.fn("ModelWindows.resolve")(function* (
  name: string,
  own?: WindowOverrides
): Effect.fn.Return<ModelWindow, never, Model> {
  const { fixedModel = name } = yield* Model
  const here = resolveOffline(fixedModel, own ?? (yield* Overrides))
  return here.source === "assumed" ? yield* askProvider(fixedModel) : here
})

/** Whether a model exists, as far as can be determined before a request. */
export type Availability =
  | { readonly _tag: "Known" }
  /** There is no such model. `text` says so, with the name that may have been meant. */
  | { readonly _tag: "Missing"; readonly text: string }
  /** Neither the table nor the provider knows it. */
  | { readonly _tag: "Unknown"; readonly window: number }

/**
 * Determines whether a model exists. Google's models in the table and models with a configured window are known. The provider is asked about all
 * others.
 */
export const availability = Effect.fn("ModelWindows.availability")(function* (
  name: string,
  own?: WindowOverrides
): Effect.fn.Return<Availability, never, Model> {
  const reached = (yield* Model).access?.reach(name)
  if (reached?._tag === "NoModel") return { _tag: "Missing", text: reached.text }
  const here = resolveOffline(name, own)
  if (here.source === "settings" || (here.source === "table" && isGoogleModel(name))) return { _tag: "Known" }
  const { source } = yield* askProvider(name)
  if (source === "missing") return { _tag: "Missing", text: missingModelText(name) }
  return source === "provider" || here.source === "table" ? { _tag: "Known" } : { _tag: "Unknown", window: here.window }
})

/** Returns the message for a missing model. */
const missingModelText = (name: string): string => {
  const nearest = suggestModel(name, isGoogleModel)
  return `there is no model ${name}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`
}

/** The message for an unknown model: the assumed window. */
export const unknownModelText = (name: string, window: number): string =>
  `the model ${name} is not known here; a window of ${window.toLocaleString("en-US")} tokens is assumed`
