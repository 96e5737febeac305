/** The whole program as one layer. */

import { Effect, type FileSystem, Layer, type Path } from "effect"
import { Compression } from "../../services/compression/Compression.ts"
import * as ModelSummarizer from "../../services/compression/summary/ModelSummarizer.ts"
import { HookSystem } from "../../services/hooks/HookSystem.ts"
import type { Model } from "../../services/model/Model.ts"
import { own } from "../../services/runtime/OwnLayers.ts"
import type { SessionFiles } from "../../services/session/SessionFiles.ts"
import { GeminiImport } from "../../services/settings/GeminiImport.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import { SessionLocator } from "../../services/transcripts/SessionLocator.ts"
import { geminiFolder, homeFolder } from "../platform/HomeFolder.ts"
import * as PhotonImages from "../platform/PhotonImages.ts"
import * as MemoryTempStore from "../testing/MemoryTempStore.ts"
import * as FileCalibrations from "../tokens/FileCalibrations.ts"
import * as TokenTable from "../tokens/TokenTable.ts"
import * as LiveFiles from "./LiveFiles.ts"
import * as LiveModels from "./LiveModels.ts"
import { transcripts } from "./LiveTranscripts.ts"

const calibrations = Layer.unwrap(Effect.map(homeFolder, (home) => FileCalibrations.layer(`${home}/calibrations.json`)))

const geminiImport = Layer.unwrap(Effect.map(homeFolder, (home) => GeminiImport.layer({ home, gemini: geminiFolder })))

/** Sessions by their id, with what lists them loaded when it is used. */
const sessionLocator = Layer.effect(
  SessionLocator,
  Effect.gen(function* () {
    const context = yield* Effect.context<FileSystem.FileSystem | Path.Path | SessionFiles>()
    return Effect.fnUntraced(function* (name: string) {
      const [{ layer }, { locateSession }] = yield* Effect.promise(() =>
        Promise.all([import("./LiveAgentSessions.ts"), import("../../services/transcripts/ChooseSession.ts")])
      )
      return yield* locateSession(name).pipe(Effect.provide(Layer.fresh(layer)), Effect.provideContext(context))
    })
  })
)

/**
 * The wiring of the whole program, in one place and in dependency order. The platform (files, standard streams) is provided from
 * outside.
 */
export const layerWithModel = <A, E, R>(model: Layer.Layer<Model | A, E, R>) =>
  own((supplied) =>
    Layer.mergeAll(
      transcripts,
      Compression.layer.pipe(Layer.provideMerge(PhotonImages.layer)),
      geminiImport,
      sessionLocator,
      TokenTable.layer
    ).pipe(
      Layer.provideMerge(ModelSummarizer.layer),
      Layer.provideMerge(
        Layer.mergeAll(
          TokenCounter.layerEstimate,
          MemoryTempStore.layer,
          HookSystem.layer,
          supplied(model),
          calibrations
        )
      ),
      Layer.provideMerge(LiveFiles.layer)
    )
  )

/** `layerWithModel` with the models of every provider. */
export const layer = layerWithModel(LiveModels.layer)
