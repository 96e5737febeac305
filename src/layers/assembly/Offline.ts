/** Assembles the runtime for tests, in memory and deterministic. */

import { Layer } from "effect"
import { Chats } from "../../services/chat/Chats.ts"
import { Compression } from "../../services/compression/Compression.ts"
import * as ModelSummarizer from "../../services/compression/summary/ModelSummarizer.ts"
import { Summarizer } from "../../services/compression/summary/Summarizer.ts"
import { HookSystem } from "../../services/hooks/HookSystem.ts"
import { Model } from "../../services/model/Model.ts"
import { own } from "../../services/runtime/OwnLayers.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import * as MemoryCalibrations from "../testing/MemoryCalibrations.ts"
import * as MemorySessionStore from "../testing/MemorySessionStore.ts"
import * as MemoryTempStore from "../testing/MemoryTempStore.ts"

const runtime = Chats.layer.pipe(
  Layer.provideMerge(Compression.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      TokenCounter.layerEstimate,
      HookSystem.layer,
      Layer.merge(MemorySessionStore.layer, MemoryTempStore.layer)
    )
  )
)

/**
 * The whole runtime without disk, network or randomness: the same calls give the same bytes every time. Snapshots are written by code;
 * no model answers messages.
 */
export const layer = own(() =>
  runtime.pipe(
    Layer.provideMerge(Layer.mergeAll(Summarizer.layerExtractive, MemoryCalibrations.layer, Model.layerUnavailable))
  )
)

/**
 * The same runtime with a model, for example a scripted one. The agent under test uses it, and it writes the snapshots of compressions
 * with the policy `summarizer: "model"`. What is learned about its token counts is forgotten with the layer.
 */
export const layerWithModel = <A, E, R>(model: Layer.Layer<Model | A, E, R>) =>
  own((supplied) =>
    runtime.pipe(
      Layer.provideMerge(ModelSummarizer.layer),
      Layer.provideMerge(MemoryCalibrations.layer),
      Layer.provideMerge(supplied(model))
    )
  )
