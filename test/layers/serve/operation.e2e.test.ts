import { Effect, Redacted } from "effect"
import { execFile } from "node:child_process"
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { promisify } from "node:util"
import type { ServeStore } from "../../../src/layers/assembly/LiveServe.ts"
import { needs, programOf } from "../../support/machine.ts"
import { databases, freePort } from "../../support/postgres.ts"
import { eventsOf, newHome, type Server, startServer, tokens } from "../../support/server.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What docs/serve.md tells operators to do, done as it says. */

const manual = readFileSync(path.join(import.meta.dirname, "../../../docs/serve.md"), "utf8")

/** The block of code of the manual that has these words. */
const block = (kind: string, words: string): string =>
  Array.from(manual.matchAll(new RegExp(`\`\`\`${kind}\\n([^]*?)\`\`\``, "g")), ([, code = ""]) => code).find((code) =>
    code.includes(words)
  ) ?? assert.fail(`docs/serve.md has no ${kind} with ${words}`)

type Env = Readonly<Record<string, string>>

const execute = (command: string, env: Env) =>
  Effect.promise(() =>
    promisify(execFile)("sh", ["-ec", command], {
      env: { PATH: `${path.dirname(programOf("PostgreSQL") ?? "/bin/sh")}:${process.env["PATH"] ?? ""}`, ...env }
    })
  )

/** Sends a message to its end. Returns its words. */
const answered = async ({ ask }: Server, session: string, id: string): Promise<string> => {
  const response = await ask("POST", `/v1/sessions/${session}/messages`, { body: { id, text: `Hello from ${id}` } })
  const events = eventsOf(await response.text())
  return events.flatMap(({ event }) => (event._tag === "Content" ? [event.text] : [])).join("")
}

const sessions = ["one", "two", "three", "four"]

/**
 * Backs up while four sessions are written, restores, and finds each message that was answered before, once, and none that is half
 * there.
 */
const restored = Effect.fnUntraced(function* (
  start: (answers: () => string) => ReturnType<typeof startServer>,
  backUp: Effect.Effect<unknown>,
  restore: Effect.Effect<unknown>
) {
  let asked = 0
  const over = new AbortController()
  const before = yield* Effect.scoped(
    Effect.gen(function* () {
      const server = yield* start(() => `answer ${(asked += 1)}.`)
      const done: Array<readonly [session: string, id: string, answer: string]> = []
      const writing = sessions.map(async (session) => {
        await server.ask("POST", "/v1/sessions", { body: { id: session } })
        for (let at = 0; !over.signal.aborted; at += 1) {
          done.push([session, `m${at}`, await answered(server, session, `m${at}`)])
        }
      })
      while (new Set(done.map(([session]) => session)).size < sessions.length) yield* Effect.sleep("20 millis")
      const acknowledged = [...done]
      yield* backUp
      over.abort()
      yield* Effect.promise(() => Promise.all(writing))
      assert.isAbove(done.length, acknowledged.length)
      return acknowledged
    })
  )
  yield* restore
  yield* Effect.scoped(
    Effect.gen(function* () {
      const server = yield* start(() => "answered after the restore.")
      for (const [session, id, answer] of before) {
        assert.strictEqual(yield* Effect.promise(() => answered(server, session, id)), answer)
      }
      for (const session of sessions) {
        const said = yield* Effect.promise(async () =>
          (await server.ask("GET", `/v1/sessions/${session}/export?format=contents`)).text()
        )
        const hellos = Array.from(said.matchAll(/Hello from (m\d+)/g), ([, id]) => id)
        assert.strictEqual(new Set(hellos).size, hellos.length)
      }
    })
  )
})

const sqliteServer =
  (home: string, store: ServeStore = { _tag: "Sqlite" }) =>
  (answers: () => string) =>
    startServer({ home, store, answers, settings: { limits: { requests: 100_000 } } })

describe("a back-up under load", () => {
  needs("SQLite's shell")("of SQLite", () => {
    it.live("restores what was acknowledged", function* () {
      const [home, backup] = [newHome(), newHome()]
      const env = { PALIMPSEST_HOME: home, BACKUP: backup }
      yield* restored(
        sqliteServer(home),
        execute(block("sh", "VACUUM INTO"), env),
        execute(block("sh", "serve.db-wal"), env)
      )
      assert.isNotEmpty(readFileSync(path.join(backup, "serve.db")))
    })
  })

  const database = databases()
  needs("PostgreSQL")("of PostgreSQL", () => {
    it.live("restores what was acknowledged", function* () {
      const url = yield* database
      const [home, runner] = [newHome(), { host: "127.0.0.1", port: yield* freePort }]
      const env = { PALIMPSEST_STORE: url, BACKUP: newHome() }
      yield* restored(
        sqliteServer(home, { _tag: "Postgres", url: Redacted.make(url), runner }),
        execute(block("sh", "pg_dump"), env),
        execute(block("sh", "pg_restore"), env)
      )
    })
  })
})

describe("a database of another version", () => {
  const later = "INSERT INTO palimpsest_migrations (migration_id, name) VALUES (99, 'later')"

  const filled = Effect.fnUntraced(function* (change: string) {
    const home = newHome()
    yield* Effect.scoped(
      Effect.gen(function* () {
        const server = yield* sqliteServer(home)(() => "before the upgrade.")
        yield* Effect.promise(() => server.ask("POST", "/v1/sessions", { body: { id: "one" } }))
        yield* Effect.promise(() => answered(server, "one", "m1"))
      })
    )
    const database = new DatabaseSync(path.join(home, "serve.db"))
    database.exec(change)
    database.close()
    return yield* sqliteServer(home)(() => "after the upgrade.")
  })

  it.live("an older one opens, with its sessions", function* () {
    // The tables as the version before made them.
    const server = yield* filled(
      "DROP INDEX palimpsest_checkpoints; DROP INDEX palimpsest_last_lines; DELETE FROM palimpsest_migrations WHERE migration_id > 1"
    )
    const words = [
      yield* Effect.promise(() => answered(server, "one", "m1")),
      yield* Effect.promise(() => answered(server, "one", "m2"))
    ]
    assert.deepStrictEqual(words, ["before the upgrade.", "after the upgrade."])
  })

  it.live("a newer one is refused", function* () {
    const server = yield* filled(later)
    const response = yield* Effect.promise(() => server.ask("GET", "/v1/sessions/one"))
    assert.strictEqual(response.status, 502)
  })

  it.live("a server goes on with its tenants when a newer version makes tables, and refuses the others", function* () {
    const home = newHome()
    const server = yield* sqliteServer(home)(() => "an answer.")
    yield* Effect.promise(() => server.ask("POST", "/v1/sessions", { body: { id: "one" } }))
    yield* Effect.promise(() => answered(server, "one", "m1"))
    const database = new DatabaseSync(path.join(home, "serve.db"))
    database.exec(later)
    database.close()
    assert.strictEqual(yield* Effect.promise(() => answered(server, "one", "m2")), "an answer.")
    const other = yield* Effect.promise(() => server.ask("GET", "/v1/sessions", { token: tokens.zeta }))
    assert.strictEqual(other.status, 502)
  })
})

needs("systemd")("the unit of the manual", () => {
  it.live("is one that systemd accepts", function* () {
    const folder = newHome()
    const program = path.join(folder, "palimpsest")
    writeFileSync(program, "#!/bin/sh\n")
    chmodSync(program, 0o755)
    mkdirSync(path.join(folder, "units"))
    const unit = path.join(folder, "units", "palimpsest.service")
    writeFileSync(unit, block("ini", "[Service]").replace("/usr/bin/palimpsest", program))
    const { stderr } = yield* execute(`systemd-analyze verify ${unit}`, {})
    assert.strictEqual(stderr, "")
  })
})
