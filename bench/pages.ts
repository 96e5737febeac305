import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { newHome, startServer } from "../test/support/server.ts"
import { median, print } from "./table.ts"

/**
 * `npm run bench:pages [-- sessions]`: a page of 100 of a tenant's sessions over HTTP, from files and from SQLite, in processor time of this
 * process, client included. The sessions are copies of one.
 */

const sessions = Number(process.argv[2] ?? 10_000)
const rounds = 15
const settings = { limits: { requests: 1_000_000, sessions: 1_000_000 } }
const goal = 50

/** Copies the session `seed` of acme in the tables of a database. */
const copyRows = (file: string) => {
  const database = new DatabaseSync(file)
  database.exec("BEGIN")
  for (const table of ["palimpsest_sessions", "palimpsest_lines", "palimpsest_session_records"]) {
    const columns = database.prepare(`SELECT name FROM pragma_table_info('${table}')`).all()
    const values = columns.map(({ name }) =>
      name === "session" || (name === "id" && table === "palimpsest_sessions")
        ? `replace(${name}, 'seed', 's' || ?)`
        : name === "owner"
          ? "NULL"
          : String(name)
    )
    const numbers = values.filter((value) => value.includes("?")).length
    const copy = database.prepare(
      `INSERT INTO ${table} SELECT ${values.join(", ")} FROM ${table} WHERE session LIKE '%seed'`
    )
    for (let copied = 0; copied < sessions; copied += 1) copy.run(...Array.from({ length: numbers }, () => copied))
  }
  database.exec("COMMIT")
  database.close()
}

const copyFiles = (home: string) => {
  const log = readFileSync(path.join(home, "sessions", "seed.jsonl"), "utf8")
  for (let copied = 0; copied < sessions; copied += 1) {
    writeFileSync(path.join(home, "sessions", `s${copied}.jsonl`), log.replaceAll(`"seed"`, `"s${copied}"`))
    cpSync(path.join(home, "served", "seed.json"), path.join(home, "served", `s${copied}.json`))
  }
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 6_000))

const measured = (tag: "Files" | "Sqlite") =>
  Effect.gen(function* () {
    const home = newHome()
    const file = path.join(home, "sessions.db")
    const { ask } = yield* startServer({ home, settings, store: tag === "Files" ? { _tag: tag } : { _tag: tag, file } })
    return yield* Effect.promise(async () => {
      await ask("POST", "/v1/sessions", { body: { id: "seed", metadata: { customer: randomUUID() } } })
      await (await ask("POST", "/v1/sessions/seed/messages", { body: { text: "Hello" } })).text()
      if (tag === "Files") copyFiles(path.join(home, "tenants", "acme"))
      else copyRows(file)
      // The copying blocked this process: connections of before are gone.
      await settled()
      const timesOf = async (before: () => void) => {
        const firsts: Array<number> = []
        const laters: Array<number> = []
        let cursor = ""
        for (let round = 0; round < 2 * rounds; round += 1) {
          // A list is read at its first page: half of the rounds are first pages.
          const times = round % 2 === 0 ? firsts : laters
          if (times === firsts) {
            cursor = ""
            before()
          }
          const start = process.cpuUsage()
          const page: { readonly sessions: ReadonlyArray<unknown>; readonly next: string } = JSON.parse(
            await (await ask("GET", `/v1/sessions?limit=100${cursor}`)).text()
          )
          const { system, user } = process.cpuUsage(start)
          if (page.sessions.length !== 100) throw new Error(`a page of ${page.sessions.length} sessions`)
          cursor = `&cursor=${encodeURIComponent(page.next)}`
          times.push((user + system) / 1_000)
        }
        return { first: median(firsts), later: median(laters) }
      }
      await ask("GET", "/v1/sessions?limit=1").catch(() => undefined)
      const other = path.join(home, "tenants", "acme", "sessions", "other")
      const busy = await timesOf(() => {
        if (tag === "Files") writeFileSync(other, "")
        if (tag === "Files") rmSync(other)
      })
      await settled()
      return { busy: busy.first, ...(await timesOf(() => {})) }
    })
  }).pipe(Effect.scoped)

for (const tag of ["Files", "Sqlite"] as const) {
  const { busy, first, later } = await Effect.runPromise(measured(tag))
  const row = (which: string, time: number) => ({
    what: `${which}, a page of 100 of ${sessions} sessions, ${tag}`,
    value: `${time.toFixed(0)} ms of CPU`,
    bound: `${goal} ms`,
    ok: time <= goal
  })
  print([row("first", first), row("first, as sessions come and go", busy), row("later", later)])
}
process.exit()
