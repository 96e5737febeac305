import { afterAll, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import * as PostgresSessionStore from "../../../src/layers/session/PostgresSessionStore.ts"
import { sessionStoreContract } from "../../../src/layers/testing/SessionStoreContract.ts"
import { needs } from "../../support/machine.ts"
import { postgres } from "../../support/postgres.ts"
import { runsOf } from "../../support/runs.ts"

needs("PostgreSQL")("sessions in PostgreSQL", () => {
  const scope = Effect.runSync(Scope.make())
  let url = ""
  let tenants = 0
  beforeAll(async () => {
    url = await Effect.runPromise(Scope.provide(postgres, scope))
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
})
