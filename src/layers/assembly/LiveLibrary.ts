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
import type { SessionStore } from "../../services/session/SessionStore.ts"
import type { TempStore } from "../../services/session/TempStore.ts"
import type { Calibrations } from "../../services/tokens/Calibrations.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import * as MemoryCalibrations from "../testing/MemoryCalibrations.ts"
import * as MemorySessionStore from "../testing/MemorySessionStore.ts"
import * as MemoryTempStore from "../testing/MemoryTempStore.ts"

/** Everything that conversations need, with a default for every part. */

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

type AnyLayer<A> = Layer.Layer<A, unknown, unknown>

/** The parts that a program supplies. Absent ones have defaults. */
export interface LibraryOptions {
  /** Answers messages, and writes the snapshots where the policy says so (`summarizer: "model"`). Default: none; code writes the snapshots. */
  readonly model?: AnyLayer<Model> | undefined
  /** Keeps the sessions. Default: files in `home`; without `home` the memory of the process. */
  readonly store?: AnyLayer<SessionStore> | undefined
  /** A folder for sessions and calibrations of token counts, created when missing. Needs `@effect/platform-node`. */
  readonly home?: string | undefined
  /** Writes the snapshots, which are verified. Default: `model` or code, as the policy says. */
  readonly summarizer?: AnyLayer<Summarizer> | undefined
  /** Counts tokens. Default: an estimate that learns from the counts which `model` reports. */
  readonly counter?: AnyLayer<TokenCounter> | undefined
  /** Default: no hooks but those that the program subscribes. */
  readonly hooks?: AnyLayer<HookSystem> | undefined
  /** The settings of its chats: model, window, threshold, policy. Default: the one model of `model`, else `gemini-2.5-flash`, and its window. */
  readonly chat?: Partial<ChatSettings> | undefined
  /** Compression strategies of the program's own; the policy names one. */
  readonly strategies?: ReadonlyArray<StrategyRunner> | undefined
}

const memory = Layer.provideMerge(MemorySessionStore.layer, MemoryTempStore.layer)

/** Files need Node's services, which are loaded when `home` is set. */
const homeOf = (home: string) =>
  Layer.unwrap(
    Effect.promise(() =>
      import("./LiveHome.ts").then(
        ({ layer }) => layer(home),
        (cause) => {
          throw new Error(`the option home needs the package @effect/platform-node: ${String(cause)}`, { cause })
        }
      )
    )
  )

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
export const layer = (options: LibraryOptions): AnyLayer<LibraryServices> => {
  const { chat, counter, home, hooks, model, store, strategies, summarizer } = options
  const places = home === undefined ? Layer.merge(memory, MemoryCalibrations.layer) : homeOf(home)
  const answering = model ?? Model.layerUnavailable
  const base = Layer.mergeAll(
    answering,
    counter ?? TokenCounter.layerEstimate,
    hooks ?? HookSystem.layer,
    store === undefined ? places : Layer.merge(places, store)
  )
  const writer: AnyLayer<Summarizer> =
    summarizer ?? (model === undefined ? Summarizer.layerExtractive : ModelSummarizer.layer)
  return Chats.layer.pipe(
    Layer.provideMerge(Compression.layer),
    Layer.provideMerge(writer),
    Layer.provideMerge(base),
    Layer.provide(strategies === undefined ? Layer.empty : Layer.succeed(OwnStrategies, strategies)),
    Layer.provide(Layer.provide(chatDefaults(chat), answering))
  )
}
