import type { Layer } from "effect"
import type { SqlClient } from "effect/sql"
import type { SessionStore, SessionStoreError } from "../../services/session/SessionStore.ts"
import * as BackedSessionStore from "./BackedSessionStore.ts"
import * as SqlSessionBacking from "./SqlSessionBacking.ts"

/**
 * Sessions in tables of the database of the context, SQLite or PostgreSQL: `palimpsest_sessions`, `_lines`, `_blobs`, `_owners` and
 * `_migrations`, made or brought up to date when the layer is built. An append that succeeded is committed:
 * within a transaction of the program nothing is written, and the append fails with `SessionInTransaction`. `Chat` asks before it asks a model.
 *
 * **Example** (Keeping chats in the database of the program)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Chats, Palimpsest } from "palimpsest"
 * import { SqliteClient } from "palimpsest/node"
 * import { SqlSessionStore } from "palimpsest/sql"
 *
 * const store = SqlSessionStore.layer().pipe(Layer.provide(SqliteClient.layer(":memory:")))
 * const opened = Effect.flatMap(Chats.open("bridge"), (chat) => chat.session).pipe(Effect.scoped)
 * const { started } = await Effect.runPromise(Effect.provide(opened, Palimpsest.layer({ store })))
 * console.log(started?.session) // => bridge
 * ```
 */
export const layer = (
  options?: SqlSessionBacking.SqlSessionOptions
): Layer.Layer<SessionStore, SessionStoreError, SqlClient.SqlClient> =>
  BackedSessionStore.over(SqlSessionBacking.make(options))
