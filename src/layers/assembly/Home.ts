/** Everything that a program keeps, in one folder. */

import { Layer, Predicate } from "effect"
import { valueCheck } from "../../domain/compression/InvalidOption.ts"
import { own, refused } from "../../services/runtime/OwnLayers.ts"
import type { SessionStore } from "../../services/session/SessionStore.ts"
import type { TempStore } from "../../services/session/TempStore.ts"
import type { Calibrations } from "../../services/tokens/Calibrations.ts"
import * as FileSessionStore from "../session/FileSessionStore.ts"
import * as FileTempStore from "../session/FileTempStore.ts"
import { FileStats, statFiles } from "../session/SessionCatalogue.ts"
import * as FileCalibrations from "../tokens/FileCalibrations.ts"
import { nodeServices } from "./LiveNode.ts"

// An empty path would be the root of the file system.
const isFolder = (folder: unknown) => Predicate.isString(folder) && folder.trim() !== ""

/**
 * Sessions, calibrations of token counts and the texts that `Compress` took out of messages in a folder, which is created when missing: the `home` of `Palimpsest.layer` and `ContextWindow.layer`. The
 * program lays its own out in the same way. Needs `@effect/platform-node`.
 */
export const layer = (folder: string): Layer.Layer<Calibrations | SessionStore | TempStore> =>
  own(() => {
    const problem = valueCheck(isFolder, "the path of a folder")("the home", folder)
    if (problem !== undefined) return refused(problem)
    return Layer.merge(
      FileSessionStore.layer(`${folder}/sessions`),
      FileCalibrations.layer(`${folder}/calibrations.json`)
    ).pipe(
      Layer.provide([FileTempStore.folders, Layer.succeed(FileStats, statFiles)]),
      Layer.provideMerge(FileTempStore.layer(`${folder}/blobs`)),
      Layer.provide(nodeServices)
    )
  })
