import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer, type Path } from "effect"
import * as FileWorkspace from "../../../src/layers/workspace/FileWorkspace.ts"
import { Workspace } from "../../../src/services/workspace/Workspace.ts"
import { assert, describe, it } from "../../support/vitest.ts"
import { inMemory, temporaryFolder, writeFiles } from "../../support/workspaces.ts"

/** A folder with a workspace, one that was added, one that is read only, and one outside. */
const scene = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const top = yield* temporaryFolder
  yield* writeFiles(top, {
    "work/src/a.ts": "a",
    "added/b.ts": "b",
    "outside/secret": "s",
    "workbench/near": "n"
  })
  yield* fs.symlink(`${top}/outside`, `${top}/work/out`)
  yield* fs.symlink(`${top}/outside/secret`, `${top}/work/secret`)
  yield* fs.symlink(`${top}/outside/new`, `${top}/work/dangling`)
  yield* fs.symlink(`${top}/work/src`, `${top}/work/inner`)
  yield* fs.symlink("round", `${top}/work/round`)
  yield* fs.symlink(`${top}/work`, `${top}/alias`)
  return top
})

const inScene = (
  steps: (
    top: string,
    workspace: Workspace["Service"]
  ) => Generator<Effect.Effect<unknown, unknown, FileSystem.FileSystem | Path.Path>, unknown, never>
) =>
  Effect.gen(function* () {
    const top = yield* scene
    const layer = FileWorkspace.layer({ root: `${top}/alias`, added: [`${top}/added`], readable: [`${top}/kept`] })
    return yield* Effect.flatMap(Workspace, (workspace) => Effect.gen(() => steps(top, workspace))).pipe(
      Effect.provide(layer)
    )
  }).pipe(Effect.provide(NodeServices.layer))

describe("a path of the workspace", () => {
  it.effect("is absolute, with links resolved, whether it exists or not", () =>
    inScene(function* (top, workspace) {
      assert.strictEqual(workspace.root, `${top}/work`)
      assert.deepStrictEqual(workspace.folders, [`${top}/work`, `${top}/added`])
      const cases: ReadonlyArray<readonly [given: string, place: string]> = [
        ["src/a.ts", `${top}/work/src/a.ts`],
        ["./src/../src/a.ts", `${top}/work/src/a.ts`],
        [`${top}/alias/src/a.ts`, `${top}/work/src/a.ts`],
        [`${top}/added/b.ts`, `${top}/added/b.ts`],
        ["inner/a.ts", `${top}/work/src/a.ts`],
        ["inner/new/deep.ts", `${top}/work/src/new/deep.ts`],
        [".", `${top}/work`],
        ["~file", `${top}/work/~file`]
      ]
      for (const [given, place] of cases) {
        assert.strictEqual(yield* workspace.path(given, "read"), place)
        assert.strictEqual(yield* workspace.path(given, "write"), place)
      }
      assert.strictEqual(workspace.shown(`${top}/work/src/a.ts`), "src/a.ts")
      assert.strictEqual(workspace.shown(`${top}/work`), ".")
      assert.strictEqual(workspace.shown(`${top}/added/b.ts`), `${top}/added/b.ts`)
      assert.strictEqual(workspace.shown(`${top}/work/a\n[DIR] b\u202e"`), `"a\\n[DIR] b\\u202e\\""`)
    })
  )

  it.effect("may be in the program's own folder when named so", NodeServices.layer, function* () {
    const top = yield* scene
    const plan = `${top}/work/home/plans/s.md`
    const layer = FileWorkspace.layer({ root: `${top}/work`, writable: [`${top}/alias/home/plans/s.md`] })
    const isOwn = (place: string) =>
      Effect.provide(
        Workspace.use((workspace) => workspace.isOwn?.(place) ?? Effect.succeed(false)),
        layer
      )
    assert.isTrue(yield* isOwn(plan))
    assert.isFalse(yield* isOwn(`${top}/work/src/a.ts`))
    assert.isFalse(yield* isOwn(`${top}/work/home/plans/t.md`))
  })

  it.effect("is refused in one sentence when it leads out by any way", () =>
    inScene(function* (top, workspace) {
      const cases: ReadonlyArray<readonly [given: string, said: string]> = [
        ["../outside/secret", "is outside the workspace"],
        [`${top}/outside/secret`, "is outside the workspace"],
        [`${top}/workbench/near`, "is outside the workspace"],
        ["/etc/passwd", "is outside the workspace"],
        ["/", "is outside the workspace"],
        ["secret", "leads out of the workspace through a link"],
        ["out/secret", "leads out of the workspace through a link"],
        ["out/new/file", "leads out of the workspace through a link"],
        ["dangling", "leads out of the workspace through a link"],
        ["round", "leads nowhere"],
        ["src/a.ts/below", "leads nowhere"],
        ["~/notes", "~ is not expanded"],
        ["~", "~ is not expanded"],
        ["a\0b", "NUL byte"],
        ["", "the path is empty"],
        ["  ", "the path is empty"],
        [`src/${"x".repeat(5_000)}`, "the path is too long"]
      ]
      for (const [given, said] of cases) {
        for (const purpose of ["read", "write"] as const) {
          const { message } = yield* Effect.flip(workspace.path(given, purpose))
          assert.include(message, said, given)
          assert.notInclude(message, "\n")
        }
      }
    })
  )

  it.effect("in the outputs' folder is read-only, also when the folder appears later", () =>
    inScene(function* (top, workspace) {
      assert.strictEqual(yield* workspace.path(`${top}/kept/x`, "read"), `${top}/kept/x`)
      yield* writeFiles(top, { "kept/x": "kept" })
      assert.strictEqual(yield* workspace.path(`${top}/kept/x`, "read"), `${top}/kept/x`)
      const { message } = yield* Effect.flip(workspace.path(`${top}/kept/x`, "write"))
      assert.include(message, "is in a folder that is read-only")
    })
  )

  it.effect("follows a link that has changed", () =>
    inScene(function* (top, workspace) {
      const fs = yield* FileSystem.FileSystem
      assert.strictEqual(yield* workspace.path("inner/a.ts", "read"), `${top}/work/src/a.ts`)
      yield* fs.remove(`${top}/work/inner`)
      yield* fs.symlink(`${top}/outside`, `${top}/work/inner`)
      const { message } = yield* Effect.flip(workspace.path("inner/a.ts", "read"))
      assert.include(message, "through a link")
    })
  )

  it.effect("behaves the same in memory", inMemory({ "a/b.ts": "" }), function* () {
    const workspace = yield* Workspace
    assert.strictEqual(workspace.root, "/work")
    assert.strictEqual(yield* workspace.path("a/new.ts", "write"), "/work/a/new.ts")
    assert.include((yield* Effect.flip(workspace.path("../x", "read"))).message, "outside")
  })
})

describe("an invalid workspace", () => {
  const cases: ReadonlyArray<readonly [name: string, folder: string, said: string]> = [
    ["a folder that is not there", "none", "no such file or folder"],
    ["a file", "work/src/a.ts", "it is not a folder"]
  ]
  it.effect.each(cases)("%s is refused by name", NodeServices.layer, function* ([, folder, said]) {
    const top = yield* scene
    const error = yield* Effect.flip(Layer.build(FileWorkspace.layer({ root: `${top}/${folder}` })))
    assert.include(error.message, `the workspace cannot have the folder ${top}/${folder}: `)
    assert.include(error.message, said)
  })
})
