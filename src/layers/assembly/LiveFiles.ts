/** The layer of what the user keeps: sessions, settings, trusted folders and variables. */

import { Effect, type FileSystem, Layer, type Path } from "effect"
import { Trust } from "../../services/workspace/Trust.ts"
import * as EnvFiles from "../platform/EnvFiles.ts"
import { homeFolder } from "../platform/HomeFolder.ts"
import * as FileTempStore from "../session/FileTempStore.ts"
import * as FileExperiments from "../settings/FileExperiments.ts"
import * as FileSettings from "../settings/FileSettings.ts"
import * as SettingsSources from "../settings/SettingsSources.ts"
import * as FileTrust from "../workspace/FileTrust.ts"
import * as LiveStores from "./LiveStores.ts"
import { sessionFiles } from "./LiveTranscripts.ts"

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

/** Variables of `.env` files, which the environment overrides. */
const variables = Layer.unwrap(Effect.map(homeFolder, (home) => EnvFiles.layer({ home })))

/** What commands need that only manage these; they load nothing else. */
export const layer = Layer.provideMerge(
  Layer.mergeAll(sessionFiles, Layer.provideMerge(LiveStores.layer, Layer.merge(settings, FileTempStore.folders))),
  Layer.provideMerge(variables, trust)
)
