import { Effect, type FileSystem, Layer, type Path } from "effect"
import { getHeapStatistics } from "node:v8"
import { Compression } from "../services/Compression.ts"
import { GeminiImport } from "../services/GeminiImport.ts"
import { HookSystem } from "../services/HookSystem.ts"
import * as ModelSummarizer from "../services/ModelSummarizer.ts"
import { SessionFiles } from "../services/SessionFiles.ts"
import { TokenCounter } from "../services/TokenCounter.ts"
import { MemoryLimit, Transcripts } from "../services/Transcripts.ts"
import { Trust } from "../services/Trust.ts"
import * as EnvFiles from "./EnvFiles.ts"
import * as FileCalibrations from "./FileCalibrations.ts"
import * as FileExperiments from "./FileExperiments.ts"
import * as FileSessionStore from "./FileSessionStore.ts"
import * as FileSettings from "./FileSettings.ts"
import * as FileTempStore from "./FileTempStore.ts"
import * as FileTrust from "./FileTrust.ts"
import * as GoogleModel from "./GoogleModel.ts"
import { geminiFolder, homeFolder } from "./HomeFolder.ts"
import * as MemoryTempStore from "./MemoryTempStore.ts"
import { FileLook, nodeLook } from "./SessionCatalogue.ts"

const calibrations = Layer.unwrap(Effect.map(homeFolder, (home) => FileCalibrations.layer(`${home}/calibrations.json`)))

/** The sessions of the home folder. */
const sessions = Layer.unwrap(Effect.map(homeFolder, (home) => FileSessionStore.layer(`${home}/sessions`))).pipe(
  Layer.provide(Layer.succeed(FileLook, nodeLook))
)

const sessionFiles = Layer.effect(
  SessionFiles,
  Effect.map(homeFolder, (home) => ({ folder: `${home}/sessions`, of: (id: string) => `${home}/sessions/${id}.jsonl` }))
)

/** Which folders the person trusts. */
const trust = Layer.unwrap(
  Effect.gen(function* () {
    const home = yield* homeFolder
    const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const isOff = Effect.provideContext(FileSettings.isTrustOff(home), context)
    return FileTrust.layer(`${home}/trusted-folders.json`, { isOff })
  })
)

/** What a person set, and what others set from afar. */
const settings = Layer.unwrap(
  Effect.gen(function* () {
    const home = yield* homeFolder
    const { of } = yield* Trust
    const standing = (folder: string) => Effect.orElseSucceed(of(folder), () => "unknown" as const)
    return Layer.mergeAll(FileSettings.layer(home, standing), FileExperiments.layer(`${home}/experiments.json`))
  })
)

/** What is taken over from Gemini CLI. */
const geminiImport = Layer.unwrap(Effect.map(homeFolder, (home) => GeminiImport.layer({ home, gemini: geminiFolder })))

/** What Node lets this program use. */
const memoryLimit = Layer.sync(MemoryLimit, () => getHeapStatistics().heap_size_limit)

/** What `.env` files say beneath the environment. */
const variables = Layer.unwrap(Effect.map(homeFolder, (home) => EnvFiles.layer({ home })))

/** The whole program's wiring, in one place and in dependency order. The platform (files, standard streams) comes from outside. */
export const layer = Layer.mergeAll(
  Transcripts.layer.pipe(Layer.provide(memoryLimit)),
  Compression.layer,
  geminiImport
).pipe(
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
  ),
  Layer.provideMerge(Layer.provideMerge(variables, trust))
)
