/**
 * `palimpsest/sql`: sessions in a database. `SqlSessionStore` takes any `SqlClient` of `effect/sql` for SQLite or PostgreSQL;
 * `PostgresSessionStore` takes a URL and needs `@effect/sql-pg`. SQLite without a client of your own is in `palimpsest/node`.
 */

/** @category Storage @since 0.1.0 */
export * as PostgresSessionStore from "./layers/session/PostgresSessionStore.ts"
/** @category Storage @since 0.1.0 */
export * as SqlSessionStore from "./layers/session/SqlSessionStore.ts"
/** @category Models @since 0.1.0 */
export type { SqlSessionOptions } from "./layers/session/SqlSessionBacking.ts"
