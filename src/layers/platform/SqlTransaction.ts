/** Runs work in SQL transactions in which a lost connection is a failure and no defect. */

import { Cause, Effect, Option } from "effect"
import { type SqlClient, SqlError } from "effect/sql"

/** Turns the defect of a failed commit or rollback into a failure: a lost connection can do neither. */
export const orConnectionLost = <E>(cause: Cause.Cause<E>): Effect.Effect<never, E | SqlError.SqlError> => {
  const lost = cause.reasons.filter(Cause.isDieReason).find(({ defect }) => SqlError.isSqlError(defect))
  return lost === undefined || Cause.hasInterrupts(cause)
    ? Effect.failCause(cause)
    : Option.match(Cause.findErrorOption(cause), {
        onSome: Effect.fail,
        onNone: () => (SqlError.isSqlError(lost.defect) ? Effect.fail(lost.defect) : Effect.failCause(cause))
      })
}

/** Runs work in a transaction. Fails, without a defect, if the connection is lost at its end. */
export const inTransaction = <A, E, R>(sql: SqlClient.SqlClient, work: Effect.Effect<A, E, R>) =>
  Effect.catchCause(sql.withTransaction(work), orConnectionLost)
