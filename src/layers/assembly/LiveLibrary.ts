/** Everything that conversations need, with a default for every part. */

import { Effect, Layer } from "effect"
import { Chats } from "../../services/chat/Chats.ts"
import { ChatDefaults, type ChatSettings } from "../../services/chat/ChatSettings.ts"
import { Compression } from "../../services/compression/Compression.ts"
import type { StrategyRunner } from "../../services/compression/strategies/StrategyRunner.ts"
import { OwnStrategies } from "../../services/compression/strategies/StrategyRunners.ts"
import * as ModelSummarizer from "../../services/compression/summary/ModelSummarizer.ts"
import { Summarizer } from "../../services/compression/summary/Summarizer.ts"
import { HookSystem } from "../../services/hooks/HookSystem.ts"
import { Model } from "../../services/model/Model.ts"
import { own } from "../../services/runtime/OwnLayers.ts"
import type { SessionStore } from "../../services/session/SessionStore.ts"
import type { TempStore } from "../../services/session/TempStore.ts"
import type { Calibrations } from "../../services/tokens/Calibrations.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import * as MemoryCalibrations from "../testing/MemoryCalibrations.ts"
import * as MemorySessionStore from "../testing/MemorySessionStore.ts"
import * as MemoryTempStore from "../testing/MemoryTempStore.ts"

/** The services of the whole. */
export type LibraryServices =
  | Calibrations
  | Chats
  | Compression
  | HookSystem
  | Model
  | SessionStore
  | Summarizer
  | TempStore
  | TokenCounter

/** The services of a `home`: where sessions, large parts and calibrations of token counts are kept. */
export type HomeServices = Calibrations | SessionStore | TempStore

/** The services that a summarizer of your own may need of the whole. */
export type SummarizerServices = HomeServices | HookSystem | Model | TokenCounter

/** The parts that a program supplies. Absent ones have defaults. `E` and `R` are the errors and requirements of these parts. */
export interface LibraryOptions<E = never, R = never> {
  /** Answers messages, and writes the snapshots of chats unless their policy says `summarizer: "extractive"`. Default: none; code writes the snapshots. */
  readonly model?: Layer.Layer<Model, E, R> | undefined
  /** Keeps the sessions. Default: those of `home`; without `home` the memory of the process. */
  readonly store?: Layer.Layer<SessionStore, E, R> | undefined
  /** Keeps sessions and calibrations of token counts, such as `Home.layer(folder)` of `palimpsest/node`. Default: the memory of the process. */
  readonly home?: Layer.Layer<HomeServices, E, R> | undefined
  /** Writes the snapshots, which are verified. Default: `model` or code, as the policy says; that of chats says `model`. It may need the model and the other parts. */
  readonly summarizer?: Layer.Layer<Summarizer, E, R | SummarizerServices> | undefined
  /** Counts tokens. Default: an estimate that learns from the counts which `model` reports. */
  readonly counter?: Layer.Layer<TokenCounter, E, R> | undefined
  /** Default: no hooks but those that the program subscribes. */
  readonly hooks?: Layer.Layer<HookSystem, E, R> | undefined
  /** The settings of its chats: model, window, threshold, policy. Default: the one model of `model`, else `gemini-2.5-flash`, and its window. */
  readonly chat?: Partial<ChatSettings> | undefined
  /** Compression strategies of the program's own; the policy names one. */
  readonly strategies?: ReadonlyArray<StrategyRunner> | undefined
}

const memory = Layer.mergeAll(MemorySessionStore.layer, MemoryTempStore.layer, MemoryCalibrations.layer)

/** The settings of chats. A layer of one model names it. */
const chatDefaults = (chat: Partial<ChatSettings> = {}) =>
  Layer.effect(
    ChatDefaults,
    Effect.gen(function* () {
      const defaults = yield* ChatDefaults
      const { fixedModel = defaults.model } = yield* Model
      return { ...defaults, model: fixedModel, ...chat }
    })
  )

/** The services that these options describe. */
export const layer = <E, R>(options: LibraryOptions<E, R>): Layer.Layer<LibraryServices, E, R> =>
  own((supplied) => {
    const { chat, counter, home, hooks, model, store, strategies, summarizer } = options
    const homes = home === undefined ? memory : supplied(home)
    const answering = model === undefined ? Model.layerUnavailable : supplied(model)
    const base: Layer.Layer<SummarizerServices, E, R> = Layer.mergeAll(
      answering,
      counter === undefined ? TokenCounter.layerEstimate : supplied(counter),
      hooks === undefined ? HookSystem.layer : supplied(hooks),
      store === undefined ? homes : Layer.merge(homes, supplied(store))
    )
    // A summarizer is built over this model and this counter, and so not once in the program.
    const writer: Layer.Layer<Summarizer, E, R | SummarizerServices> =
      summarizer ?? (model === undefined ? Summarizer.layerExtractive : ModelSummarizer.layer)
    return Chats.layer.pipe(
      Layer.provideMerge(Compression.layer),
      Layer.provideMerge(writer),
      Layer.provideMerge(base),
      Layer.provide(strategies === undefined ? Layer.empty : Layer.succeed(OwnStrategies, strategies)),
      Layer.provide(Layer.provide(chatDefaults(chat), answering))
    )
  })
