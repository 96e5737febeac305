// Not from the package's root, which includes HTTP and makes the bundle slower to load.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, PlatformError } from "effect"
import { realpath } from "node:fs"
import { errorText } from "../../domain/text/ErrorText.ts"
import { direct } from "./AppendedFile.ts"
import { failed } from "./CheckedPaths.ts"
import { makingFolders } from "./MakeFolders.ts"

/**
 * Node's services, with paths resolved by the system, appends without the thread pool (AppendedFile.ts), and
 * folders that are made or refused in bounded time (MakeFolders.ts). The layer of platform-node stats every folder of a path separately,
 * one after the other, each in a trip through the thread pool.
 */

const realPath = Effect.effectify(
  realpath.native,
  (error, [place]) => failed("realPath", String(place), error),
  (error) =>
    PlatformError.badArgument({
      module: "FileSystem",
      method: "realPath",
      description: errorText(error)
    })
)

/** The services of Node that a program needs. */
export const layer: Layer.Layer<NodeServices.NodeServices> = Layer.effect(
  FileSystem.FileSystem,
  Effect.map(FileSystem.FileSystem, (fs) => ({
    ...fs,
    makeDirectory: makingFolders(fs),
    realPath: (place) => realPath(place),
    open: (place, options) =>
      options?.flag === "a" ? Effect.map(fs.open(place, options), direct) : fs.open(place, options)
  }))
).pipe(Layer.provideMerge(NodeServices.layer))
