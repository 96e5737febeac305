import { assert, it } from "@effect/vitest"
import { Effect, Layer, Path, PlatformError } from "effect"
import { ChildProcessSpawner } from "effect/process"
import * as MemoryFileSystem from "../../../../src/layers/testing/MemoryFileSystem.ts"
import { Environment } from "../../../../src/services/platform/Environment.ts"
import { searchFiles } from "../../../../src/services/tools/builtin/SearchFiles.ts"
import { Workspace } from "../../../../src/services/workspace/Workspace.ts"
import { answerOf } from "../../../support/callTool.ts"

/** A workspace of these folders in memory, on a machine without ripgrep. */
const within = (folders: ReadonlyArray<string>) =>
  Layer.mergeAll(
    MemoryFileSystem.layer({ "/work/a.txt": "one\n", "/work/sub/b.txt": "one\n", "/workshop/c.txt": "one\n" }),
    Path.layer,
    Layer.succeed(Environment, { variables: Effect.succeed({}) }),
    Layer.succeed(
      ChildProcessSpawner.ChildProcessSpawner,
      ChildProcessSpawner.make(() =>
        Effect.fail(PlatformError.systemError({ _tag: "NotFound", module: "ChildProcess", method: "spawn" }))
      )
    ),
    Layer.mock(Workspace, {
      root: folders[0] ?? "/",
      folders,
      path: (given) => Effect.succeed(given),
      shown: (given) => given,
      files: (files) => files,
      held: (folder) => Effect.succeed(folder)
    })
  )

it.effect.each([
  [
    ["/work", "/work/sub"],
    ["/work/a.txt", "/work/sub/b.txt"]
  ],
  [
    ["/work/sub", "/work", "/workshop"],
    ["/work/a.txt", "/work/sub/b.txt", "/workshop/c.txt"]
  ],
  [["/work/sub"], ["/work/sub/b.txt"]]
] as const)("a search of the folders %j looks at each file once", ([folders, expected]) =>
  Effect.gen(function* () {
    const answer = yield* answerOf(yield* searchFiles, { pattern: "one", names_only: true })
    assert.deepStrictEqual([...(answer.match(/\/work\S*\.txt/g) ?? [])].sort(), [...expected])
  }).pipe(Effect.provide(within(folders)))
)
