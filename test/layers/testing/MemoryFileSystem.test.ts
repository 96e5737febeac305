import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Option } from "effect"
import { TestClock } from "effect/testing"
import { fileSystemContract } from "../../../src/layers/testing/FileSystemContract.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import { assert, describe, it } from "../../support/vitest.ts"
import { temporaryFolder } from "../../support/workspaces.ts"

// The platform's own is held to the same contract: what is learned about tools in memory is then true on disk.
fileSystemContract({ describe, it }, { name: "NodeFileSystem", layer: NodeServices.layer, folder: temporaryFolder })

fileSystemContract(
  { describe, it },
  {
    name: "MemoryFileSystem",
    layer: MemoryFileSystem.layer(),
    folder: Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped())
  }
)

it.effect(
  "starts with the given files, with times from the Clock",
  MemoryFileSystem.layer({ "/a/b.txt": "text", "/c": new Uint8Array([1, 2]) }),
  function* () {
    const fs = yield* FileSystem.FileSystem
    assert.strictEqual(yield* fs.readFileString("/a/b.txt"), "text")
    assert.deepStrictEqual([...(yield* fs.readFile("/c"))], [1, 2])
    yield* TestClock.adjust("1 hour")
    yield* fs.writeFileString("/a/b.txt", "later")
    const { mtime } = yield* fs.stat("/a/b.txt")
    assert.deepStrictEqual(
      Option.map(mtime, (date) => date.getTime()),
      Option.some(3_600_000)
    )
  }
)
