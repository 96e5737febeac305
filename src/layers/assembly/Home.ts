import { Layer } from "effect"
import { own } from "../../services/runtime/OwnLayers.ts"
import * as FileSessionStore from "../session/FileSessionStore.ts"
import * as FileTempStore from "../session/FileTempStore.ts"
import { FileStats, statFiles } from "../session/SessionCatalogue.ts"
import * as FileCalibrations from "../tokens/FileCalibrations.ts"
import { nodeServices } from "./LiveNode.ts"

/**
 * Sessions, calibrations of token counts and the texts that `Compress` took out of messages in a folder, which is created when missing: the `home` of `Palimpsest.layer` and `ContextWindow.layer`. The
 * program lays its own out in the same way. Needs `@effect/platform-node`.
 */
export const layer = (folder: string) =>
  own(() =>
    Layer.merge(
      FileSessionStore.layer(`${folder}/sessions`),
      FileCalibrations.layer(`${folder}/calibrations.json`)
    ).pipe(
      Layer.provide([FileTempStore.folders, Layer.succeed(FileStats, statFiles)]),
      Layer.provideMerge(FileTempStore.layer(`${folder}/blobs`)),
      Layer.provide(nodeServices)
    )
  )
