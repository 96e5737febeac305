import { Effect } from "effect"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import type { ServeStore } from "../src/layers/LiveServe.ts"
import { startServer } from "../test/support/server.ts"
import { print } from "./table.ts"

/**
 * `node bench/serve.ts [sessions]`: turns a second and their latency over HTTP with an instant model, from files and as entities
 * over SQLite, in one process. The difference is the cost of the engine.
 */

const sessions = Number(process.argv[2] ?? 100)
const turns = 3
const parallel = 16

const played = (store: ServeStore) =>
  Effect.gen(function* () {
    const { ask } = yield* startServer({
      home: mkdtempSync(path.join(tmpdir(), "bench-serve-")),
      store,
      settings: { limits: { requests: 1_000_000, sessions: 1_000_000, turns: 1_000, streams: 1_000 } }
    })
    return yield* Effect.promise(async () => {
      const run = `b${Date.now()}`
      for (let at = 0; at < sessions; at += 1) await ask("POST", "/v1/sessions", { body: { id: `${run}-${at}` } })
      const millis: Array<number> = []
      const jobs = Array.from({ length: sessions * turns }, (_, at) => at)
      const began = performance.now()
      const worker = async (): Promise<void> => {
        for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
          const start = performance.now()
          const body = { id: `m${Math.floor(job / sessions)}`, text: "Hello" }
          await (await ask("POST", `/v1/sessions/${run}-${job % sessions}/messages`, { body })).text()
          millis.push(performance.now() - start)
        }
      }
      await Promise.all(Array.from({ length: parallel }, worker))
      millis.sort((one, other) => one - other)
      const at = (share: number) => millis[Math.floor(millis.length * share)] ?? 0
      const rate = millis.length / ((performance.now() - began) / 1_000)
      return { rate, p50: at(0.5), p99: at(0.99), megabytes: process.memoryUsage().rss / 1e6 }
    })
  }).pipe(Effect.scoped, Effect.runPromise)

const files = await played({ _tag: "Files" })
const sqlite = await played({ _tag: "Sqlite" })
const row = (what: string, { megabytes, p50, p99, rate }: typeof files) => ({
  what: `${sessions} sessions, ${turns} turns each, ${parallel} at a time: ${what}`,
  value: `${rate.toFixed(0)} turns/s, p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ${megabytes.toFixed(0)} MB (${(files.rate / rate).toFixed(1)} times files)`,
  bound: undefined,
  ok: true
})
print([row("files", files), row("SQLite", sqlite)])
process.exit()
