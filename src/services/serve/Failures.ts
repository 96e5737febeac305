/**
 * Describes failures inside the server to clients: what they can do, and nothing about paths, processes or other
 * tenants.
 */

import { Effect } from "effect"
import { SqlError } from "effect/sql"
import type { UnknownEntry } from "../chat/Branch.ts"
import type { PlanRefused } from "../compression/strategies/CompressRequest.ts"
import type { RuntimeError } from "../runtime/RuntimeError.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import type { TokenCountError } from "../tokens/TokenCounter.ts"
import { BadRequest, Conflict, Failed, NotFound, type ServeError, Unavailable } from "./ServeErrors.ts"

/** The error for a session that the tenant does not have. */
export const noSession = (id: string) =>
  new NotFound({ message: `there is no session ${id}; GET /v1/sessions lists the sessions` })

/** The error for a message that the session does not have. */
export const noMessage = (id: string, message: string) =>
  new NotFound({ message: `session ${id} has no message ${message}; send it with this id` })

/** The error for a message whose id another message of the session has. */
export const otherWords = (id: string, message: string) =>
  new Conflict({ message: `session ${id} has a message ${message} with other words; send this one with another id` })

/** The error for a session that cannot be deleted because its turn runs. */
export const isWorkedOn = () =>
  new Conflict({ message: "the server is working on this session; cancel the turn first" })

/** Describes a failure of the store to a client, without paths and processes. */
export const storeError = (error: SessionStoreError): Effect.Effect<never, ServeError> => {
  const { reason } = error
  switch (reason._tag) {
    case "SessionNotFound":
      return Effect.fail(noSession(reason.id))
    case "SessionExists":
      return Effect.fail(new Conflict({ message: `session ${reason.id} exists already; choose another id` }))
    case "SessionLocked":
      return Effect.fail(new Conflict({ message: `session ${reason.id} is in use by another process; close it there` }))
    case "SessionTaken":
      return Effect.fail(new Unavailable({ message: `another server took session ${reason.id} over; send it again` }))
    case "SessionUnavailable":
      return SqlError.isSqlError(reason.cause) && reason.cause.isRetryable
        ? Effect.andThen(
            Effect.logWarning(`serve: ${error.message}`),
            new Unavailable({ message: "the store does not answer; try again in a moment" })
          )
        : internal(error)
    default:
      return internal(error)
  }
}

/** Logs a failure, and reports to the client only that it happened. */
export const internal = (error: { readonly message: string }): Effect.Effect<never, Failed> =>
  Effect.andThen(
    Effect.logWarning(`serve: ${error.message}`),
    Effect.fail(new Failed({ message: "the server could not do this; its log says why" }))
  )

/** Describes to a client why a conversation cannot be opened, or changed. */
export const chatError = (
  error: RuntimeError | PlanRefused | TokenCountError | UnknownEntry
): Effect.Effect<never, ServeError> => {
  switch (error._tag) {
    case "SessionStoreError":
      return storeError(error)
    case "ChatBusy":
    case "PlanRefused":
      return Effect.fail(new Conflict({ message: error.message }))
    case "UnknownModelError":
      return Effect.fail(new BadRequest({ message: error.message }))
    case "UnknownEntry":
      return Effect.fail(new NotFound({ message: error.message }))
    default:
      return internal(error)
  }
}
