import * as PgClient from "@effect/sql-pg/PgClient"
import { afterAll, beforeAll, describe, it } from "@effect/vitest"
import { type Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import type { SqlClient } from "effect/sql"
import * as PostgresSessionStore from "../../../src/layers/session/PostgresSessionStore.ts"
import * as SqlSessionStore from "../../../src/layers/session/SqlSessionStore.ts"
import { sessionStoreContract } from "../../../src/layers/testing/SessionStoreContract.ts"
import { sessionStoreFaults } from "../../../src/layers/testing/SessionStoreFaults.ts"
import { Faults, faultySqlClient } from "../../support/faultyStores.ts"
import { needs } from "../../support/machine.ts"
import { postgres } from "../../support/postgres.ts"
import { runsOf, strideOf } from "../../support/runs.ts"

needs("PostgreSQL")("sessions in PostgreSQL", () => {
  const scope = Effect.runSync(Scope.make())
  let url = ""
  let client: Context.Context<SqlClient.SqlClient>
  let tenants = 0
  beforeAll(async () => {
    url = await Effect.runPromise(Scope.provide(postgres, scope))
    const pool = PgClient.layer({ url: Redacted.make(url), maxConnections: 2 })
    client = await Effect.runPromise(Layer.buildWithScope(pool, scope))
  }, 60_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  sessionStoreContract(
    { describe, it },
    {
      name: "PostgresSessionStore",
      // Each test has a tenant of its own in the one database.
      make: Effect.sync(() =>
        PostgresSessionStore.layer(url, { tenant: `tenant${(tenants += 1)}`, maxConnections: 2 })
      ),
      takesOver: true,
      runs: runsOf(4)
    }
  )

  sessionStoreFaults(
    { describe, it },
    {
      name: "SqlSessionStore over PostgreSQL",
      make: Effect.sync(() => {
        const faults = new Faults()
        const faulty = faultySqlClient(faults, { begin: "BEGIN", compiler: PgClient.makeCompiler() })
        const layer = SqlSessionStore.layer({ tenant: `tenant${(tenants += 1)}` }).pipe(
          Layer.provide(faulty),
          Layer.provide(Layer.succeedContext(client))
        )
        return { layer: Layer.fresh(layer), inject: faults.inject, calls: faults.calls }
      }),
      every: strideOf(7)
    }
  )
})
