import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Result } from "effect"
import { KeyValueStore } from "effect/persistence"
import { assert } from "vitest"
import { text } from "../../../src/domain/content/Content.ts"
import * as SqliteClient from "../../../src/layers/platform/SqliteClient.ts"
import * as BackedSessionStore from "../../../src/layers/session/BackedSessionStore.ts"
import * as KeyValueSessionBacking from "../../../src/layers/session/KeyValueSessionBacking.ts"
import * as KeyValueSessionStore from "../../../src/layers/session/KeyValueSessionStore.ts"
import * as SqliteSessionStore from "../../../src/layers/session/SqliteSessionStore.ts"
import * as SqlSessionBacking from "../../../src/layers/session/SqlSessionBacking.ts"
import * as MemorySessionStore from "../../../src/layers/testing/MemorySessionStore.ts"
import { sessionBackingContract } from "../../../src/layers/testing/SessionBackingContract.ts"
import { appended, started } from "../../../src/layers/testing/SessionHistories.ts"
import { sessionStoreContract } from "../../../src/layers/testing/SessionStoreContract.ts"
import { SessionBacking } from "../../../src/services/session/SessionBacking.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { runsOf } from "../../support/runs.ts"

sessionBackingContract(
  { describe, it },
  {
    name: "SqlSessionBacking",
    make: Effect.succeed(Layer.fresh(SqlSessionBacking.make().pipe(Layer.provide(SqliteClient.layer(":memory:")))))
  }
)

const inMemory = Layer.fresh(Layer.provide(KeyValueSessionBacking.make(), KeyValueStore.layerMemory))

sessionBackingContract({ describe, it }, { name: "KeyValueSessionBacking", make: Effect.succeed(inMemory) })

sessionStoreContract(
  { describe, it },
  {
    name: "MemorySessionStore",
    make: Effect.map(Layer.build(MemorySessionStore.layer), Layer.succeedContext),
    takesOver: true,
    runs: runsOf(200, 8)
  }
)

/** A database file that does not exist yet. */
const freshFile = FileSystem.FileSystem.use((fs) => fs.makeTempDirectoryScoped()).pipe(
  Effect.map((folder) => `${folder}/not/there/sessions.db`),
  Effect.provide(NodeServices.layer)
)

sessionStoreContract(
  { describe, it },
  {
    name: "SqliteSessionStore",
    make: Effect.map(freshFile, (file) => SqliteSessionStore.layer(file)),
    takesOver: true,
    runs: runsOf(40, 4)
  }
)

sessionStoreContract(
  { describe, it },
  {
    name: "KeyValueSessionStore in a folder",
    make: Effect.map(freshFile, (folder) =>
      KeyValueSessionStore.layer().pipe(
        Layer.provide(KeyValueStore.layerFileSystem(folder)),
        Layer.provide(NodeServices.layer)
      )
    ),
    takesOver: true,
    runs: runsOf(20, 3)
  }
)

const storeOver = (backing: Layer.Layer<SessionBacking>) =>
  Effect.flatMap(Layer.build(BackedSessionStore.over(backing)), (context) => Effect.provide(SessionStore, context))

describe("a session that is deleted while it is read", () => {
  const many = Array.from({ length: 600 }, (_, at) => appended(at + 1, text(`Message ${at}`)))
  for (const [what, events] of [
    ["a large part", [appended(1, text("Hello".repeat(2_000)))]],
    ["its second page", many]
  ] as const) {
    it.effect.each([false, true])(`before ${what}, is the one that takes its place (%s), or is missing`, (isAnew) =>
      Effect.gen(function* () {
        const context = yield* Layer.build(inMemory)
        const backing = yield* Effect.provide(SessionBacking, context)
        const other = yield* storeOver(Layer.succeed(SessionBacking, backing))
        let isDeleted = false
        const remove = (id: string) =>
          Effect.gen(function* () {
            if (isDeleted) return
            isDeleted = true
            yield* backing.remove(id)
            if (isAnew) yield* other.add([{ ...started(id), at: 7 }, ...many.slice(0, 300)])
          })
        const deletes = Layer.succeed(SessionBacking, {
          ...backing,
          read: (id, from, to) => Effect.andThen(from > 2 ? remove(id) : Effect.void, backing.read(id, from, to)),
          getBlob: (id, hash) => Effect.andThen(remove(id), backing.getBlob(id, hash))
        })
        yield* other.add([started("s1"), ...events])
        const read = yield* Effect.result(Effect.flatMap(storeOver(deletes), (store) => store.events("s1")))
        assert.isTrue(isDeleted)
        if (isAnew) assert.deepStrictEqual(read, Result.succeed(yield* other.events("s1")))
        else assert.strictEqual(Result.isFailure(read) && read.failure.reason._tag, "SessionNotFound")
      }).pipe(Effect.scoped)
    )
  }
})
