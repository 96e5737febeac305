import { Effect, type FileSystem, Layer, type Path } from "effect"
import { getHeapStatistics } from "node:v8"
import { Compression } from "../services/compression/Compression.ts"
import * as ModelSummarizer from "../services/compression/summary/ModelSummarizer.ts"
import { HookSystem } from "../services/hooks/HookSystem.ts"
import type { Model } from "../services/model/Model.ts"
import { SessionFiles } from "../services/session/SessionFiles.ts"
import { GeminiImport } from "../services/settings/GeminiImport.ts"
import { TokenCounter } from "../services/tokens/TokenCounter.ts"
import { MemoryLimit } from "../services/transcripts/ChooseReader.ts"
import { Transcripts } from "../services/transcripts/Transcripts.ts"
import { Trust } from "../services/workspace/Trust.ts"
import * as LiveModels from "./LiveModels.ts"
import * as EnvFiles from "./platform/EnvFiles.ts"
import { geminiFolder, homeFolder } from "./platform/HomeFolder.ts"
import * as FileSessionStore from "./session/FileSessionStore.ts"
import * as FileTempStore from "./session/FileTempStore.ts"
import { FileStats, statFiles } from "./session/SessionCatalogue.ts"
import * as FileExperiments from "./settings/FileExperiments.ts"
import * as FileSettings from "./settings/FileSettings.ts"
import * as SettingsSources from "./settings/SettingsSources.ts"
import * as MemoryTempStore from "./testing/MemoryTempStore.ts"
import * as FileCalibrations from "./tokens/FileCalibrations.ts"
import * as FileTrust from "./workspace/FileTrust.ts"

const calibrations = Layer.unwrap(Effect.map(homeFolder, (home) => FileCalibrations.layer(`${home}/calibrations.json`)))

const sessions = Layer.unwrap(Effect.map(homeFolder, (home) => FileSessionStore.layer(`${home}/sessions`))).pipe(
  Layer.provide(Layer.succeed(FileStats, statFiles))
)

const sessionFiles = Layer.effect(
  SessionFiles,
  Effect.map(homeFolder, (home) => ({ folder: `${home}/sessions`, of: (id: string) => `${home}/sessions/${id}.jsonl` }))
)

/** The folders that the user trusts. */
const trust = Layer.unwrap(
  Effect.gen(function* () {
    const home = yield* homeFolder
    const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const isOff = Effect.provideContext(SettingsSources.isTrustOff(home), context)
    return FileTrust.layer(`${home}/trusted-folders.json`, { isOff })
  })
)

/** The user's settings, and those of remote sources. */
const settings = Layer.unwrap(
  Effect.gen(function* () {
    const home = yield* homeFolder
    const { of } = yield* Trust
    const standing = (folder: string) => Effect.orElseSucceed(of(folder), () => "unknown" as const)
    return Layer.mergeAll(FileSettings.layer(home, standing), FileExperiments.layer(`${home}/experiments.json`))
  })
)

const geminiImport = Layer.unwrap(Effect.map(homeFolder, (home) => GeminiImport.layer({ home, gemini: geminiFolder })))

/** The memory that Node allows this program to use. */
const memoryLimit = Layer.sync(MemoryLimit, () => getHeapStatistics().heap_size_limit)

/** Variables of `.env` files, which the environment overrides. */
const variables = Layer.unwrap(Effect.map(homeFolder, (home) => EnvFiles.layer({ home })))

/**
 * The wiring of the whole program, in one place and in dependency order. The platform (files, standard streams) is provided from
 * outside.
 */
export const layerWithModel = <A, E, R>(model: Layer.Layer<Model | A, E, R>) =>
  Layer.mergeAll(Transcripts.layer.pipe(Layer.provide(memoryLimit)), Compression.layer, geminiImport).pipe(
    Layer.provideMerge(ModelSummarizer.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        TokenCounter.layerEstimate,
        MemoryTempStore.layer,
        HookSystem.layer,
        model,
        calibrations,
        settings,
        sessionFiles,
        Layer.provideMerge(sessions, FileTempStore.folders)
      )
    ),
    Layer.provideMerge(Layer.provideMerge(variables, trust))
  )

/** `layerWithModel` with the models of every provider. */
export const layer = layerWithModel(LiveModels.layer)
