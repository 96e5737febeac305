/** Keeps the prompts of any `effect/ai` language model within its window; each conversation can recall what left it. */

import { Layer } from "effect"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type { LibraryOptions } from "../layers/assembly/LiveLibrary.ts"
import * as CompressedLanguageModel from "../services/effect-ai/CompressedLanguageModel.ts"
import { layerLanguageModel } from "../services/effect-ai/LanguageModelBridge.ts"
import { layerRecallTool, type Recall, type RecallHandler } from "../services/effect-ai/RecallTool.ts"
import { own } from "../services/runtime/OwnLayers.ts"
import * as Palimpsest from "./Palimpsest.ts"

/** @category Services @since 0.1.0 */
export { Recall } from "../services/effect-ai/RecallTool.ts"
/** @category Functions @since 0.1.0 */
export { withConversation } from "../services/effect-ai/ConversationKey.ts"
/** @category Layers @since 0.1.0 */
export { layer as layerWithServices } from "../services/effect-ai/CompressedLanguageModel.ts"
/** @category Layers @since 0.1.0 */
export { layerRecallTool, layerRecallToolWith } from "../services/effect-ai/RecallTool.ts"
/** @category Constants @since 0.1.0 */
export { recallTool, recallToolkit } from "../services/effect-ai/RecallTool.ts"
/** @category Models @since 0.1.0 */
export type { Options as OptionsWithServices, Requirements } from "../services/effect-ai/CompressedLanguageModel.ts"
/** @category Models @since 0.1.0 */
export type { WindowOptions } from "../services/effect-ai/PromptWindow.ts"
/** @category Models @since 0.1.0 */
export type { RecallHandler } from "../services/effect-ai/RecallTool.ts"

/**
 * How a language model is kept within its window. `E` and `R` are the errors and requirements of the parts that you pass.
 *
 * @category Models
 * @since 0.1.0
 */
export interface Options<E = never, R = never>
  extends
    CompressedLanguageModel.Options,
    Pick<LibraryOptions<E, R>, "counter" | "hooks" | "home" | "store" | "summarizer"> {
  /** Who writes the snapshots: code (default), or the language model itself, at its price. */
  readonly snapshots?: "code" | "model" | undefined
}

/**
 * What the layer provides: the bounded language model, `Recall`, and the handler of the tool `recall`.
 *
 * @category Models
 * @since 0.1.0
 */
export type Services = LanguageModel.LanguageModel | Recall | RecallHandler

/**
 * Wraps the language model of the context so that its prompts always fit: `ContextWindow.layer({ window: 8_000 })`.
 *
 * *Details*: callers still send their whole history. What left the window can be recalled: add `recallToolkit` to the tools of the model, and its
 * handler is here. With `withConversation(key)` a conversation is kept in the `store` and continues after a restart; `home` or a `store` of your own makes that
 * durable. `layerWithServices` is the same over services that you compose yourself.
 *
 * **Example** (Keeping the prompts of a language model within 8,000 tokens)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { LanguageModel } from "effect/ai"
 * import { ContextWindow } from "palimpsest"
 * import { ScriptedLanguageModel } from "palimpsest/testing"
 *
 * const Provider = ScriptedLanguageModel.layer(["Hello."]) // the layer of your provider
 * const Bounded = ContextWindow.layer({ window: 8_000 }).pipe(Layer.provide(Provider))
 * const answer = LanguageModel.generateText({ prompt: "Hi" }).pipe(Effect.provide(Bounded))
 * console.log((await Effect.runPromise(answer)).text) // => Hello.
 * ```
 *
 * @category Layers
 * @since 0.1.0
 */
export const layer = <const O extends Options<unknown, unknown> = {}>(
  options: O = {} as O
): Layer.Layer<Services, Palimpsest.ErrorOf<O>, LanguageModel.LanguageModel | Palimpsest.ContextOf<O>> =>
  own((supplied) => {
    const { counter, home, hooks, policy, snapshots = "code", store, summarizer } = options
    const isModel = snapshots === "model"
    const parts = Palimpsest.layer({
      counter: counter && supplied(counter),
      home: home && supplied(home),
      hooks: hooks && supplied(hooks),
      store: store && supplied(store),
      summarizer,
      model: isModel ? layerLanguageModel({}) : undefined
    })
    return layerRecallTool.pipe(
      Layer.provideMerge(
        CompressedLanguageModel.layer({ ...options, policy: isModel ? { summarizer: "model", ...policy } : policy })
      ),
      Layer.provide(parts)
    )
    // The errors and requirements are those of the parts.
  }) as Layer.Layer<Services, Palimpsest.ErrorOf<O>, LanguageModel.LanguageModel | Palimpsest.ContextOf<O>>
