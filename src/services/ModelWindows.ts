import { Context, Effect } from "effect"
import { isGoogles, knownModel, nearestModel, unknownWindow } from "../domain/Models.ts"
import { Model } from "./Model.ts"

/** How large the windows of models are, and which models there are: from the table, else from the provider. */

/** What somebody set for single models, by name. */
export type OwnWindows = Readonly<Record<string, { readonly window?: number | undefined }>>

/** What the user set for single models, for whoever holds no settings, such as a summarizer. By default nothing. */
export const Own = Context.Reference<OwnWindows>("palimpsest/services/ModelWindows/Own", { defaultValue: () => ({}) })

/** The window of a model, and who says so. Tokens. */
export interface ModelWindow {
  readonly window: number
  /** Whether the answer has to fit into it beside the request. */
  readonly sharesWindow: boolean
  /** `missing`: the provider has no such model. `assumed`: nobody knows it, so the window is `unknownWindow`. */
  readonly source: "settings" | "table" | "provider" | "missing" | "assumed"
}

const assumed = (source: "missing" | "assumed"): ModelWindow => ({
  window: unknownWindow,
  sharesWindow: false,
  source
})

/** What the provider says. It is not waited for beyond its own time limit, and what it cannot say is no failure. */
const asked = Effect.fnUntraced(function* (name: string): Effect.fn.Return<ModelWindow, never, Model> {
  const { describe } = yield* Model
  if (describe === undefined) return assumed("assumed")
  return yield* describe(name).pipe(
    Effect.map((said) =>
      said === undefined
        ? assumed("missing")
        : ({ window: said.window, sharesWindow: false, source: "provider" } as const)
    ),
    Effect.catch((error) => Effect.as(Effect.logDebug("the model could not be asked about", error), assumed("assumed")))
  )
})

/** What somebody set for a model, if they did. */
const set = (own: OwnWindows, name: string): number | undefined =>
  Object.hasOwn(own, name) ? own[name]?.window : undefined

/** Without asking anybody: what was set for the model, else the table's, else the default. */
export const offline = (name: string, own: OwnWindows = {}): ModelWindow => {
  const known = knownModel(name)
  const window = set(own, name)
  if (window !== undefined) return { window, sharesWindow: known?.sharesWindow ?? false, source: "settings" }
  return known === undefined
    ? assumed("assumed")
    : { window: known.window, sharesWindow: known.sharesWindow, source: "table" }
}

/**
 * The window of a model: what was set for it (`own`, else `Own`), else the table's, else the provider's, else the default.
 * Never fails.
 */
export const of = Effect.fn("ModelWindows.of")(function* (
  name: string,
  own?: OwnWindows
): Effect.fn.Return<ModelWindow, never, Model> {
  const here = offline(name, own ?? (yield* Own))
  return here.source === "assumed" ? yield* asked(name) : here
})

/** Whether a model can be asked, as far as that is known before it is. */
export type Standing =
  | { readonly _tag: "Known" }
  /** The provider has no such model; `nearest`: what may have been meant. */
  | { readonly _tag: "Missing"; readonly nearest: string | undefined }
  /** Nobody can say. */
  | { readonly _tag: "Unknown"; readonly window: number }

/**
 * Whether a model can be asked. Names of Google's in the table and names that somebody set are known; all others are the
 * provider's to know, also those of other makers in the table: a gateway may serve them, Google does not.
 */
export const standing = Effect.fn("ModelWindows.standing")(function* (
  name: string,
  own?: OwnWindows
): Effect.fn.Return<Standing, never, Model> {
  const here = offline(name, own)
  if (here.source === "settings" || (here.source === "table" && isGoogles(name))) return { _tag: "Known" }
  const { source } = yield* asked(name)
  if (source === "missing") return { _tag: "Missing", nearest: nearestModel(name, isGoogles) }
  return source === "provider" || here.source === "table" ? { _tag: "Known" } : { _tag: "Unknown", window: here.window }
})

/** Why a model is not taken, for the person. */
export const missingText = (name: string, nearest: string | undefined): string =>
  `there is no model ${name}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`

/** What is assumed of a model that nobody knows, and how to set it. */
export const unknownText = (name: string, window: number): string =>
  `the model ${name} is not known here; a window of ${window.toLocaleString("en-US")} tokens is assumed (to set it: palimpsest config set models.${name}.window N)`
