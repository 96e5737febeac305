import { Effect } from "effect"
import { execFileSync, spawn } from "node:child_process"
import { chownSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import process from "node:process"
import { programOf } from "./machine.ts"

/** PostgreSQL refuses to run as root; this user is on every system. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})

/** Starts a server of the machine's PostgreSQL on an empty folder, until the scope closes. Returns its URL. */
export const postgres = Effect.gen(function* () {
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
  const server = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(
        path.join(path.dirname(initdb), "postgres"),
        ["-D", data, "-k", folder, "-p", String(port), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"],
        { ...nobody, cwd: folder, stdio: ["ignore", "ignore", "pipe"] }
      )
    ),
    (child) =>
      Effect.callback<void>((resume) => {
        child.on("exit", () => resume(Effect.void))
        child.kill("SIGINT")
      })
  )
  yield* Effect.callback<void>((resume) => {
    server.stderr.on("data", (text: Buffer) => {
      if (text.includes("ready to accept connections")) resume(Effect.void)
    })
  })
  return `postgres://palimpsest@127.0.0.1:${port}/postgres`
})
