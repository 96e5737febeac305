import { afterAll } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process"
import { randomInt } from "node:crypto"
import { chownSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import process from "node:process"
import { programOf } from "./machine.ts"

/** PostgreSQL refuses to run as root; this user is on every system. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/**
 * A port that is free now, and stays so: below those from which the system takes the ports of connections, which other tests make all
 * the time.
 */
export const freePort: Effect.Effect<number> = Effect.callback<number, Error>((resume) => {
  const port = randomInt(10_000, 32_000)
  const server = createServer()
  server.once("error", (error) => resume(Effect.fail(error)))
  server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(port))))
}).pipe(Effect.retry({ times: 20 }), Effect.orDie)

/** The servers of a test file may hold more connections than the default of 100. */
const settings = ["listen_addresses=127.0.0.1", "fsync=off", "max_connections=400"].flatMap((one) => ["-c", one])

/** Starts a server of the machine's PostgreSQL on an empty folder, until the scope closes. */
export const postgresServer = Effect.gen(function* () {
  const initdb = programOf("PostgreSQL") ?? "initdb"
  const folder = yield* Effect.acquireRelease(
    // Beside the folder of the tests, which only its owner may enter.
    Effect.sync(() =>
      mkdtempSync(path.join(path.dirname(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir()), "postgres-"))
    ),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  if (nobody.uid !== undefined) chownSync(folder, nobody.uid, nobody.gid)
  const port = yield* freePort
  const data = path.join(folder, "data")
  execFileSync(initdb, ["-D", data, "-A", "trust", "-U", "palimpsest", "-E", "UTF8", "--locale=C", "--no-sync"], {
    ...nobody,
    cwd: folder,
    stdio: "ignore"
  })
  let server: ChildProcess | undefined
  const start = Effect.callback<void>((resume) => {
    const child = spawn(
      path.join(path.dirname(initdb), "postgres"),
      ["-D", data, "-k", folder, "-p", String(port), ...settings],
      { ...nobody, cwd: folder, stdio: ["ignore", "ignore", "pipe"] }
    )
    server = child
    child.stderr.on("data", (text: Buffer) => {
      if (text.includes("ready to accept connections")) resume(Effect.void)
    })
  })
  const stop = Effect.callback<void>((resume) => {
    if (server === undefined || server.exitCode !== null) return resume(Effect.void)
    server.on("exit", () => resume(Effect.void))
    server.kill("SIGINT")
  })
  yield* Effect.acquireRelease(start, () => stop)
  return {
    url: `postgres://palimpsest@127.0.0.1:${port}/postgres`,
    /** Stops it with all its connections. */
    stop,
    /** Starts it again on the same folder and port. */
    start,
    restart: Effect.andThen(stop, start)
  }
})

/** Returns an effect that makes an empty database and returns its URL. The tests of a file share one server, which ends after them. */
export const databases = (): Effect.Effect<string> => {
  const scope = Effect.runSync(Scope.make())
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const server = Effect.runSync(Effect.cached(Scope.provide(postgres, scope)))
  let made = 0
  return Effect.gen(function* () {
    const url = yield* server
    const name = `test${(made += 1)}`
    const createdb = path.join(path.dirname(programOf("PostgreSQL") ?? "initdb"), "createdb")
    yield* Effect.callback<void>((resume) => {
      execFile(createdb, ["--maintenance-db", url, name], (error) =>
        resume(error === null ? Effect.void : Effect.die(error))
      )
    })
    return url.replace(/postgres$/, name)
  })
}

/** The same; only its URL. */
export const postgres = Effect.map(postgresServer, ({ url }) => url)
