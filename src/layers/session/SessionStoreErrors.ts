/** Turns errors of the file system into errors of the session store. */

import { Effect, PlatformError } from "effect"
import { diskErrorText } from "../../domain/text/DiskErrors.ts"
import { type SessionStoreError, sessionUnavailable } from "../../services/session/SessionStore.ts"

/** The failure of each operation, in words for the user. */
const failures: Readonly<Record<string, string>> = {
  "open the database": "the database of the sessions could not be opened",
  append: "the session could not be written, and is unchanged",
  create: "the session could not be created",
  open: "the session could not be opened",
  read: "the session could not be read",
  list: "the sessions could not be listed",
  rename: "the session could not be renamed",
  remove: "the session could not be deleted"
}

/** Returns the failure that an operation reports. */
export const failureOf = (operation: string, id?: string): string =>
  (failures[operation] ?? operation).replace("the session", id === undefined ? "the session" : `session ${id}`)

/** Reports errors of the file system as `SessionUnavailable`: which operation failed, and why. */
export const withSessionErrors =
  (operation: string, id?: string) =>
  <A, R>(effect: Effect.Effect<A, SessionStoreError | PlatformError.PlatformError, R>) =>
    Effect.mapError(effect, (error) =>
      error instanceof PlatformError.PlatformError
        ? sessionUnavailable(operation, `${failureOf(operation, id)}: ${diskErrorText(error)}`, error)
        : error
    )
