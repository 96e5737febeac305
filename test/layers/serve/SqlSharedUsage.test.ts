import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import * as SqlSharedUsage from "../../../src/layers/serve/SqlSharedUsage.ts"
import { SharedUsage } from "../../../src/services/serve/TenantLimiter.ts"
import { assert, it } from "../../support/vitest.ts"

const away = Effect.fail(
  new SqlError.SqlError({ reason: new SqlError.ConnectionError({ message: "connection lost", cause: undefined }) })
)

it.effect("what was given back without the database is given back later, also after an attempt that hangs", () => {
  const asked: Array<string> = []
  let state: "away" | "hanging" | "there" = "there"
  const run = (statement: string) =>
    Effect.suspend(() => {
      if (state === "away") return away
      asked.push(statement)
      return state === "hanging" && statement.includes("name =") ? Effect.never : Effect.succeed([])
    })
  const connection = {
    execute: run,
    executeRaw: run,
    executeValues: () => Effect.die("unused"),
    executeValuesUnprepared: () => Effect.die("unused"),
    executeUnprepared: run,
    executeStream: () => assert.fail("unused")
  }
  const database = Layer.effect(
    SqlClient.SqlClient,
    SqlClient.make({
      acquirer: Effect.succeed(connection),
      compiler: PgClient.makeCompiler(),
      driver: "scripted",
      spanAttributes: []
    })
  ).pipe(Layer.provide(Reactivity.layer))
  const given = () => asked.filter((statement) => /^DELETE .* name =/s.test(statement)).length
  return Effect.gen(function* () {
    const usage = yield* SharedUsage
    state = "away"
    yield* usage?.give("acme", "turns", "one") ?? Effect.die("no counts")
    state = "hanging"
    yield* TestClock.adjust("11 seconds")
    assert.strictEqual(given(), 1)
    state = "there"
    yield* TestClock.adjust("11 seconds")
    assert.strictEqual(given(), 2)
  }).pipe(Effect.provide(Layer.provide(SqlSharedUsage.layer, database)))
})
