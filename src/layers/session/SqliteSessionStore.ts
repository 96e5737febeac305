import { Layer } from "effect"
import { type SessionStore, type SessionStoreError, sessionUnavailable } from "../../services/session/SessionStore.ts"
import * as SqliteClient from "../platform/SqliteClient.ts"
import * as BackedSessionStore from "./BackedSessionStore.ts"
import * as SqlSessionBacking from "./SqlSessionBacking.ts"

/**
 * Sessions in a database of Node's own SQLite (Node 22.16 or newer): a file, which is created with its folder, or `:memory:`.
 *
 * **Example** (Keeping chats in a file of SQLite)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Chats, Palimpsest } from "palimpsest"
 * import { SqliteSessionStore } from "palimpsest/node"
 * import { ScriptedModel } from "palimpsest/testing"
 *
 * const Runtime = Palimpsest.layer({
 *   store: SqliteSessionStore.layer(":memory:"),
 *   model: ScriptedModel.layer(["In 1743."])
 * })
 * const asked = Effect.flatMap(Chats.open("bridge"), (chat) => Stream.runCount(chat.send("When?"))).pipe(
 *   Effect.scoped
 * )
 * console.log((await Effect.runPromise(Effect.provide(asked, Runtime))) > 0) // => true
 * ```
 */
export const layer = (
  filename: string,
  options?: SqlSessionBacking.SqlSessionOptions
): Layer.Layer<SessionStore, SessionStoreError> =>
  BackedSessionStore.over(SqlSessionBacking.make(options)).pipe(Layer.provide(SqliteClient.layer(filename)), (store) =>
    Layer.catchTag(store, "SqliteUnavailable", (error) =>
      Layer.unwrap(sessionUnavailable("open the database", error.message, error))
    )
  )
