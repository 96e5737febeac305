import { Effect, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError, type Statement } from "effect/sql"
import { TestClock } from "effect/testing"
import type { StorageFault } from "../../src/layers/testing/SessionStoreFaults.ts"

/** Storages whose n-th call fails. */

/** Counts calls, and decides what happens to each. */
export class Faults {
  private fault: (call: number) => StorageFault = () => "pass"
  private made = 0
  readonly calls = () => this.made
  readonly inject = (fault: (call: number) => StorageFault) => {
    this.fault = fault
    this.made = 0
  }
  next(): StorageFault {
    this.made += 1
    return this.fault(this.made)
  }
  /** Fails a call as the fault of the next number says. */
  apply<A, E, R>(call: Effect.Effect<A, E, R>, fail: Effect.Effect<never, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      const fault = this.next()
      return fault === "pass" ? call : fault === "lost" ? Effect.andThen(call, fail) : fail
    })
  }
}

const away = Effect.fail(
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ message: "connection lost", cause: "connection lost" })
  })
)

/** A connection that is lost at a fault: the database rolls back the transaction that was open on it. */
const faultyConnection = (connection: SqlConnection.Connection, faults: Faults): SqlConnection.Connection => {
  const rolledBack = Effect.andThen(Effect.ignore(connection.executeUnprepared("ROLLBACK", [], undefined)), away)
  const run =
    <Args extends ReadonlyArray<unknown>, A>(
      method: (sql: string, ...args: Args) => Effect.Effect<A, SqlError.SqlError>
    ) =>
    (sql: string, ...args: Args): Effect.Effect<A, SqlError.SqlError> => {
      // A driver waits for a server that knows nothing of the test's clock.
      const call = TestClock.withLive(method(sql, ...args))
      // After a connection was lost there is nothing to roll back.
      return faults.apply(
        sql === "ROLLBACK"
          ? Effect.catch(call, () => connection.executeUnprepared("SELECT 1", [], undefined) as typeof call)
          : call,
        rolledBack
      )
    }
  return {
    execute: run((sql, params, transform) => connection.execute(sql, params, transform)),
    executeUnprepared: run((sql, params, transform) => connection.executeUnprepared(sql, params, transform)),
    executeRaw: run((sql, params) => connection.executeRaw(sql, params)),
    executeValues: run((sql, params) => connection.executeValues(sql, params)),
    executeValuesUnprepared: run((sql, params) => connection.executeValuesUnprepared(sql, params)),
    executeStream: (sql, params, transform) => connection.executeStream(sql, params, transform)
  }
}

/** A client over that of the context, whose statements fail. */
export const faultySqlClient = (
  faults: Faults,
  { begin, compiler }: { readonly begin: string; readonly compiler: Statement.Compiler }
): Layer.Layer<SqlClient.SqlClient, never, SqlClient.SqlClient> =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.flatMap(SqlClient.SqlClient, (inner) => {
      const acquirer = Effect.map(TestClock.withLive(inner.reserve), (connection) =>
        faultyConnection(connection, faults)
      )
      return SqlClient.make({ acquirer, compiler, driver: "faulty", spanAttributes: [], beginTransaction: begin })
    })
  ).pipe(Layer.provide(Reactivity.layer))

/** A store of keys and values over a map, whose calls fail. */
export const faultyKeyValueStore = (
  faults: Faults,
  values: Map<string, string>
): Layer.Layer<KeyValueStore.KeyValueStore> => {
  const call = <A>(method: string, f: () => A) =>
    faults.apply(
      Effect.sync(f),
      Effect.fail(new KeyValueStore.KeyValueStoreError({ method, message: "the disk is full" }))
    )
  return Layer.succeed(
    KeyValueStore.KeyValueStore,
    KeyValueStore.makeStringOnly({
      get: (key) => call("get", () => values.get(key)),
      set: (key, value) => call("set", () => void values.set(key, value)),
      remove: (key) => call("remove", () => void values.delete(key)),
      clear: call("clear", () => values.clear()),
      keys: call("keys", () => [...values.keys()]),
      size: call("size", () => values.size)
    })
  )
}
