import { Layer } from "effect"
import * as NodePlatform from "../platform/NodePlatform.ts"
import * as FileSessionStore from "../session/FileSessionStore.ts"
import * as FileTempStore from "../session/FileTempStore.ts"
import { FileStats, statFiles } from "../session/SessionCatalogue.ts"
import * as MemoryTempStore from "../testing/MemoryTempStore.ts"
import * as FileCalibrations from "../tokens/FileCalibrations.ts"

/** Sessions and calibrations in a folder, laid out as the program does it. */
export const layer = (home: string) =>
  Layer.merge(FileSessionStore.layer(`${home}/sessions`), FileCalibrations.layer(`${home}/calibrations.json`)).pipe(
    Layer.provide([FileTempStore.folders, Layer.succeed(FileStats, statFiles)]),
    Layer.provideMerge(MemoryTempStore.layer),
    Layer.provide(NodePlatform.layer)
  )
