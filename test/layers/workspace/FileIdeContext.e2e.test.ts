import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import * as FileIdeContext from "../../../src/layers/workspace/FileIdeContext.ts"
import { IdeContext } from "../../../src/services/workspace/IdeContext.ts"
import { assert, layer } from "../../support/vitest.ts"

/** An editor, the file it writes, and what comes of it. */
const scene = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const top = yield* Effect.flatMap(fs.makeTempDirectoryScoped(), (folder) => fs.realPath(folder))
  const file = path.join(top, "ide.json")
  const root = path.join(top, "work")
  const ide = yield* Effect.provide(IdeContext, FileIdeContext.layer({ file, root }))
  const write = (text: string) => fs.writeFileString(file, text)
  const open = (...paths: ReadonlyArray<string>) =>
    write(
      JSON.stringify({
        workspaceState: { openFiles: paths.map((name, index) => ({ path: name, timestamp: paths.length - index })) }
      })
    )
  const paths = Effect.map(ide.state, (state) => state?.openFiles.map((each) => each.path))
  return { file, fs, ide, open, path, paths, root, top, write }
})

layer(NodeServices.layer)("FileIdeContext", (it) => {
  it.effect("has no editor without a file, and no problem", function* () {
    const { ide, paths } = yield* scene
    assert.strictEqual(yield* paths, undefined)
    assert.strictEqual(yield* ide.problem, undefined)
  })

  it.effect("reads the form of Gemini CLI's companion, normalised, with paths relative to the workspace", function* () {
    const { ide, root, write } = yield* scene
    yield* write(
      JSON.stringify({
        workspaceState: {
          openFiles: [
            { path: "/elsewhere/b.ts", timestamp: 1, isActive: true },
            {
              path: `${root}/src/a.ts`,
              timestamp: 2,
              isActive: true,
              cursor: { line: 3, character: 7 },
              selectedText: "const"
            }
          ],
          isTrusted: true
        },
        somethingNew: 1
      })
    )
    assert.deepStrictEqual(yield* ide.state, {
      isTrusted: true,
      openFiles: [
        { path: "src/a.ts", timestamp: 2, isActive: true, cursor: { line: 3, character: 7 }, selectedText: "const" },
        { path: "/elsewhere/b.ts", timestamp: 1 }
      ]
    })
    yield* write("{}")
    assert.deepStrictEqual(yield* ide.state, { openFiles: [] })
  })

  it.effect("reads it again after a change, and drops the editor with the file", function* () {
    const { file, fs, open, paths } = yield* scene
    yield* open("/a")
    assert.deepStrictEqual(yield* paths, ["/a"])
    yield* open("/a", "/b")
    assert.deepStrictEqual(yield* paths, ["/a", "/b"])
    yield* fs.remove(file)
    assert.strictEqual(yield* paths, undefined)
  })

  it.effect("does not read an unchanged file again", function* () {
    const { file, fs, open, root } = yield* scene
    yield* open("/a")
    let opened = 0
    const counting = FileSystem.make({
      ...fs,
      open: (...args) => Effect.suspend(() => ((opened += 1), fs.open(...args)))
    })
    const ide = yield* IdeContext.pipe(
      Effect.provide(FileIdeContext.layer({ file, root })),
      Effect.provideService(FileSystem.FileSystem, counting)
    )
    for (let i = 0; i < 5; i += 1) assert.strictEqual((yield* ide.state)?.openFiles.length, 1)
    assert.strictEqual(opened, 1)
  })

  const wrong: ReadonlyArray<readonly [what: string, text: string]> = [
    ["incomplete JSON", `{"workspaceState": {"openFi`],
    ["no JSON", "hello"],
    ["nothing", ""],
    ["a list", "[]"],
    ["a wrong type", `{"workspaceState": {"openFiles": [{"path": 1, "timestamp": 1}]}}`],
    ["no timestamp", `{"workspaceState": {"openFiles": [{"path": "/a"}]}}`],
    ["more than 1 MiB", `{"workspaceState": {}, "x": "${"x".repeat(1_048_576)}"}`]
  ]
  it.effect.each(wrong)(
    "%s: reported once in one line; the earlier state stays until it is valid again",
    function* ([, text]) {
      const { file, ide, open, paths, write } = yield* scene
      yield* open("/a")
      assert.deepStrictEqual(yield* paths, ["/a"])
      yield* write(text)
      assert.deepStrictEqual(yield* paths, ["/a"])
      const problem = (yield* ide.problem) ?? ""
      assert.include(problem, file)
      assert.notInclude(problem, "\n")
      assert.deepStrictEqual(yield* paths, ["/a"])
      assert.strictEqual(yield* ide.problem, undefined)
      yield* open("/b", "/c")
      assert.deepStrictEqual(yield* paths, ["/b", "/c"])
      assert.strictEqual(yield* ide.problem, undefined)
      yield* write(text)
      yield* paths
      assert.strictEqual(yield* ide.problem, problem)
    }
  )

  it.effect("does not open a folder or a named pipe in its place", function* () {
    const { file, fs, ide, paths } = yield* scene
    yield* fs.makeDirectory(file)
    assert.strictEqual(yield* paths, undefined)
    assert.match((yield* ide.problem) ?? "", /is a folder/)
    yield* fs.remove(file, { recursive: true })
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    assert.strictEqual(yield* spawner.exitCode(ChildProcess.make("mkfifo", [file])), 0)
    assert.strictEqual(yield* paths, undefined)
    assert.match((yield* ide.problem) ?? "", /named pipe/)
  })
})
