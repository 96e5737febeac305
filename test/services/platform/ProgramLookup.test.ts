import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Path } from "effect"
import { Environment } from "../../../src/services/platform/Environment.ts"
import { makeProgramFinder, findProgram, UntrustedFolders } from "../../../src/services/platform/ProgramLookup.ts"
import { assert, layer } from "../../support/vitest.ts"

/** A workspace that holds a program, and folders outside of it. */
const scene = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const top = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  const at = (name: string) => path.join(top, name)
  const program = Effect.fnUntraced(function* (name: string, mode = 0o755) {
    yield* fs.makeDirectory(path.dirname(at(name)), { recursive: true })
    yield* fs.writeFileString(at(name), "#!/bin/sh\n")
    yield* fs.chmod(at(name), mode)
  })
  yield* program("work/bin/tool")
  yield* program("usr/bin/tool")
  return {
    at,
    fs,
    path,
    program,
    find: (PATH: string) => findProgram("tool", { path: PATH, excludedFolders: [at("work")] })
  }
})

layer(NodeServices.layer)("a program", (it) => {
  it.effect("is found in the first absolute part of PATH outside of the workspace", function* () {
    const { at, find, fs, program } = yield* scene
    yield* program("other/tool")
    yield* program("plain/tool", 0o644)
    yield* fs.makeDirectory(at("folder/tool"), { recursive: true })
    const good = at("usr/bin/tool")
    assert.strictEqual(yield* find(`${at("usr/bin")}:${at("other")}`), good)
    const before = ["bin", ".", "", "..", "work/bin", at("work/bin"), at("usr/../work/bin"), at("plain"), at("folder")]
    for (const part of [...before, at("none")]) {
      assert.strictEqual(yield* find(`${part}:${at("usr/bin")}`), good, part)
      assert.strictEqual(yield* find(part), undefined, part)
    }
  })

  it.effect("is not found within the workspace, nor through links into or across it", function* () {
    const { at, find, fs } = yield* scene
    const good = at("usr/bin/tool")
    yield* fs.makeDirectory(at("opt"))
    yield* fs.makeDirectory(at("chain"))
    yield* fs.makeDirectory(at("multi"))
    yield* fs.symlink(at("work/bin/tool"), at("opt/tool"))
    yield* fs.symlink(at("work/bin"), at("linked"))
    // Good now, and whatever the workspace makes of it later.
    yield* fs.symlink(good, at("work/to-tool"))
    yield* fs.symlink("../work/to-tool", at("chain/tool"))
    yield* fs.symlink(at("usr/bin"), at("work/to-folder"))
    yield* fs.symlink(at("work/to-folder"), at("folders"))
    yield* fs.symlink(at("loop"), at("loop"))
    for (const part of [at("opt"), at("linked"), at("chain"), at("folders"), at("loop")]) {
      assert.strictEqual(yield* find(part), undefined, part)
      assert.strictEqual(yield* find(`${part}:${at("usr/bin")}`), good, part)
    }
    // Other links are fine, and are not followed: one program may go by many names.
    yield* fs.symlink("../usr/bin/tool", at("multi/tool"))
    assert.strictEqual(yield* find(at("multi")), at("multi/tool"))
  })

  it.effect("is not found in an untrusted folder", function* () {
    const { at, find, program } = yield* scene
    yield* program("clone/bin/tool")
    const found = find(`${at("clone/bin")}:${at("usr/bin")}`)
    assert.strictEqual(yield* found, at("clone/bin/tool"))
    const distrusting = Effect.provideService(found, UntrustedFolders, Effect.succeed([at("clone")]))
    assert.strictEqual(yield* distrusting, at("usr/bin/tool"))
  })

  it.effect("may be below a workspace that contains the home folder, but in no untrusted folder", function* () {
    const { at, fs, program } = yield* scene
    yield* program("home/.nvm/bin/tool")
    yield* fs.symlink(at("home"), at("linked"))
    const variables = Effect.succeed({ PATH: at("home/.nvm/bin"), HOME: at("linked") })
    const found = (workspace: string) =>
      Effect.flatMap(makeProgramFinder([workspace]), (find) => find("tool")).pipe(
        Effect.provideService(Environment, { variables })
      )
    for (const workspace of ["/", at("home")]) {
      assert.strictEqual(yield* found(workspace), at("home/.nvm/bin/tool"))
      const distrusting = Effect.provideService(found(workspace), UntrustedFolders, Effect.succeed([at("home")]))
      assert.strictEqual(yield* distrusting, undefined)
    }
    assert.strictEqual(yield* found(at("home/.nvm")), undefined)
  })

  it.effect("is looked up once, and a path is used as it is", function* () {
    const { at, fs, program } = yield* scene
    yield* program("first/other")
    let reads = 0
    const find = yield* makeProgramFinder([at("work")]).pipe(
      Effect.provideService(Environment, {
        variables: Effect.sync(() => {
          reads += 1
          return { PATH: `${at("usr/bin")}:${at("first")}` }
        })
      })
    )
    assert.strictEqual(yield* find("tool"), at("usr/bin/tool"))
    yield* fs.remove(at("usr/bin/tool"))
    const again = yield* Effect.all([find("tool"), find("tool"), find("none"), find("none")], { concurrency: 4 })
    assert.deepStrictEqual(again, [at("usr/bin/tool"), at("usr/bin/tool"), undefined, undefined])
    assert.strictEqual(reads, 2)
    assert.strictEqual(yield* find("./x/tool"), "./x/tool")
  })
})
