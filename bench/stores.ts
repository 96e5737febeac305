import { Effect, type Layer, Stream } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import * as Palimpsest from "../src/api/Palimpsest.ts"
import * as Home from "../src/layers/assembly/Home.ts"
import * as PostgresSessionStore from "../src/layers/session/PostgresSessionStore.ts"
import * as SqliteSessionStore from "../src/layers/session/SqliteSessionStore.ts"
import * as ScriptedModel from "../src/layers/testing/ScriptedModel.ts"
import { Chats } from "../src/services/chat/Chats.ts"
import type { SessionStore, SessionStoreError } from "../src/services/session/SessionStore.ts"
import { programOf } from "../test/support/machine.ts"
import { postgres } from "../test/support/postgres.ts"
import { print, type Row } from "./table.ts"

/**
 * `npm run bench:stores`: what a turn costs in processor time of this process, the model being a script: 1,000 chats of 6 turns, 50 at a time,
 * on each store. PostgreSQL's own processes are not counted. A numeric argument sets the number of chats.
 */

const chats = Number(process.argv[2] ?? 1_000)
const turns = 6
const folder = mkdtempSync(path.join(tmpdir(), "stores-"))
const model = ScriptedModel.layer(
  (_, index) => `Order ${index} is on its way. ${"It left the store today. ".repeat(10)}`
)

const over = (store: Layer.Layer<SessionStore, SessionStoreError>) => played(Palimpsest.layer({ model, store }))

/** Milliseconds a turn: of the processor, and of the clock. */
const played = async <E>(services: Layer.Layer<Chats, E>) => {
  const talk = (chat: number) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { open } = yield* Chats
        const opened = yield* open(`chat-${chat}`)
        for (let turn = 0; turn < turns; turn += 1) yield* Stream.runDrain(opened.send(`Where is order ${turn}?`))
      })
    )
  const { cpu, real } = await Effect.gen(function* () {
    yield* talk(-1)
    const before = process.cpuUsage()
    const start = performance.now()
    yield* Effect.forEach(
      Array.from({ length: chats }, (_, chat) => chat),
      talk,
      { concurrency: 50, discard: true }
    )
    const { system, user } = process.cpuUsage(before)
    return { cpu: (system + user) / 1_000, real: performance.now() - start }
  }).pipe(Effect.provide(services), Effect.runPromise)
  return { cpu: cpu / chats / turns, real: real / chats / turns }
}

const row = (store: string, { cpu, real }: Awaited<ReturnType<typeof played>>, bound?: number): Row => ({
  what: `a turn of one of ${chats} chats, ${store}`,
  value: `${cpu.toFixed(2)} ms of the processor, ${real.toFixed(2)} ms of time`,
  bound: bound === undefined ? undefined : `${bound} ms`,
  ok: bound === undefined || cpu <= bound
})

// Warm up, so that compiling is not measured.
await played(Palimpsest.layer({ model }))
const rows = [
  row("memory", await played(Palimpsest.layer({ model }))),
  row("files", await played(Palimpsest.layer({ model, home: Home.layer(path.join(folder, "home")) }))),
  row("SQLite", await over(SqliteSessionStore.layer(path.join(folder, "sessions.db"))), 10)
]
if (programOf("PostgreSQL") === undefined) console.log("PostgreSQL is not installed: not measured")
else {
  const measured = Effect.flatMap(postgres, (url) => Effect.promise(() => over(PostgresSessionStore.layer(url))))
  rows.push(row("PostgreSQL", await Effect.runPromise(Effect.scoped(measured))))
}
rmSync(folder, { recursive: true })
print(rows)
