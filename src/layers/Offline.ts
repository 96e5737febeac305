import { Layer } from "effect"
import { Chats } from "../services/Chats.ts"
import { Compression } from "../services/Compression.ts"
import { HookSystem } from "../services/HookSystem.ts"
import { Model } from "../services/Model.ts"
import * as ModelSummarizer from "../services/ModelSummarizer.ts"
import { Summarizer } from "../services/Summarizer.ts"
import { TokenCounter } from "../services/TokenCounter.ts"
import * as MemoryCalibrations from "./MemoryCalibrations.ts"
import * as MemorySessionStore from "./MemorySessionStore.ts"
import * as MemoryTempStore from "./MemoryTempStore.ts"

const runtime = Chats.layer.pipe(
  Layer.provideMerge(Compression.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      TokenCounter.layerEstimate,
      HookSystem.layer,
      Layer.provideMerge(MemorySessionStore.layer, MemoryTempStore.layer)
    )
  )
)

/**
 * The whole runtime without disk, network or chance: the same calls give the same bytes every time. Code writes snapshots;
 * there is no model to send messages to.
 */
export const layer = runtime.pipe(
  Layer.provideMerge(Layer.mergeAll(Summarizer.layerExtractive, MemoryCalibrations.layer, Model.layerUnavailable))
)

/**
 * The same runtime with a model, for example a scripted one: it is there for the agent under test, and writes the snapshots
 * of compressions whose policy says `summarizer: "model"`. What was learned of its counting is forgotten with the layer.
 */
export const layerWithModel = <A, E, R>(model: Layer.Layer<Model | A, E, R>) =>
  runtime.pipe(
    Layer.provideMerge(ModelSummarizer.layer),
    Layer.provideMerge(MemoryCalibrations.layer),
    Layer.provideMerge(model)
  )
