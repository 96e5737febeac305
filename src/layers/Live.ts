import { Effect, Layer } from "effect"
import { Compression } from "../services/Compression.ts"
import { HookSystem } from "../services/HookSystem.ts"
import * as ModelSummarizer from "../services/ModelSummarizer.ts"
import { SessionFiles } from "../services/SessionFiles.ts"
import { TokenCounter } from "../services/TokenCounter.ts"
import { Transcripts } from "../services/Transcripts.ts"
import * as FileCalibrations from "./FileCalibrations.ts"
import * as FileExperiments from "./FileExperiments.ts"
import * as FileSessionStore from "./FileSessionStore.ts"
import * as FileSettings from "./FileSettings.ts"
import * as FileTempStore from "./FileTempStore.ts"
import * as GoogleModel from "./GoogleModel.ts"
import { homeFolder } from "./HomeFolder.ts"
import * as MemoryTempStore from "./MemoryTempStore.ts"

const calibrations = Layer.unwrap(Effect.map(homeFolder, (home) => FileCalibrations.layer(`${home}/calibrations.json`)))

/** The sessions of the home folder. */
const sessions = Layer.unwrap(Effect.map(homeFolder, (home) => FileSessionStore.layer(`${home}/sessions`)))

const sessionFiles = Layer.effect(
  SessionFiles,
  Effect.map(homeFolder, (home) => ({ folder: `${home}/sessions`, of: (id: string) => `${home}/sessions/${id}.jsonl` }))
)

/** What a person set, and what others set from afar. */
const settings = Layer.unwrap(
  Effect.map(homeFolder, (home) =>
    Layer.mergeAll(FileSettings.layer(home), FileExperiments.layer(`${home}/experiments.json`))
  )
)

/** The whole program's wiring, in one place and in dependency order. The platform (files, standard streams) comes from outside. */
export const layer = Layer.mergeAll(Transcripts.layer, Compression.layer).pipe(
  Layer.provideMerge(ModelSummarizer.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      TokenCounter.layerEstimate,
      MemoryTempStore.layer,
      HookSystem.layer,
      GoogleModel.layer,
      calibrations,
      settings,
      sessionFiles,
      Layer.provideMerge(sessions, FileTempStore.folders)
    )
  )
)
