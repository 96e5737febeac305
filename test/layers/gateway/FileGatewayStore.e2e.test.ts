import { Effect, FileSystem, Path } from "effect"
import * as FileGatewayStore from "../../../src/layers/gateway/FileGatewayStore.ts"
import * as NodePlatform from "../../../src/layers/platform/NodePlatform.ts"
import { GatewayStore } from "../../../src/services/gateway/GatewayStore.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const days = (count: number) => new Date(Date.now() - count * 86_400_000)

describe("the files of the gateway", () => {
  it.live("keep texts by owner, kind and name, for the user alone", NodePlatform.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* fs.makeTempDirectoryScoped()
    const store = yield* Effect.provide(GatewayStore, FileGatewayStore.layer(folder, 30))
    assert.deepStrictEqual(yield* store.names("a", "view"), [])
    assert.isUndefined(yield* store.get("a", "view", "x"))
    yield* store.put("a", "view", "x", "one")
    yield* store.put("a", "view", "x", "two")
    yield* store.put("b", "hidden", "y", "three")
    assert.deepStrictEqual(yield* store.names("a", "view"), ["x"])
    assert.strictEqual(yield* store.get("a", "view", "x"), "two")
    assert.isUndefined(yield* store.get("b", "view", "x"))
    const { mode } = yield* fs.stat(path.join(folder, "a", "view", "x.json"))
    assert.strictEqual(mode & 0o077, 0)
  })

  it.live("are removed at the start when unused for some days", NodePlatform.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* fs.makeTempDirectoryScoped()
    const first = yield* Effect.provide(GatewayStore, FileGatewayStore.layer(folder, 30))
    for (const name of ["old", "read", "new"]) yield* first.put("a", "view", name, name)
    for (const name of ["old", "read"]) {
      yield* fs.utimes(path.join(folder, "a", "view", `${name}.json`), days(40), days(40))
    }
    yield* first.get("a", "view", "read")
    yield* FileGatewayStore.removeOld(folder, days(30).getTime())
    assert.sameMembers([...(yield* first.names("a", "view"))], ["read", "new"])
  })
})
