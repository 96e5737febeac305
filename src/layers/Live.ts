import { Effect, Layer } from "effect"
import { Compression } from "../services/Compression.ts"
import { HookSystem } from "../services/HookSystem.ts"
import * as ModelSummarizer from "../services/ModelSummarizer.ts"
import { TokenCounter } from "../services/TokenCounter.ts"
import { Transcripts } from "../services/Transcripts.ts"
import * as FileCalibrations from "./FileCalibrations.ts"
import * as GoogleModel from "./GoogleModel.ts"
import { homeFolder } from "./HomeFolder.ts"
import * as MemoryTempStore from "./MemoryTempStore.ts"

const calibrations = Layer.unwrap(Effect.map(homeFolder, (home) => FileCalibrations.layer(`${home}/calibrations.json`)))

/** The whole program's wiring, in one place and in dependency order. The platform (files, standard streams) comes from outside. */
export const layer = Layer.mergeAll(Transcripts.layer, Compression.layer).pipe(
  Layer.provideMerge(ModelSummarizer.layer),
  Layer.provideMerge(
    Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer, HookSystem.layer, GoogleModel.layer, calibrations)
  )
)
