import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { Statement } from "effect/sql"
import * as SqliteClient from "../../../src/layers/platform/SqliteClient.ts"
import * as KeyValueSessionStore from "../../../src/layers/session/KeyValueSessionStore.ts"
import * as SqlSessionStore from "../../../src/layers/session/SqlSessionStore.ts"
import { sessionStoreFaults } from "../../../src/layers/testing/SessionStoreFaults.ts"
import { faultyKeyValueStore, Faults, faultySqlClient } from "../../support/faultyStores.ts"
import { strideOf } from "../../support/runs.ts"

const every = strideOf(3)

sessionStoreFaults(
  { describe, it },
  {
    name: "KeyValueSessionStore",
    make: Effect.sync(() => {
      const faults = new Faults()
      const layer = KeyValueSessionStore.layer().pipe(Layer.provide(faultyKeyValueStore(faults, new Map())))
      return { layer: Layer.fresh(layer), inject: faults.inject, calls: faults.calls }
    }),
    every
  }
)

sessionStoreFaults(
  { describe, it },
  {
    name: "SqlSessionStore over SQLite",
    make: Effect.gen(function* () {
      const folder = yield* FileSystem.FileSystem.use((fs) => fs.makeTempDirectoryScoped())
      const faults = new Faults()
      const client = faultySqlClient(faults, { begin: "BEGIN IMMEDIATE", compiler: Statement.makeCompilerSqlite() })
      const layer = SqlSessionStore.layer().pipe(
        Layer.provide(client),
        Layer.provide(SqliteClient.layer(`${folder}/sessions.db`))
      )
      return { layer: Layer.fresh(layer), inject: faults.inject, calls: faults.calls }
    }).pipe(Effect.provide(NodeServices.layer)),
    every
  }
)
