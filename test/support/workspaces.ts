import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer, Path } from "effect"
import * as MemoryFileSystem from "../../src/layers/testing/MemoryFileSystem.ts"
import * as FileWorkspace from "../../src/layers/workspace/FileWorkspace.ts"

/** Writes files below a folder, and creates the folders above them. */
export const writeFiles = Effect.fnUntraced(function* (
  root: string,
  files: Readonly<Record<string, string | Uint8Array>>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(root, name)
    yield* fs.makeDirectory(path.dirname(file), { recursive: true })
    yield* fs.writeFile(file, typeof content === "string" ? new TextEncoder().encode(content) : content)
  }
})

/** An empty folder on disk, with links resolved. */
export const temporaryFolder = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.flatMap(
    fs.makeTempDirectoryScoped({ directory: process.env["PALIMPSEST_TEST_FOLDER"], prefix: "workspace-" }),
    (folder) => fs.realPath(folder)
  )
})

/** A workspace on disk with these files. */
export const onDisk = (files: Readonly<Record<string, string | Uint8Array>>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      yield* writeFiles(root, files)
      return FileWorkspace.layer({ root })
    })
  ).pipe(Layer.provideMerge(NodeServices.layer))

/** A workspace `/work` in memory with these files. */
export const inMemory = (files: Readonly<Record<string, string | Uint8Array>>) =>
  FileWorkspace.layer({ root: "/work" }).pipe(
    Layer.provideMerge(
      MemoryFileSystem.layer({
        "/work/": "",
        ...Object.fromEntries(Object.entries(files).map(([name, content]) => [`/work/${name}`, content]))
      })
    ),
    Layer.provideMerge(Path.layer)
  )
