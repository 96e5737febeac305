import { Effect, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import * as SqliteClient from "../../../src/layers/platform/SqliteClient.ts"
import * as SqlTurnJournal from "../../../src/layers/serve/SqlTurnJournal.ts"
import { TurnJournal } from "../../../src/services/serve/TurnJournal.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const closed = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: new Error("Connection closed"), message: "Connection closed" })
})

/** A database whose first transaction loses its connection after the commit. The client reports that as a defect. */
const closing = Layer.effect(
  SqlClient.SqlClient,
  Effect.map(SqlClient.SqlClient, (sql) => {
    let isFirst = true
    const withTransaction: SqlClient.SqlClient["withTransaction"] = (work) =>
      Effect.tap(sql.withTransaction(work), () => {
        if (!isFirst) return Effect.void
        isFirst = false
        return Effect.die(closed)
      })
    return Object.assign(sql.bind(undefined), sql, { withTransaction })
  })
).pipe(Layer.provide(SqliteClient.layer(":memory:")))

describe("the journal of turns", () => {
  it.live(
    "forgets what the engine has of a session, and of no other one",
    Layer.provideMerge(SqlTurnJournal.layer, SqliteClient.layer(":memory:")),
    function* () {
      const journal = (yield* TurnJournal) ?? assert.fail("there is no journal")
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE cluster_messages (id INTEGER, entity_id TEXT)`
      yield* sql`CREATE TABLE cluster_replies (request_id INTEGER)`
      const others = ["acme/ONE", "acme/ONE/1/0", "acme/onerous/1/0", "local/one/1/0"]
      for (const [id, entity] of ["acme/one", "acme/one/1/0", ...others].entries()) {
        yield* sql`INSERT INTO cluster_messages ${sql.insert({ id, entity_id: entity })}`
        yield* sql`INSERT INTO cluster_replies ${sql.insert({ request_id: id })}`
      }
      yield* journal.forget("acme", "one")
      const left = yield* sql`SELECT entity_id FROM cluster_messages ORDER BY id`
      assert.deepStrictEqual(
        left.map((row) => row["entity_id"]),
        others
      )
      assert.strictEqual((yield* sql`SELECT request_id FROM cluster_replies`).length, others.length)
    }
  )

  it.live(
    "stores events once when it closes after the commit",
    Layer.provideMerge(SqlTurnJournal.layer, closing),
    function* () {
      const journal = (yield* TurnJournal) ?? assert.fail("there is no journal")
      const sql = yield* SqlClient.SqlClient
      yield* journal.take("local", "one", "owner")
      const event = { number: 1, message: "m1", event: { _tag: "TurnStarted", text: "Hello" } } as const
      const turn = { name: "events", events: [event] }
      assert.isTrue(yield* journal.save("local", "one", { ...turn, first: undefined }, "owner"))
      yield* sql`UPDATE palimpsest_turn_events SET at = 5`
      assert.deepStrictEqual(yield* journal.take("local", "one", "next"), { ...turn, since: 5 })
    }
  )
})
