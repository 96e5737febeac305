import { Layer } from "effect"
import type { SqlClient } from "effect/sql"
import type { SessionHistory } from "../../services/session/SessionHistory.ts"
import type { SessionStore, SessionStoreError } from "../../services/session/SessionStore.ts"
import * as BackedSessionStore from "./BackedSessionStore.ts"
import * as SqlSessionBacking from "./SqlSessionBacking.ts"

/**
 * Sessions in tables of the database of the context, SQLite or PostgreSQL: `palimpsest_sessions`, `_lines`, `_blobs`, `_owners` and
 * `_migrations`, made or brought up to date when the layer is built. An append that succeeded is committed.
 */
export const layer = (
  options?: SqlSessionBacking.SqlSessionOptions
): Layer.Layer<SessionStore, SessionStoreError, SqlClient.SqlClient> =>
  BackedSessionStore.over(SqlSessionBacking.make(options))

/** The store with the histories of its sessions. */
export const layerWithHistory = (
  options?: SqlSessionBacking.SqlSessionOptions
): Layer.Layer<SessionHistory | SessionStore, SessionStoreError, SqlClient.SqlClient> => {
  const backing = SqlSessionBacking.make(options)
  return Layer.merge(BackedSessionStore.over(backing), BackedSessionStore.historiesOver(backing))
}
