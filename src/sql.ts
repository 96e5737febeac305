/**
 * `palimpsest/sql`: sessions in a database. `SqlSessionStore` takes any `SqlClient` of `effect/sql` for SQLite or PostgreSQL;
 * `PostgresSessionStore` takes a URL and needs `@effect/sql-pg`. SQLite without a client of your own is in `palimpsest/node`.
 */
export * as PostgresSessionStore from "./layers/session/PostgresSessionStore.ts"
export * as SqlSessionStore from "./layers/session/SqlSessionStore.ts"
export type { SqlSessionOptions } from "./layers/session/SqlSessionBacking.ts"
