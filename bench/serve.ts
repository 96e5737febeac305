import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as ClusterEngine from "../src/layers/serve/ClusterEngine.ts"
import * as FakeGemini from "../src/layers/testing/FakeGemini.ts"
import { newFolder } from "../test/support/paths.ts"
import { freePort, postgresServer } from "../test/support/postgres.ts"
import { newHome, startServer } from "../test/support/server.ts"
import { askProcess, type ServerProcess, startProcess } from "../test/support/serverProcess.ts"
import { median, print } from "./table.ts"

/**
 * `npm run bench:serve [-- sessions turns]`: what turns cost a server besides the model, on Linux with PostgreSQL. The built program answers over HTTP
 * with a model that answers at once: from files, from SQLite, and as one front with 1, 2 and 3 runners over PostgreSQL. Processor
 * time is that of each process; the client and the model are in this one and do not count. Then the rows and bytes that turns leave
 * in each table, and the memory of a session that is open, in a server of this process.
 */

const sessions = Number(process.argv[2] ?? 200)
const turns = Number(process.argv[3] ?? 5)
const parallel = 16
const opened = 300
const most = 1_000_000
const settings = {
  limits: { requests: most, tokens: most * most, sessions: most, turns: 1_000, streams: 1_000 }
}
const bundle = path.join(import.meta.dirname, "..", "dist", "palimpsest.mjs")
/** A tick of the processor times in /proc. */
const tickMillis = 10

const fieldsOf = (pid: number): ReadonlyArray<string> => {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8")
  return text.slice(text.lastIndexOf(")") + 2).split(" ")
}

/** Milliseconds of processor time of a process, and of its children that ended. */
const cpuOf = (pid: number): number =>
  fieldsOf(pid)
    .slice(11, 15)
    .reduce((sum, ticks) => sum + Number(ticks), 0) * tickMillis

/** A process and its children. */
const familyOf = (pid: number): ReadonlyArray<number> => [
  pid,
  ...readdirSync("/proc").flatMap((name) => {
    try {
      return /^\d+$/.test(name) && Number(fieldsOf(Number(name))[1]) === pid ? [Number(name)] : []
    } catch {
      return []
    }
  })
]

/** Does jobs, some at the same time. */
const inParallel = async (count: number, work: (job: number) => Promise<void>): Promise<void> => {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let job = next++; job < count; job = next++) await work(job)
  }
  await Promise.all(Array.from({ length: parallel }, worker))
}

/** Reads an answer. Throws where it is not what it should be, so that no figure is made of refusals. */
const read = async (asked: Promise<Response>, expected = ""): Promise<void> => {
  const response = await asked
  const text = await response.text()
  if (!response.ok || !text.includes(expected)) throw new Error(`${response.status} ${text.slice(-300)}`)
}

const answered = `"status":"answered"`

/** The processes of a layout, by what they do. */
interface Layout {
  readonly front: ServerProcess
  readonly parts: Readonly<Record<string, () => ReadonlyArray<number>>>
}

/** Plays all turns, and prints their rate and cost. `between` is run when the sessions are stored, and after the turns. */
const played = async (what: string, { front, parts }: Layout, between: () => Promise<void> = async () => {}) => {
  const cpu = () =>
    Object.entries(parts).map(([part, pids]) => [part, pids().reduce((sum, pid) => sum + cpuOf(pid), 0)] as const)
  await inParallel(sessions, (job) => read(askProcess(front, "POST", "", { id: `s${job}` })))
  await between()
  const before = new Map(cpu())
  const began = performance.now()
  const millis: Array<number> = []
  // The turns of a session come one after the other, as its user sends them.
  await inParallel(sessions, async (job) => {
    for (let turn = 0; turn < turns; turn += 1) {
      const start = performance.now()
      await read(askProcess(front, "POST", `/s${job}/messages`, { id: `m${turn}`, text: "Hello" }), answered)
      millis.push(performance.now() - start)
    }
  })
  const rate = millis.length / ((performance.now() - began) / 1_000)
  const costs = cpu().map(([part, end]) => [part, (end - (before.get(part) ?? 0)) / millis.length] as const)
  await between()
  const all = costs.reduce((sum, [, cost]) => sum + cost, 0)
  const each = costs.map(([part, cost]) => `${part} ${cost.toFixed(1)}`).join(", ")
  print([
    {
      what: `${sessions} sessions, ${turns} turns each: ${what}`,
      value: `${(1_000 / all).toFixed(0)} turns per processor second; ms of processor a turn: ${each}; ${rate.toFixed(0)} turns/s, p50 ${median(millis).toFixed(0)} ms`,
      bound: undefined,
      ok: true
    }
  ])
}

/** The rows and bytes of each table. */
const tablesOf = (url: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const names = yield* sql<{ readonly name: string }>`SELECT relname AS name FROM pg_stat_user_tables ORDER BY 1`
    return yield* Effect.forEach(names, ({ name }) =>
      Effect.map(
        sql<{ readonly rows: number; readonly bytes: number }>`SELECT COUNT(*)::FLOAT8 AS rows,
          pg_total_relation_size(${name}::regclass)::FLOAT8 AS bytes FROM ${sql(name)}`,
        ([found]) => ({ name, rows: found?.rows ?? 0, bytes: found?.bytes ?? 0 })
      )
    )
  }).pipe(Effect.provide(ClusterEngine.postgres(Redacted.make(url))), Effect.runPromise)

type Tables = Awaited<ReturnType<typeof tablesOf>>

const printGrowth = (before: Tables, after: Tables) => {
  for (const { bytes, name, rows } of after) {
    const stored = before.find((table) => table.name === name)
    const per = 10_000 / (sessions * turns)
    const more = (rows - (stored?.rows ?? 0)) * per
    const size = ((bytes - (stored?.bytes ?? 0)) * per) / 1e6
    print([
      {
        what: `10,000 turns in the table ${name}`,
        value: `${more.toFixed(0)} rows, ${size.toFixed(1)} MB; of each session before its first turn ${((stored?.rows ?? 0) / sessions).toFixed(1)} rows`,
        bound: undefined,
        ok: true
      }
    ])
  }
}

const start = (model: string, ...args: ReadonlyArray<string>) => {
  const home = newFolder()
  writeFileSync(path.join(home, "settings.json"), JSON.stringify({ serve: settings }))
  return startProcess(bundle, { home, model, args })
}
const pidOf = ({ child }: ServerProcess): number => child.pid ?? 0
const end = (...all: ReadonlyArray<ServerProcess>): void => {
  for (const { child } of all) child.kill("SIGKILL")
}

const alone = async (model: string, store: string) => {
  const front = await start(model, "--store", store)
  await played(store, { front, parts: { server: () => [pidOf(front)] } })
  end(front)
}

const withRunners = (model: string, count: number) =>
  Effect.gen(function* () {
    const { url } = yield* postgresServer
    const addresses = yield* Effect.forEach(Array.from({ length: count }), () => freePort)
    yield* Effect.promise(async () => {
      const front = await start(model, "--store", url, "--front")
      const runners = await Promise.all(
        addresses.map((port) => start(model, "--store", url, "--runner", "--address", `127.0.0.1:${port}`))
      )
      // Until each of the runners has its shards.
      await new Promise((resolve) => setTimeout(resolve, 15_000))
      const backend = await Effect.runPromise(
        SqlClient.SqlClient.use((sql) =>
          sql<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid`.pipe(
            Effect.map(([row]) => Number(fieldsOf(row?.pid ?? 0)[1]))
          )
        ).pipe(Effect.provide(ClusterEngine.postgres(Redacted.make(url))))
      )
      const seen: Array<Tables> = []
      await played(
        `${count} runner${count === 1 ? "" : "s"} over PostgreSQL`,
        {
          front,
          parts: { front: () => [pidOf(front)], runners: () => runners.map(pidOf), database: () => familyOf(backend) }
        },
        async () => void seen.push(await tablesOf(url))
      )
      end(front, ...runners)
      if (count === 1) printGrowth(seen[0] ?? [], seen[1] ?? [])
    })
  }).pipe(Effect.scoped, Effect.runPromise)

const memory = async (): Promise<number> => {
  // Finalizers of the first collection leave more for the next.
  for (let times = 0; times < 4; times += 1) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const { external, heapUsed } = process.memoryUsage()
  return (heapUsed + external) / 1_000
}

const maxOpenKilobytes = 300

const printMemory = (tag: "Files" | "Sqlite", tools: boolean) =>
  Effect.gen(function* () {
    const served = { ...settings, tools, approve: "all" as const }
    const { ask } = yield* startServer({ home: newHome(), settings: served, store: { _tag: tag } })
    const kilobytes = yield* Effect.promise(async () => {
      const turn = async (id: string): Promise<void> => {
        await read(ask("POST", "/v1/sessions", { body: { id } }))
        await read(ask("POST", `/v1/sessions/${id}/messages`, { body: { text: "Hello" } }), answered)
      }
      await inParallel(100, (job) => turn(`warm${job}`))
      const before = await memory()
      await inParallel(opened, (job) => turn(`s${job}`))
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      return ((await memory()) - before) / opened
    })
    print([
      {
        what: `an open session over ${tag}, ${tools ? "with" : "without"} tools`,
        value: `${kilobytes.toFixed(0)} kB`,
        bound: `${maxOpenKilobytes} kB`,
        ok: kilobytes <= maxOpenKilobytes
      }
    ])
  }).pipe(Effect.scoped, Effect.runPromise)

const model = FakeGemini.make(({ method }) =>
  method === "streamGenerateContent"
    ? FakeGemini.sse(FakeGemini.response([{ text: "An answer." }]))
    : FakeGemini.tokens(100)
)

await Effect.gen(function* () {
  const { url } = yield* model
  yield* Effect.promise(async () => {
    for (const tag of ["Files", "Sqlite"] as const) {
      for (const tools of [false, true]) await printMemory(tag, tools)
    }
    await alone(url, "files")
    await alone(url, "sqlite")
    for (const count of [1, 2, 3]) await withRunners(url, count)
  })
}).pipe(Effect.scoped, Effect.runPromise)
process.exit()
