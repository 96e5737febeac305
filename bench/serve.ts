import { Effect, Redacted } from "effect"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import type { ServeStore } from "../src/layers/assembly/LiveServe.ts"
import { programOf } from "../test/support/machine.ts"
import { freePort, postgres } from "../test/support/postgres.ts"
import { startServer } from "../test/support/server.ts"
import { print } from "./table.ts"

/**
 * `node --expose-gc bench/serve.ts [sessions] [idle]`: turns a second and their latency over HTTP with an instant model, from files, as entities
 * over SQLite, and over PostgreSQL with two runners, all in one process. The difference is the cost of the engine. Then `idle` sessions
 * are stored, of which no runner has one open. The CPU is that of this process, client and front included, without the database's.
 */

const sessions = Number(process.argv[2] ?? 100)
const idle = Number(process.argv[3] ?? 0)
const turns = 3
const parallel = 16
const most = 1_000_000
/** The end of a turn's stream. */
const answered = `"status":"answered"`
const settings = { limits: { requests: most, tokens: most * most, sessions: most, turns: 1_000, streams: 1_000 } }

/** The memory of the process after a garbage collection, if `node --expose-gc` allows one. */
const megabytes = (): number => {
  globalThis.gc?.()
  const { external, heapUsed } = process.memoryUsage()
  return (heapUsed + external) / 1e6
}

const played = (stores: ReadonlyArray<ServeStore>) =>
  Effect.gen(function* () {
    const before = megabytes()
    const home = mkdtempSync(path.join(tmpdir(), "bench-serve-"))
    const servers = yield* Effect.forEach(stores, (store) => startServer({ home, store, settings }))
    /**
     * Asks a server, and again where a connection broke: ids are the client's, so that nothing is done twice. Throws where the
     * answer is not what it should be, so that no figure is made of refusals.
     */
    const ask = async (job: number, place: string, body: unknown, expected = ""): Promise<void> => {
      for (let tries = 0; ; tries += 1) {
        try {
          const response = await servers[job % servers.length]?.ask("POST", place, { body })
          const text = (await response?.text()) ?? ""
          if (response?.ok === true && text.includes(expected)) return
          throw new Error(`${place}: ${response?.status} ${text.slice(-300)}`)
        } catch (error) {
          if (tries === 5) throw error
        }
      }
    }
    return yield* Effect.promise(async () => {
      const run = `b${Date.now()}`
      const inParallel = async (count: number, work: (job: number) => Promise<void>): Promise<void> => {
        let next = 0
        const worker = async (): Promise<void> => {
          for (let job = next++; job < count; job = next++) await work(job)
        }
        await Promise.all(Array.from({ length: parallel }, worker))
      }
      const create = (name: string) => (job: number) => ask(job, "/v1/sessions", { id: `${run}-${name}${job}` })
      await inParallel(sessions, create("s"))
      const millis: Array<number> = []
      const began = performance.now()
      const cpuBegan = process.cpuUsage()
      // The turns of a session come one after the other, as its user sends them.
      await inParallel(sessions, async (job) => {
        for (let turn = 0; turn < turns; turn += 1) {
          const start = performance.now()
          await ask(job, `/v1/sessions/${run}-s${job}/messages`, { id: `m${turn}`, text: "Hello" }, answered)
          millis.push(performance.now() - start)
        }
      })
      const rate = millis.length / ((performance.now() - began) / 1_000)
      const { system, user } = process.cpuUsage(cpuBegan)
      const cpu = (user + system) / 1_000 / millis.length
      const kilobytes = ((megabytes() - before) * 1_000) / sessions
      millis.sort((one, other) => one - other)
      const at = (share: number) => millis[Math.floor(millis.length * share)] ?? 0
      const unopened = megabytes()
      if (idle > 0) await inParallel(idle, create("i"))
      return { rate, cpu, p50: at(0.5), p99: at(0.99), kilobytes, idle: megabytes() - unopened }
    })
  }).pipe(Effect.scoped)

type Played = Effect.Success<ReturnType<typeof played>>

const row = (what: string, made: Played, files: Played) => ({
  what: `${sessions} sessions, ${turns} turns each, ${parallel} at a time: ${what}`,
  value: `${made.rate.toFixed(0)} turns/s, p50 ${made.p50.toFixed(0)} ms, p99 ${made.p99.toFixed(0)} ms, ${made.cpu.toFixed(1)} ms of CPU a turn, ${made.kilobytes.toFixed(0)} kB a session${idle > 0 ? `, ${made.idle.toFixed(0)} MB for ${idle} idle` : ""} (${(made.cpu / files.cpu).toFixed(1)} times the CPU of files)`,
  bound: undefined,
  ok: true
})

const runners = Effect.gen(function* () {
  const url = yield* postgres
  const store = Effect.map(freePort, (port): ServeStore => ({
    _tag: "Postgres",
    url: Redacted.make(url),
    runner: { host: "127.0.0.1", port }
  }))
  return yield* played([yield* store, yield* store])
}).pipe(Effect.scoped)

const files = await Effect.runPromise(played([{ _tag: "Files" }]))
print([row("files", files, files)])
const sqlite = await Effect.runPromise(played([{ _tag: "Sqlite" }]))
print([row("SQLite", sqlite, files)])
if (programOf("PostgreSQL") !== undefined) {
  print([row("two runners over PostgreSQL", await Effect.runPromise(runners), files)])
}
process.exit()
