import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Path } from "effect"
import { ownProgram } from "../../../src/services/platform/OwnProgram.ts"
import { assert, layer } from "../../support/vitest.ts"
import { temporaryFolder } from "../../support/workspaces.ts"

const node = "/opt/node"

layer(NodeServices.layer)("the command for this program", (it) => {
  const ground = Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* temporaryFolder
    const at = (...parts: ReadonlyArray<string>) => path.join(folder, ...parts)
    const put = Effect.fnUntraced(function* (...parts: ReadonlyArray<string>) {
      yield* fs.makeDirectory(path.dirname(at(...parts)), { recursive: true })
      yield* fs.writeFileString(at(...parts), "#!/usr/bin/env node\n")
      yield* fs.chmod(at(...parts), 0o755)
      return at(...parts)
    })
    const file = yield* put("lib", "palimpsest.mjs")
    const link = Effect.fnUntraced(function* (...parts: ReadonlyArray<string>) {
      yield* fs.makeDirectory(path.dirname(at(...parts)), { recursive: true })
      yield* fs.symlink(file, at(...parts))
    })
    const commandOn = (...parts: ReadonlyArray<string>) =>
      Effect.map(ownProgram({ node, file, searchPath: parts.join(":") }), ({ command }) => command)
    return { at, commandOn, file, link, put }
  })

  it.effect("is its name where the PATH leads to it", function* () {
    const { at, commandOn, link } = yield* ground
    yield* link("bin", "palimpsest")
    assert.deepStrictEqual(yield* commandOn("/nowhere", at("bin")), ["palimpsest"])
  })

  it.effect("is by absolute paths where the PATH leads nowhere or to another one", function* () {
    const { at, commandOn, file, link, put } = yield* ground
    yield* link("bin", "palimpsest")
    yield* put("other", "palimpsest")
    assert.deepStrictEqual(yield* commandOn(), [node, file])
    assert.deepStrictEqual(yield* commandOn("/nowhere"), [node, file])
    assert.deepStrictEqual(yield* commandOn(at("other"), at("bin")), [node, file])
    // Where a relative part leads depends on who asks.
    assert.deepStrictEqual(yield* commandOn("bin", "."), [node, file])
  })

  it.effect("does not go by the PATH that npm makes for one run", function* () {
    const { at, commandOn, file, link } = yield* ground
    yield* link("node_modules", ".bin", "palimpsest")
    assert.deepStrictEqual(yield* commandOn(at("node_modules", ".bin")), [node, file])
  })

  it.effect("names the file itself, and says when that is in a cache", function* () {
    const { at, file, link, put } = yield* ground
    yield* link("start.mjs")
    const linked = yield* ownProgram({ node, file: at("start.mjs"), searchPath: "" })
    assert.deepStrictEqual(linked, { command: [node, file], isCached: false })
    const cached = yield* put(".npm", "_npx", "0123", "node_modules", "palimpsest-cli", "palimpsest.mjs")
    assert.deepStrictEqual(yield* ownProgram({ node, file: cached, searchPath: "" }), {
      command: [node, cached],
      isCached: true
    })
  })
})
