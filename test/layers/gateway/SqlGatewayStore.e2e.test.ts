import { Context, Effect, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import * as SqlGatewayStore from "../../../src/layers/gateway/SqlGatewayStore.ts"
import * as PostgresClient from "../../../src/layers/platform/PostgresClient.ts"
import * as SqliteClient from "../../../src/layers/platform/SqliteClient.ts"
import { GatewayStore } from "../../../src/services/gateway/GatewayStore.ts"
import { needs } from "../../support/machine.ts"
import { postgres } from "../../support/postgres.ts"
import { assert, it } from "../../support/vitest.ts"

const days = 86_400_000

/** A store over a client, as it is when a gateway starts. */
const opened = (client: SqlClient.SqlClient) =>
  Effect.map(
    Layer.build(SqlGatewayStore.layer(30).pipe(Layer.provide(Layer.succeed(SqlClient.SqlClient, client)))),
    Context.get(GatewayStore)
  )

const kept = Effect.fnUntraced(function* (client: SqlClient.SqlClient) {
  const store = yield* opened(client)
  assert.deepStrictEqual(yield* store.names("a", "view"), [])
  assert.isUndefined(yield* store.get("a", "view", "x"))
  yield* store.put("a", "view", "x", "one")
  yield* store.put("a", "view", "x", "two 😀")
  yield* store.put("b", "hidden", "y", "three")
  // Another gateway opens the same tables.
  const other = yield* opened(client)
  assert.deepStrictEqual(yield* other.names("a", "view"), ["x"])
  assert.strictEqual(yield* other.get("a", "view", "x"), "two 😀")
  assert.isUndefined(yield* other.get("b", "view", "x"))
  // What was read lately stays, and what nobody used goes when the next one starts.
  const old = Date.now() - 40 * days
  yield* other.put("a", "view", "read", "again")
  yield* client`UPDATE palimpsest_gateway SET used_at = ${old} WHERE owner = 'a'`
  assert.strictEqual(yield* other.get("a", "view", "read"), "again")
  const third = yield* opened(client)
  const names = Effect.repeat(third.names("a", "view"), { until: (all) => all.length < 2 })
  assert.deepStrictEqual(yield* names, ["read"])
})

it.live("the tables of the gateway keep texts in SQLite", () =>
  Effect.flatMap(Layer.build(SqliteClient.layer(":memory:")), (built) =>
    kept(Context.get(built, SqlClient.SqlClient))
  ).pipe(Effect.scoped)
)

needs("PostgreSQL")("the tables of the gateway in PostgreSQL", () => {
  it.live("keep texts", Reactivity.layer, function* () {
    const client = yield* PostgresClient.make(yield* postgres, 4)
    yield* kept(client)
  })
})
