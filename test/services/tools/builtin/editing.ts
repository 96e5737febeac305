import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Path } from "effect"
import * as FileWorkspace from "../../../../src/layers/workspace/FileWorkspace.ts"

/** A workspace in a new folder with these files, and what can be looked at there. */
export const workspace = Effect.fnUntraced(function* (files: Readonly<Record<string, string>> = {}) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const top = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  const root = path.join(top, "work")
  yield* fs.makeDirectory(root)
  for (const [name, text] of Object.entries(files)) {
    yield* fs.makeDirectory(path.dirname(path.join(root, name)), { recursive: true })
    yield* fs.writeFileString(path.join(root, name), text)
  }
  const place = (name: string) => path.join(root, name)
  return {
    root,
    place,
    layer: FileWorkspace.layer({ root }).pipe(Layer.provideMerge(NodeServices.layer)),
    read: (name: string) => Effect.orDie(fs.readFileString(place(name))),
    write: (name: string, text: string) => Effect.orDie(fs.writeFileString(place(name), text)),
    /** Every file and folder below the root, sorted. */
    names: Effect.map(Effect.orDie(fs.readDirectory(root, { recursive: true })), (names) => names.toSorted()),
    mode: (name: string) => Effect.map(Effect.orDie(fs.stat(place(name))), (info) => info.mode & 0o777)
  }
})
