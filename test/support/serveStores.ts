import { Effect, Redacted } from "effect"
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { ServeStore } from "../../src/layers/assembly/LiveServe.ts"
import { needs, programOf } from "./machine.ts"
import { databases, freePort } from "./postgres.ts"
import { newHome, type Server, type ServerOptions, serving } from "./server.ts"

/** The stores that a server keeps sessions in, for tests that are the same over each. */
export interface TestedStore {
  readonly _tag: "Files" | "Sqlite" | "Postgres"
  /** The store of the servers whose home is this folder. */
  readonly at: (home: string) => Effect.Effect<ServeStore>
  /** Runs a statement in the database below a home. Returns the rows, their values separated by blanks. */
  readonly query: (home: string, statement: string) => ReadonlyArray<string>
  /** Everything that is stored below a home: files as they are, and the rows of databases. */
  readonly stored: (home: string) => string
}

/** The files of a folder as they are; of databases the rows. */
const filesBelow = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.db-(?:wal|shm)$/.test(entry.name))
    .map(({ name, parentPath }) => {
      const file = path.join(parentPath, name)
      return name.endsWith(".db") ? rowsOf(file) : `${file}\n${readFileSync(file, "latin1")}`
    })
    .join("\n")

const valuesOf = (row: Readonly<Record<string, unknown>>): string =>
  Object.values(row)
    .map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value)))
    .join(" ")

const querySqlite = (file: string, statement: string): ReadonlyArray<string> => {
  const database = new DatabaseSync(file)
  const prepared = database.prepare(statement)
  prepared.setReadBigInts(true)
  const rows = prepared.all().map(valuesOf)
  database.close()
  return rows
}

const rowsOf = (file: string): string =>
  querySqlite(file, "SELECT name FROM sqlite_master WHERE type = 'table'")
    .flatMap((name) => querySqlite(file, `SELECT * FROM "${name}"`))
    .join("\n")

const none = (): ReadonlyArray<string> => []
const files: TestedStore = {
  _tag: "Files",
  at: () => Effect.succeed({ _tag: "Files" }),
  query: none,
  stored: filesBelow
}

const sqlite: TestedStore = {
  _tag: "Sqlite",
  at: () => Effect.succeed({ _tag: "Sqlite" }),
  query: (home, statement) => querySqlite(path.join(home, "serve.db"), statement),
  stored: filesBelow
}

/** A server of PostgreSQL with a database for each home. */
const postgresStore = (): TestedStore => {
  const database = databases()
  const urls = new Map<string, string>()
  const run = (program: string, args: ReadonlyArray<string>): string =>
    execFileSync(path.join(path.dirname(programOf("PostgreSQL") ?? "initdb"), program), args, { encoding: "latin1" })
  const bytes = (text: string): string =>
    text.replaceAll(/\\\\x([0-9a-f]*)/g, (_, hex: string) => Buffer.from(hex, "hex").toString("latin1"))
  return {
    _tag: "Postgres",
    at: Effect.fnUntraced(function* (home) {
      const url = urls.get(home) ?? (yield* database)
      urls.set(home, url)
      const runner = { host: "127.0.0.1", port: yield* freePort }
      return { _tag: "Postgres", url: Redacted.make(url), runner }
    }),
    query: (home, statement) =>
      run("psql", ["-AtF", " ", "-c", statement, urls.get(home) ?? ""])
        .trimEnd()
        .split("\n"),
    stored: (home) => `${filesBelow(home)}\n${bytes(run("pg_dump", ["--data-only", urls.get(home) ?? ""]))}`
  }
}

/** Declares tests for each store; those of PostgreSQL need the program. */
export const overEachStore = (declare: (store: TestedStore) => void): void => {
  declare(files)
  declare(sqlite)
  needs("PostgreSQL")("with PostgreSQL", () => declare(postgresStore()))
}

/** Declares tests for each way to run sessions: in the process that is asked, and in a cluster, over the database that needs no server. */
export const overEachEngine = (declare: (store: TestedStore) => void): void => {
  declare(files)
  declare(sqlite)
}

/** Runs requests against a server over a store, which ends with them. Without a home it has one of its own. */
export const servingOver =
  (store: TestedStore) =>
  <A>(
    { home = newHome(), ...options }: Partial<Omit<ServerOptions, "store">>,
    use: (server: Server, home: string) => Promise<A>
  ) =>
    Effect.flatMap(store.at(home), (place) =>
      serving({ ...options, home, store: place }, (server) => use(server, home))
    )
